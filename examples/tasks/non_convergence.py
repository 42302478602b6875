"""Read why a run stopped, and continue from there."""

import warnings

import numpy as np

import heliograph as hg

X = np.random.default_rng(2).standard_normal((300, 10))
model = hg.Model()
w = model.gaussian("w", np.zeros(10), covariance=100 * np.eye(10))
model.bernoulli("y", logit=X @ w, observed=X[:, 0] + X[:, 1] > 0)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", hg.ConvergenceWarning)
    posterior = model.infer(max_sweeps=1)  # far too few
print(posterior.status)
posterior = model.infer(start=posterior)
print(posterior.status)
