"""A 95 % interval of a rate."""

import heliograph as hg

model = hg.Model()
rate = model.gamma("rate", 1.0, 1.0)
model.poisson("count", rate, observed=[3, 1, 4, 1, 5])
lower, upper = model.infer()[rate].interval(0.95)
print(lower, upper)
