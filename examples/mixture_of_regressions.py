"""A mixture of regressions: two crossing lines, and nobody wrote down which point belongs to which.

On these data coefficients are within .1 sd and 10 % of Gibbs sampling; where the lines cross, a point may belong to either.
"""

import numpy as np

import heliograph as hg


def data():
    rng = np.random.default_rng(22)
    x, second = rng.uniform(-3.0, 3.0, 150), rng.random(150) < 0.4
    y = np.where(second, -1.0 - 1.5 * x, 1.0 + 2.0 * x) + 0.5 * rng.standard_normal(150)
    return np.stack([np.ones(150), x], axis=1), y


def model(d):
    design, y = d
    m = hg.Model()
    w = m.gaussian("w", np.zeros((2, 2)), covariance=25.0 * np.eye(2))
    share = m.beta("share", 1.0, 1.0)
    which = m.bernoulli("which", share, size=len(y))
    m.mixture("y", which, lambda k: m.gaussian("y", design @ w[k], sd=0.5), observed=y)
    return m


if __name__ == "__main__":
    posterior = model(data()).infer()
    print(posterior["w"], posterior["share"], sep="\n")
