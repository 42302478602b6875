"""Counts of seizures in groups that differ by an unknown amount, with exposures."""

import numpy as np

import heliograph as hg


def data():
    rng = np.random.default_rng(13)
    group, x, log_weeks = np.repeat(np.arange(12), 5), rng.standard_normal(60), np.log(rng.uniform(1, 6, 60))
    z = 0.3 + 0.4 * x + 0.5 * rng.standard_normal(12)[group] + log_weeks
    return {"group": group, "x": x, "log_weeks": log_weeks, "y": rng.poisson(np.exp(z)).astype(float)}


def model(d):
    m = hg.Model()
    spread = m.half_normal("spread", 1.0)
    a, b = m.gaussian("a", 0.0, sd=2.0), m.gaussian("b", 0.0, sd=2.0)
    effect = m.gaussian("effect", 0.0, sd=spread, size=12)
    m.poisson("y", log_rate=a + b * d["x"] + effect[d["group"]] + d["log_weeks"], observed=d["y"])
    return m


if __name__ == "__main__":
    print(model(data()).infer().summary())
