"""Joint draws of an intercept and a slope."""

import numpy as np

import heliograph as hg

t = np.linspace(5.0, 10.0, 30)
model = hg.Model()
a, b = model.gaussian("a", 0.0, sd=10.0), model.gaussian("b", 0.0, sd=10.0)
model.gaussian("y", a + b * t, sd=1.0, observed=1.0 + 2.0 * t)
draws = model.infer().sample(1000, seed=0)
print(np.corrcoef(draws["a"], draws["b"])[0, 1])
