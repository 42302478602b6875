"""Spike and slab: which of four columns a regression needs. Every subset is a branch of its own, so the answer is exact."""

from itertools import product

import numpy as np

import heliograph as hg


def data():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(25, 4))
    return x, x @ [1.0, 0.0, -0.5, 0.0] + rng.normal(0.0, 1.0, 25)


def model(seen):
    x, y = seen
    m = hg.Model()
    needed = [m.bernoulli(f"needed {j}", 0.3) for j in range(4)]
    w = m.gaussian("w", np.zeros(4), covariance=np.eye(4))  # the slab
    for subset in product((0, 1), repeat=4):
        a, b, c, d = (switch == k for switch, k in zip(needed, subset, strict=True))
        with m.when(a & b & c & d):
            m.gaussian("y", (x * subset) @ w, variance=1.0, observed=y)
    return m


if __name__ == "__main__":
    posterior = model(data()).infer()
    for j in range(4):
        print(f"column {j} is needed with probability {float(posterior[f'needed {j}'].p):.3f}")
    print("the best subset:", posterior.best)
