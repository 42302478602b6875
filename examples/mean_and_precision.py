"""The mean and the precision of a Gaussian, both unknown."""

import numpy as np

import heliograph as hg


def data():
    return np.random.default_rng(0).normal(3.0, 2.0, 40)


def model(y):
    m = hg.Model()
    mean = m.gaussian("mean", 0.0, sd=10.0)
    precision = m.gamma("precision", 1.0, 1.0)
    m.gaussian("y", mean, precision=precision, observed=y)
    return m


if __name__ == "__main__":
    print(model(data()).infer().summary())
