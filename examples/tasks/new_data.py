"""Give an existing model more data, and start from where it was."""

import numpy as np

import heliograph as hg

rng = np.random.default_rng(1)
X, y = rng.standard_normal((200, 3)), rng.random(200) < 0.5
model = hg.Model()
w = model.gaussian("w", np.zeros(3), covariance=np.eye(3))
model.bernoulli("y", logit=model.data("X", X[:150]) @ w, observed=y[:150])
first = model.infer()
model.observe(X=X, y=y)
second = model.infer(start=first)
print(second[w].sd, second.n_sweeps)
