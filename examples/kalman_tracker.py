"""A Kalman smoother: a point moves at a velocity that wanders, and its position is seen with noise."""

import numpy as np

import heliograph as hg

rng = np.random.default_rng(0)
n = 200
velocity = 0.1 * rng.standard_normal(n).cumsum()
seen = velocity.cumsum() + rng.standard_normal(n)

model = hg.Model()
v = model.chain("v", n, hg.Gaussian(0.0, 1.0), lambda before: model.gaussian("v", before, variance=0.01))
x = model.chain("x", n, hg.Gaussian(0.0, 1.0), lambda before: model.gaussian("x", before + v[1:], variance=1e-4))
model.gaussian("seen", x, variance=1.0, observed=seen)
posterior = model.infer()

if __name__ == "__main__":
    print(posterior.summary())
