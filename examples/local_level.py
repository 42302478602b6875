"""A local level with a change point: a random walk seen with noise that jumps once, nobody knows when or by how much."""

import numpy as np

import heliograph as hg


def data():
    rng = np.random.default_rng(4)
    level = np.cumsum(0.2 * rng.standard_normal(24)) + 2.0 * (np.arange(24) > 13)
    return level + 0.5 * rng.standard_normal(24)


def model(y):
    m = hg.Model()
    n = len(y)
    when = m.categorical("when", np.full(n - 1, 1.0 / (n - 1)))  # k: the jump comes after time k
    jump = m.gaussian("jump", 0.0, sd=3.0)
    level = m.chain("level", n, hg.Gaussian(0.0, 4.0), lambda last: m.gaussian("level", last, sd=0.2))
    for k in range(n - 1):
        with m.when(when == k):
            m.gaussian("y", level + jump * (np.arange(n) > k), sd=0.5, observed=y)
    return m


if __name__ == "__main__":
    posterior = model(data()).infer()
    print("the jump came after", int(posterior["when"].p.argmax()), "and was", float(posterior["jump"].mean))
