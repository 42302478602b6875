"""A line through points of which some are outliers: Student's t noise."""

import numpy as np

import heliograph as hg


def data():
    rng = np.random.default_rng(3)
    x = rng.uniform(-2, 2, 40)
    y = 1.0 + 2.0 * x + 0.4 * rng.standard_normal(40)
    y[:4] += 8.0
    return {"x": x, "y": y}


def model(d):
    m = hg.Model()
    a, b = m.gaussian("a", 0.0, sd=5.0), m.gaussian("b", 0.0, sd=5.0)
    m.student_t("y", a + b * d["x"], scale=0.4, dof=3.0, observed=d["y"])
    return m


if __name__ == "__main__":
    print(model(data()).infer().summary())
