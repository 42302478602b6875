"""Counts that vary more than Poisson's, with a log-linear mean."""

import numpy as np

import heliograph as hg


def data():
    rng = np.random.default_rng(4)
    x = rng.standard_normal(80)
    return {"x": x, "y": rng.poisson(rng.gamma(2.0, np.exp(0.8 + 0.6 * x) / 2.0)).astype(float)}


def model(d):
    m = hg.Model()
    a, b = m.gaussian("a", 0.0, sd=2.0), m.gaussian("b", 0.0, sd=2.0)
    m.negative_binomial("y", log_mean=a + b * d["x"], dispersion=2.0, observed=d["y"])
    return m


if __name__ == "__main__":
    print(model(data()).infer().summary())
