"""Lifetimes of two groups, a third of them still alive when the study ends."""

import numpy as np

import heliograph as hg


def data():
    rng = np.random.default_rng(9)
    treated = np.repeat([0.0, 1.0], 40)
    life = np.exp(1.0 + 0.6 * treated) * rng.weibull(1.5, 80)
    return {"treated": treated, "t": np.minimum(life, 4.0), "alive": life > 4.0}


def model(d):
    m = hg.Model()
    base, effect = m.gaussian("base", 0.0, sd=2.0), m.gaussian("effect", 0.0, sd=1.0)
    m.weibull("t", 1.5, log_scale=base + effect * d["treated"], observed=d["t"], censored=d["alive"])
    return m


if __name__ == "__main__":
    print(model(data()).infer().summary())
