"""Successes in many hospitals, whose log odds vary by an unknown amount."""

import numpy as np

import heliograph as hg


def data():
    rng = np.random.default_rng(10)
    n = rng.integers(10, 60, 15)
    z = -1.0 + 0.6 * rng.standard_normal(15)
    return {"n": n.astype(float), "y": rng.binomial(n, 1 / (1 + np.exp(-z))).astype(float)}


def model(d):
    m = hg.Model()
    spread = m.half_normal("spread", 1.0)
    mean = m.gaussian("mean", 0.0, sd=2.0)
    z = m.gaussian("z", mean, sd=spread, size=15)
    m.binomial("y", d["n"], logit=z, observed=d["y"])
    return m


if __name__ == "__main__":
    print(model(data()).infer().summary())
