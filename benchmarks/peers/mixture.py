"""The mode of a mixture of unit Gaussians by hand."""

import numpy as np


def em(y, means):
    """The mode that EM finds from the true means: known variance 1 and equal weights."""
    for _ in range(50):
        r = np.exp(-0.5 * (y[:, None] - means) ** 2)
        r /= r.sum(axis=1, keepdims=True)
        means = r.T @ y / r.sum(axis=0)
    return means
