"""Eight schools: effects of coaching with known errors, around a mean, with a half-Cauchy spread (Rubin 1981)."""

import numpy as np

import heliograph as hg


def data():
    effect = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
    return {"y": effect, "error": np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])}


def model(d):
    m = hg.Model()
    tau = m.half_cauchy("tau", 5.0)
    mu = m.gaussian("mu", 0.0, sd=5.0)
    theta = m.gaussian("theta", mu, sd=tau, size=8)
    m.gaussian("y", theta, sd=d["error"], observed=d["y"])
    return m


if __name__ == "__main__":
    print(model(data()).infer().summary())
