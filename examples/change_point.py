"""A change point: in which year did the rate of accidents change? The switch is the year, with a branch for each."""

import numpy as np

import heliograph as hg


def data():
    rng = np.random.default_rng(1)
    return np.concatenate([rng.poisson(3.0, 14), rng.poisson(1.0, 16)])


def model(accidents):
    m = hg.Model()
    n = len(accidents)
    year = m.categorical("year", np.full(n - 1, 1.0 / (n - 1)))  # k: the years up to k are the old ones
    old, new = m.gamma("old", 2.0, 1.0), m.gamma("new", 2.0, 1.0)
    for k in range(n - 1):
        with m.when(year == k):
            m.poisson("before", old, observed=accidents[: k + 1])
            m.poisson("after", new, observed=accidents[k + 1 :])
    return m


if __name__ == "__main__":
    posterior = model(data()).infer()
    print("the change came after year", int(posterior["year"].p.argmax()))
    print("rates", float(posterior["old"].mean), "and then", float(posterior["new"].mean))
