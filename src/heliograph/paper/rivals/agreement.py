"""How the trees of a forest agree, in nats: the average belief and the mean divergence from it (Eslami et al. 2014)."""

from __future__ import annotations

import numpy as np

from heliograph.families import Family
from heliograph.families.coordinates import Coordinates

__all__ = ["Agreement", "average_belief", "disagreement"]


def average_belief(beliefs: Family) -> Family:
    """The member whose expected statistics are the average of those of the first plate axis.

    Of all members it is the one with the least mean KL from the beliefs.

    >>> from heliograph.families import Gaussian
    >>> average_belief(Gaussian([[-1.0], [1.0]], 1.0))
    Gaussian[mean 0., variance 2.]
    """
    return type(beliefs).from_statistics(*(s.mean(axis=0) for s in beliefs.expected_statistics()))


def disagreement(beliefs: Family) -> np.ndarray:
    """The mean over the first plate axis of ``KL(belief || average belief)``, in nats.

    >>> from heliograph.families import Gaussian
    >>> disagreement(Gaussian([[-1.0], [1.0]], 1.0)).round(4)  # log(2) / 2
    array([0.3466])
    """
    average = average_belief(beliefs)
    return np.mean([beliefs[t].kl(average) for t in range(beliefs.shape[0])], axis=0)


class Agreement:
    """What a forest of numbers needs to know of their meaning: its `combine` and its `disagreement`.

    A row where some tree's numbers are those of no belief is combined by the plain mean, and is in infinite doubt.
    """

    def __init__(self, coordinates: Coordinates, event_size: int = 1) -> None:
        self.coordinates = coordinates
        self.event_size = event_size

    def _beliefs(self, trees: np.ndarray) -> tuple[Family, np.ndarray]:
        n_trees, n, q = trees.shape
        beliefs, valid = self.coordinates.decode(trees.reshape(-1, q), self.event_size)
        return beliefs.reshape((n_trees, n)), np.logical_and.reduce(np.reshape(valid, (n_trees, n)))

    def combine(self, trees: np.ndarray) -> np.ndarray:
        """The average belief of trees ``(n_trees, n, q)`` in the same coordinates, (n, q)."""
        beliefs, valid = self._beliefs(trees)
        out = trees.mean(axis=0)
        if valid.any():
            out[valid] = self.coordinates.encode(average_belief(beliefs[:, valid]))
        return out

    def disagreement(self, trees: np.ndarray) -> np.ndarray:
        """Mean KL from the average belief, (n,); infinite where a tree gives no belief."""
        beliefs, valid = self._beliefs(trees)
        out = np.full(len(valid), np.inf)
        if valid.any():
            out[valid] = disagreement(beliefs[:, valid])
        return out
