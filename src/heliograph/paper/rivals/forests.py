"""Breiman's random forest and extremely randomised trees (scikit-learn's), with the variance across trees as doubt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from heliograph.errors import ModelError

__all__ = ["ExtraTrees", "RandomForest"]


@dataclass(eq=False)
class _Forest:
    """One forest per output: trees shared by the outputs would be cut for the one of largest variance."""

    _kind: ClassVar[str]  # the name of scikit-learn's class, which is loaded when the first forest is grown

    n_trees: int = 64
    min_leaf: int = 1
    n_jobs: int = 1
    random_state: int = 0

    def fit(self, X: Any, Y: Any) -> Self:
        """Grow the forests on rows `X` (n, d) and outputs `Y` (n, q)."""
        from sklearn import ensemble

        Y = np.asarray(Y, dtype=float)
        if Y.ndim != 2:
            raise ModelError(f"Y must be a matrix, one row per case; this one has {Y.ndim} axes")
        grow = getattr(ensemble, self._kind)
        self.forests_ = [
            grow(
                self.n_trees, min_samples_leaf=self.min_leaf, n_jobs=self.n_jobs, random_state=self.random_state + k
            ).fit(X, y)
            for k, y in enumerate(Y.T)
        ]
        return self

    def trees(self, X: Any) -> np.ndarray:
        """The answer of every tree, (n_trees, n, q)."""
        if not hasattr(self, "forests_"):
            raise ModelError(f"this {type(self).__name__} has seen no rows yet: call fit before predict")
        X = np.asarray(X, dtype=np.float32)  # what scikit-learn's trees read; converted once, not once per tree
        return np.stack([[tree.predict(X) for tree in forest.estimators_] for forest in self.forests_], axis=-1)

    def predict(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """The mean of the trees' answers and their variance, each (n, q)."""
        trees = self.trees(X)
        return trees.mean(axis=0), trees.var(axis=0)


class RandomForest(_Forest):
    """Breiman's random forest (2001): bootstrapped trees, each cut at the best threshold.

    >>> x = np.linspace(0, 1, 500)[:, None]
    >>> mean, variance = RandomForest(n_trees=16).fit(x, 2 * x).predict(np.array([[0.25]]))
    >>> mean.round(1)
    array([[0.5]])
    """

    _kind = "RandomForestRegressor"


class ExtraTrees(_Forest):
    """Extremely randomised trees (Geurts, Ernst and Wehenkel 2006): all rows in every tree, thresholds at random."""

    _kind = "ExtraTreesRegressor"
