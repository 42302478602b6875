"""Ordered answers (0 to 3) with unknown cut points between them."""

import numpy as np

import heliograph as hg


def data():
    rng = np.random.default_rng(8)
    x = rng.standard_normal(120)
    score = 1.2 * x + rng.standard_normal(120)
    return {"x": x, "y": np.searchsorted([-1.0, 0.3, 1.4], score).astype(float)}


def model(d):
    m = hg.Model()
    slope = m.gaussian("slope", 0.0, sd=2.0)
    cuts = m.gaussian("cuts", [-1.0, 0.0, 1.0], sd=1.0)
    m.constrain(cuts[1:] > cuts[:-1])
    m.ordinal("y", slope * d["x"], cuts, observed=d["y"])
    return m


if __name__ == "__main__":
    print(model(data()).infer().summary())
