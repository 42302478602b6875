"""The chart of log normalisers, which the default operator learns like one more direction."""

# ruff: noqa: D102 (what the methods do is said once, at `Chart`)
from __future__ import annotations

import numpy as np

__all__ = ["EvidenceChart"]


class EvidenceChart:
    """Not a family: the log normaliser of a tuple, learned like one more direction. Errors count by their square."""

    n_outputs, scalar = 1, False

    def moments(self, log_z):
        return (log_z,)

    def gap(self, moments, reference):
        return (moments[0] - reference[0])[:, None]

    def belief(self, target, reference):
        return reference[0] + target[:, 0]

    def weights(self, target, reference):
        return np.ones(target.shape)

    def noise(self, log_z, variance, reference):
        return variance[:, None]
