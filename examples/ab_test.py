"""An A/B test: which of two pages sells more, and how sure we are."""

import heliograph as hg


def model():
    m = hg.Model()
    p = m.beta("p", 1.0, 1.0, size=2)
    m.binomial("sales", [1000, 1000], p, observed=[110, 135])
    return m


if __name__ == "__main__":
    posterior = model().infer()
    a, b = (posterior["p"].sample(0, 100_000) for _ in "ab")
    print("B is better with probability", (b[:, 1] > a[:, 0]).mean())
