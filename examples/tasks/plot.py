"""Plot a posterior and its model."""

import matplotlib

matplotlib.use("Agg")
import heliograph as hg

model = hg.Model()
p = model.beta("p", 1.0, 1.0, size=3)
model.binomial("wins", 20, p, observed=[3, 10, 17])
axes = model.infer().plot()
graph = model.plot()
print(len(axes), graph.get_title())
