"""Predict new rows of a regression."""

import numpy as np

import heliograph as hg

rng = np.random.default_rng(0)
X, y = rng.standard_normal((80, 2)), rng.standard_normal(80)
model = hg.Model()
w = model.gaussian("w", np.zeros(2), covariance=np.eye(2))
model.gaussian("y", model.data("X", X) @ w, sd=1.0, observed=y)
prediction = model.infer().predict("y", X=[[1.0, 0.0], [0.0, 2.0]])
print(prediction.mean, prediction.interval(0.9))
