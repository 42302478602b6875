"""A line through points, with noise of unknown size."""

import numpy as np

import heliograph as hg


def data():
    rng = np.random.default_rng(2)
    x = rng.uniform(-2, 2, 30)
    return {"x": x, "y": 1.0 - 0.7 * x + 0.5 * rng.standard_normal(30)}


def model(d):
    m = hg.Model()
    a, b = m.gaussian("a", 0.0, sd=3.0), m.gaussian("b", 0.0, sd=3.0)
    precision = m.gamma("precision", 1.0, 1.0)
    m.gaussian("y", a + b * d["x"], precision=precision, observed=d["y"])
    return m


if __name__ == "__main__":
    print(model(data()).infer().summary())
