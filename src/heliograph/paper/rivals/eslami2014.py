"""The random forest of Eslami, Tarlow, Kohli and Winn (2014), which learns row by row and says when its trees differ.

Every tree sees every row. A node is split when it holds more than `max_leaf` rows, by the best of `n_candidates` random
pairs of a column and a threshold; a leaf holds a ridge regression on the polynomials of degree 2 of its inputs. The
forest answers with the average of its trees, and doubts where they disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from heliograph.errors import FileFormatError, ModelError
from heliograph.numerics.checks import as_matrix
from heliograph.paper.rivals.leaves import fit_leaves, n_quadratic_terms, quadratic_terms, standardised, two_sided_gain

__all__ = ["EslamiForest"]

_REACH = 10.0  # a leaf's parabola is followed this many of the leaf's standard deviations from its centre, no further
_CHUNK = 1 << 21  # numbers in the largest temporary array, 16 MB


@dataclass(eq=False)
class EslamiForest:
    """Trees with quadratic leaves that grow as rows arrive.

    `leaf_columns` are the columns a leaf regresses on (all by default); the trees are walked by all columns, among
    which redundant and non-linear copies do no harm. `combine` turns the trees' outputs ``(n_trees, n, q)`` into the
    forest's ``(n, q)`` (their mean by default), `disagreement` turns them into one uncertainty per row (by default the
    largest variance of any output): hand in functions that know what the numbers mean, for example a mean KL.

    >>> x = np.linspace(-1, 1, 200)[:, None]
    >>> forest = EslamiForest(n_trees=8).fit(x, x**2)
    >>> mean, variance = forest.predict(np.array([[0.5]]))
    >>> mean.round(6), bool(variance[0, 0] < 1e-9)
    (array([[0.25]]), True)
    """

    n_trees: int = 64
    n_candidates: int = 100
    min_leaf: int = 10
    max_leaf: int = 50
    ridge: float = 1e-6
    leaf_columns: Sequence[int] | None = None
    combine: Callable[[np.ndarray], np.ndarray] | None = None
    disagreement: Callable[[np.ndarray], np.ndarray] | None = None
    random_state: int | np.random.Generator = 0

    # ---- learning -----------------------------------------------------------------------------------------------
    def fit(self, X: Any, Y: Any) -> Self:
        """Grow the forest afresh on rows `X` (n, d) and outputs `Y` (n, q)."""
        X, Y = as_matrix(X, "X"), as_matrix(Y, "Y")
        if not 1 <= self.min_leaf <= self.max_leaf / 2:
            raise ModelError("a full leaf must hold two leaves: max_leaf has to be at least 2 x min_leaf, itself >= 1")
        d, q = X.shape[1], Y.shape[1]
        self._empty(d, q, np.array(range(d) if self.leaf_columns is None else self.leaf_columns, dtype=int))
        return self.update(X, Y)

    def _empty(self, d: int, q: int, columns: np.ndarray) -> None:
        """A forest of roots without rows."""
        self.rng_ = np.random.default_rng(self.random_state)
        self.columns_ = columns
        self.n_terms_ = n_quadratic_terms(len(self.columns_))
        self.X_, self.Y_, self.n_rows_ = np.empty((0, d)), np.empty((0, q)), 0
        self.leaf_ = np.empty((self.n_trees, 0), dtype=int)  # the leaf in which a row lies, tree by tree
        self.n_nodes_ = 0
        # one table for all trees; node t is the root of tree t, and the children of a node stand side by side
        self.feature_ = np.empty(0, dtype=int)  # -1 at a leaf
        self.threshold_ = np.empty(0)
        self.child_ = np.empty(0, dtype=int)  # the left child; the right one is the next
        self.tree_ = np.empty(0, dtype=int)
        self.centre_ = np.empty((0, len(self.columns_)))
        self.scale_ = np.empty((0, len(self.columns_)))
        self.weights_ = np.empty((0, self.n_terms_, q))
        for t in range(self.n_trees):
            self._new_nodes(1, t)

    def update(self, X: Any, Y: Any) -> Self:
        """Add rows: each goes to its leaf in every tree, full leaves split, and leaves that changed are refitted."""
        if not hasattr(self, "X_"):
            return self.fit(X, Y)
        X, Y = as_matrix(X, "X"), as_matrix(Y, "Y")
        if len(X) != len(Y) or X.shape[1] != self.X_.shape[1] or Y.shape[1] != self.Y_.shape[1]:
            raise ModelError(
                f"rows of shape {X.shape} and outputs of shape {Y.shape} do not fit a forest of "
                f"{self.X_.shape[1]} columns and {self.Y_.shape[1]} outputs"
            )
        old, self.n_rows_ = self.n_rows_, self.n_rows_ + len(X)
        self.X_, self.Y_ = _grown(self.X_, self.n_rows_), _grown(self.Y_, self.n_rows_)
        self.X_[old : self.n_rows_], self.Y_[old : self.n_rows_] = X, Y
        self.leaf_ = _grown(self.leaf_.T, self.n_rows_).T
        self.leaf_[:, old : self.n_rows_] = self._route(X)
        touched = []
        pending = list(np.unique(self.leaf_[:, old : self.n_rows_]))
        while pending:
            node = pending.pop()
            rows = self._members(node)
            if len(rows) > self.max_leaf and self._split(node, rows):
                pending += [self.child_[node], self.child_[node] + 1]
            else:
                touched.append((node, rows))
        self._refit(touched)
        self._bound()
        return self

    def _bound(self) -> None:
        low, high = self.Y_[: self.n_rows_].min(axis=0), self.Y_[: self.n_rows_].max(axis=0)
        # no leaf may extrapolate beyond the observed outputs by more than their range
        self.low_, self.high_ = 2 * low - high, 2 * high - low

    def _members(self, node: int) -> np.ndarray:
        return np.flatnonzero(self.leaf_[self.tree_[node], : self.n_rows_] == node)

    def _new_nodes(self, n: int, tree: int) -> int:
        first, self.n_nodes_ = self.n_nodes_, self.n_nodes_ + n
        for name in ("feature_", "threshold_", "child_", "tree_", "centre_", "scale_", "weights_"):
            setattr(self, name, _grown(getattr(self, name), self.n_nodes_))
        self.feature_[first : self.n_nodes_] = -1
        self.tree_[first : self.n_nodes_] = tree
        return first

    def _split(self, node: int, rows: np.ndarray) -> bool:
        """Split a leaf by the candidate whose two sides linear fits explain best; False if there is none."""
        X = self.X_[rows]
        # flags are often constant: constant columns get no candidates
        varying = np.flatnonzero(X.min(axis=0) < X.max(axis=0))
        if not len(varying):
            return False
        feature = varying[self.rng_.integers(len(varying), size=self.n_candidates)]
        threshold = X[self.rng_.integers(len(X), size=self.n_candidates), feature]
        is_left = X[:, feature] <= threshold
        n_left = is_left.sum(axis=0)
        legal = np.flatnonzero((n_left >= self.min_leaf) & (len(X) - n_left >= self.min_leaf))
        if not len(legal):
            return False
        gain = two_sided_gain(standardised(X[:, self.columns_]), standardised(self.Y_[rows]), is_left[:, legal])
        best = legal[np.argmax(gain)]
        child = self._new_nodes(2, self.tree_[node])
        self.feature_[node], self.threshold_[node], self.child_[node] = feature[best], threshold[best], child
        self.leaf_[self.tree_[node], rows] = np.where(is_left[:, best], child, child + 1)
        return True

    def _refit(self, leaves: list[tuple[int, np.ndarray]]) -> None:
        """Ridge regressions of many leaves at once, padded with rows of weight 0; leaves of like size go together."""
        leaves = sorted(leaves, key=lambda leaf: len(leaf[1]))
        start = 0
        while start < len(leaves):
            n_fit = max(1, _CHUNK // (len(leaves[start][1]) * self.n_terms_ + 1))
            part = leaves[start : start + n_fit]
            start += n_fit
            nodes = np.array([node for node, _ in part])
            counts = np.array([len(rows) for _, rows in part])
            there = np.arange(counts[-1]) < counts[:, None]  # (leaves, rows)
            index = np.zeros(there.shape, dtype=int)
            index[there] = np.concatenate([rows for _, rows in part])
            Z, Y = self.X_[index][..., self.columns_], self.Y_[index]
            centre, scale, weights = fit_leaves(Z, Y, there, self.ridge)
            self.centre_[nodes], self.scale_[nodes], self.weights_[nodes] = centre, scale, weights

    # ---- predicting ---------------------------------------------------------------------------------------------
    def _route(self, X: np.ndarray) -> np.ndarray:
        """The leaf of every row in every tree (n_trees, n): all move down one level at a time."""
        node = np.repeat(np.arange(self.n_trees), len(X))
        row = np.tile(np.arange(len(X)), self.n_trees)
        moving = np.flatnonzero(self.feature_[node] >= 0)
        while len(moving):
            at = node[moving]
            at = self.child_[at] + (X[row[moving], self.feature_[at]] > self.threshold_[at])
            node[moving] = at
            moving = moving[self.feature_[at] >= 0]
        return node.reshape(self.n_trees, len(X))

    def trees(self, X: Any) -> np.ndarray:
        """The answer of every tree, (n_trees, n, q)."""
        return self._walk(X)[0]

    def _walk(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """The answer of every tree, (n_trees, n, q), and the share of trees that are blind to a row, (n,).

        A leaf is blind to a row that differs from all its own in a column in which they are equal: it cannot know
        what such a step does, and other trees' leaves that cannot either would agree with it.
        """
        if not hasattr(self, "X_"):
            raise ModelError("this forest has seen no rows yet: call fit or update before predict")
        X = as_matrix(X, "X")
        q = self.Y_.shape[1]
        out, blind = np.empty((self.n_trees, len(X), q)), np.empty(len(X))
        step = max(1, _CHUNK // (self.n_trees * self.n_terms_ * q))
        for start in range(0, len(X), step):
            part = slice(start, start + step)
            leaf = self._route(X[part])
            centre, scale = self.centre_[leaf], self.scale_[leaf]
            gap = X[part, self.columns_] - centre
            is_step = np.isinf(scale) & (np.abs(gap) > 1e-9 * np.abs(centre))
            blind[part] = is_step.any(axis=2).mean(axis=0)
            terms = quadratic_terms(np.clip(gap / scale, -_REACH, _REACH))
            out[:, part] = np.einsum("tnp,tnpq->tnq", terms, self.weights_[leaf])
        return np.clip(out, self.low_, self.high_), blind

    def answer(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """The forest's answer (n, q), and how much the trees disagree about each row (n,).

        The disagreement is infinite until a tree has split, as trees that are all the same leaf agree about anything,
        and where half the trees or more are blind to the row (a departure from the paper, whose forest was always
        trained on rows that vary in everything).
        """
        trees, blind = self._walk(X)
        mean = trees.mean(axis=0) if self.combine is None else self.combine(trees)
        doubt = trees.var(axis=0).max(axis=1) if self.disagreement is None else self.disagreement(trees)
        return mean, np.where(self.has_split & (blind < 0.5), doubt, np.inf)

    def predict(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """The forest's answer and the variance of the trees' answers around their mean, each (n, q).

        The variance is infinite where the disagreement of `answer` is.
        """
        trees, blind = self._walk(X)
        mean = trees.mean(axis=0) if self.combine is None else self.combine(trees)
        return mean, np.where(self.has_split & (blind < 0.5)[:, None], trees.var(axis=0), np.inf)

    # ---- keeping ------------------------------------------------------------------------------------------------
    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """All that was learned, as arrays and JSON; what leaves hold is left out, as their rows give it again."""
        rows, nodes = slice(self.n_rows_), slice(self.n_nodes_)
        arrays = {"X": self.X_[rows], "Y": self.Y_[rows], "leaf": self.leaf_[:, rows], "columns": self.columns_}
        arrays |= {name: getattr(self, name + "_")[nodes] for name in ("feature", "threshold", "child", "tree")}
        return arrays, {"n_trees": self.n_trees, "rng": self.rng_.bit_generator.state}

    def restore(self, arrays: Mapping[str, np.ndarray], header: Mapping[str, Any]) -> Self:
        """Take the place of the forest that gave this state, splits to come included.

        Leaves are fitted again in other company than at first, which may move the last digits of their weights.
        """
        X, Y, n_nodes = arrays["X"], arrays["Y"], len(arrays["feature"])
        leaf, feature, child = arrays["leaf"], arrays["feature"], arrays["child"]
        inner = feature >= 0
        if (
            header["n_trees"] != self.n_trees
            or leaf.shape != (self.n_trees, len(X))
            or len(X) != len(Y)
            or any(len(arrays[name]) != n_nodes for name in ("threshold", "child", "tree"))
            or not ((feature < X.shape[1]) & (~inner | ((child > np.arange(n_nodes)) & (child + 1 < n_nodes)))).all()
            or not ((leaf >= 0) & (leaf < n_nodes)).all()
            or not ((arrays["tree"] >= 0) & (arrays["tree"] < self.n_trees)).all()
            or not ((arrays["columns"] >= 0) & (arrays["columns"] < X.shape[1])).all()
        ):
            raise FileFormatError(f"these arrays are not those of a forest of {self.n_trees} trees")
        self._empty(X.shape[1], Y.shape[1], arrays["columns"])
        self.rng_.bit_generator.state = dict(header["rng"])
        self.X_, self.Y_, self.leaf_ = as_matrix(X, "X").copy(), as_matrix(Y, "Y").copy(), leaf.astype(int)
        self._new_nodes(n_nodes - self.n_nodes_, 0)
        for name in ("feature", "threshold", "child", "tree"):
            getattr(self, name + "_")[:n_nodes] = arrays[name]
        self.n_rows_ = len(X)
        self._refit([(node, self._members(node)) for node in np.unique(leaf)])
        self._bound()
        return self

    @property
    def has_split(self) -> bool:
        """Whether any tree is more than one leaf."""
        return bool((self.feature_[: self.n_trees] >= 0).any())


def _grown(a: np.ndarray, n: int) -> np.ndarray:
    """The same array with room for at least `n` entries; doubling keeps the total cost of growing linear."""
    if n <= len(a):
        return a
    out = np.zeros((max(n, 2 * len(a)), *a.shape[1:]), dtype=a.dtype)
    out[: len(a)] = a
    return out
