"""Compare a constant and a line by their evidence."""

import numpy as np

import heliograph as hg

t, y, found = np.arange(10.0), np.arange(10.0) * 0.3 + 1.0, {}
for name, design in (("constant", np.ones((10, 1))), ("line", np.stack([np.ones(10), t], axis=1))):
    model = hg.Model()
    w = model.gaussian("w", np.zeros(design.shape[1]), covariance=np.eye(design.shape[1]))
    model.gaussian("y", design @ w, sd=0.5, observed=y)
    found[name] = model.infer()
comparison = hg.compare(found)
print(comparison)
