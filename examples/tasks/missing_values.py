"""Missing observations are NaN, and have a posterior of their own."""

import numpy as np

import heliograph as hg

model = hg.Model()
level = model.gaussian("level", 0.0, sd=10.0)
y = model.gaussian("y", level, sd=1.0, observed=[4.1, np.nan, 5.2, np.nan])
posterior = model.infer()
print(posterior[level], posterior[y].mean, posterior[y].sd)
