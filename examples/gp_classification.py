"""Gaussian process classification: a smooth log odds from labels."""

import numpy as np

import heliograph as hg


def data():
    rng = np.random.default_rng(7)
    x = np.sort(rng.uniform(-3, 3, 40))
    return {"x": x, "y": (rng.random(40) < 1 / (1 + np.exp(-3 * np.sin(x)))).astype(float)}


def covariance(x):
    return 4.0 * np.exp(-0.5 * (x[:, None] - x) ** 2) + 1e-6 * np.eye(len(x))


def model(d):
    m = hg.Model()
    f = m.gaussian("f", np.zeros(40), covariance=covariance(d["x"]))
    m.bernoulli("y", logit=f[:], observed=d["y"])
    return m


if __name__ == "__main__":
    print(model(data()).infer()["f"].mean)
