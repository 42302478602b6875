"""Gaussian process regression: a smooth function from noisy values."""

import numpy as np

import heliograph as hg


def kernel(a, b):
    return np.exp(-0.5 * (a[:, None] - b) ** 2 / 0.6**2)


def data():
    rng = np.random.default_rng(6)
    x = np.sort(rng.uniform(-3, 3, 25))
    return {"x": x, "y": np.sin(2 * x) + 0.3 * rng.standard_normal(25)}


def model(d):
    m = hg.Model()
    f = m.gaussian("f", np.zeros(25), covariance=kernel(d["x"], d["x"]) + 1e-8 * np.eye(25))
    m.gaussian("y", f[:], sd=0.3, observed=d["y"])
    return m


if __name__ == "__main__":
    posterior = model(data()).infer()
    print(posterior["f"].mean, posterior.log_evidence)
