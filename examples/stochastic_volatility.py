"""Stochastic volatility: the log variance of daily returns is a slow random walk back to its mean."""

import numpy as np

import heliograph as hg

N, PHI, SD = 60, 0.95, 0.3


def data():
    rng = np.random.default_rng(11)
    h = np.zeros(N)
    for t in range(1, N):
        h[t] = PHI * h[t - 1] + SD * rng.standard_normal()
    return np.exp(h / 2) * rng.standard_normal(N)


def covariance():
    lag = np.abs(np.arange(N)[:, None] - np.arange(N))
    return SD**2 / (1 - PHI**2) * PHI**lag


def model(y):
    m = hg.Model()
    h = m.gaussian("h", np.zeros(N), covariance=covariance())
    m.gaussian("y", 0.0, precision=m.exp(-1.0 * h[:]), observed=y)
    return m


if __name__ == "__main__":
    print(model(data()).infer()["h"].mean)
