"""Which of as many columns each row is given, so that the total is largest."""

from __future__ import annotations

import numpy as np

__all__ = ["best_assignment"]


def best_assignment(score: np.ndarray) -> np.ndarray:
    """The column ``(k,)`` of each row of a square matrix, all different: those of the largest total score.

    >>> best_assignment(np.array([[1.0, 2.0], [0.0, 5.0]]))
    array([0, 1])
    """
    from scipy.optimize import linear_sum_assignment  # slow to import, and few models are mixtures

    return linear_sum_assignment(score, maximize=True)[1]  # rows come in their order
