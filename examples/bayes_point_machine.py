"""A Bayes point machine: a linear classifier with Gaussian noise, also known as probit regression."""

import numpy as np

import heliograph as hg


def data():
    rng = np.random.default_rng(1)
    x = np.column_stack([np.ones(60), rng.standard_normal((60, 2))])
    return {"x": x, "y": (x @ [0.5, 1.5, -1.0] + rng.standard_normal(60) > 0).astype(float)}


def model(d):
    m = hg.Model()
    w = m.gaussian("w", np.zeros(3), covariance=4.0 * np.eye(3))
    m.bernoulli("y", probit=d["x"] @ w, observed=d["y"])
    return m


if __name__ == "__main__":
    print(model(data()).infer().summary())
