"""A category given others, by a table whose rows are unknown: ``P(child = j | parents = k) = row_k[j]``, rows Dirichlet.

Given the row that counts, the child is one draw from it. A row's own tilted distribution is a mixture: with probability
``w_j`` it was chosen and gave j, which is one count more for j, and with the rest it was not chosen and stays as it was
(docs/decisions/0049).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from heliograph.factors.base import Factor, Incoming
from heliograph.factors.incoming import as_message
from heliograph.families import Bernoulli, Categorical, Dirichlet, Family
from heliograph.numerics.inverse_dirichlet import raised_centre
from heliograph.numerics.logarithms import log_or_minus_inf
from heliograph.numerics.special import logsumexp

__all__ = ["DirichletTable", "DirichletTuple"]

_KINDS = (Categorical, Bernoulli)
_HOW = "closed form, projected"


class _Tilted(NamedTuple):
    """The table under everything that comes in."""

    log_mean: np.ndarray  # (n, R, J) log of the rows' means
    log_joint: np.ndarray  # (n, R, J) the same times the weights of row and child, not normalised
    log_z: np.ndarray  # (n,)


class DirichletTable(Factor):
    """``P(child = j | parents = k) = row_k[j]`` with Dirichlet rows at the ports row0, row1, ...

    There is a row for every combination of the parents' categories, the last parent's running fastest. Messages to parents and
    child are exact sums over the others; where a row that may count is improper they are uniform. Within a discrete block the
    parents and the child are one tuple, see `DirichletTuple`.
    """

    name = "dirichlet_table"
    families = {"row0": (Dirichlet,), "row1": (Dirichlet,), "parent0": _KINDS, "child": (Categorical,)}  # noqa: RUF012
    how = {"row0": _HOW, "row1": _HOW, "parent0": "closed form", "child": "closed form"}  # noqa: RUF012

    def __init__(self, sizes: tuple[int, ...] = (2,)) -> None:
        """`sizes` are the numbers of categories of the parents."""
        self.sizes = sizes
        self.rows = tuple(f"row{k}" for k in range(int(np.prod(sizes))))
        self.parents = tuple(f"parent{k}" for k in range(len(sizes)))
        self.ports = (*self.rows, *self.parents, "child")  # type: ignore[misc]
        self.families = {  # type: ignore[misc]
            **dict.fromkeys(self.rows, (Dirichlet,)),
            **dict.fromkeys(self.parents, _KINDS),
            "child": (Categorical,),
        }
        self.how = {**dict.fromkeys(self.ports, "closed form"), **dict.fromkeys(self.rows, _HOW)}  # type: ignore[misc]
        self.ignores_own = (*self.parents, "child")  # type: ignore[misc]

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        """To a row fractions of counts; to a category the rows' means, summed with the weights of the others."""
        rows, valid = _rows_of(self, incoming)
        if to in self.rows:
            return _to_row(self.rows.index(to), rows, valid, _tilted(rows, self._log_weight(incoming)))
        tilted = _tilted(rows, self._log_weight(incoming, but=to))
        ends = (*self.parents, "child")
        joint = tilted.log_joint.reshape(-1, *self.sizes, tilted.log_joint.shape[-1])
        others = tuple(1 + k for k, port in enumerate(ends) if port != to)
        weight = np.asarray(logsumexp(joint, axis=others))
        weight = np.where(valid[:, None], weight, 0.0)
        kind = Bernoulli if to != "child" and isinstance(incoming[to], Bernoulli) else Categorical
        return kind.from_log_weights(weight, strict=False)

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the mean table under the messages of parents and child."""
        rows, valid = _rows_of(self, incoming)
        return np.where(valid, _tilted(rows, self._log_weight(incoming)).log_z, np.inf)

    def _log_weight(self, incoming: Incoming, but: str = "") -> np.ndarray:
        """The log weights (n, R, J) of row and child by what comes in at parents and child."""
        j = incoming["row0"].naturals[0].shape[-1]
        weight = np.zeros((1,) * (len(self.sizes) + 2))
        for k, port in enumerate((*self.parents, "child")):
            if port != but:
                log_p = as_message(self, incoming, port).log_p
                shape = [len(log_p)] + [1] * (len(self.sizes) + 1)
                shape[1 + k] = log_p.shape[-1]
                weight = weight + log_p.reshape(shape)
        whole = (max(len(weight), incoming["row0"].shape[0]), *self.sizes, j)
        return np.broadcast_to(weight, whole).reshape(whole[0], -1, j)


class DirichletTuple(Factor):
    """The same with parents and child as one category x: number ``k J + j`` is row k and child j."""

    name = "dirichlet_tuple"
    families = {"row0": (Dirichlet,), "row1": (Dirichlet,), "x": (Categorical,)}  # noqa: RUF012
    how = {"row0": _HOW, "row1": _HOW, "x": "closed form"}  # noqa: RUF012
    ignores_own = ("x",)

    def __init__(self, n_rows: int = 2) -> None:
        self.rows = tuple(f"row{k}" for k in range(n_rows))
        self.ports = (*self.rows, "x")  # type: ignore[misc]
        self.families = {**dict.fromkeys(self.rows, (Dirichlet,)), "x": (Categorical,)}  # type: ignore[misc]
        self.how = {**dict.fromkeys(self.rows, _HOW), "x": "closed form"}  # type: ignore[misc]

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        """To a row fractions of counts; to x the rows' means."""
        rows, valid = _rows_of(self, incoming)
        if to == "x":
            mean = _log_mean(rows).reshape(len(rows), -1)
            return Categorical.from_log_weights(np.where(valid[:, None], mean, 0.0), strict=False)
        return _to_row(self.rows.index(to), rows, valid, _tilted(rows, self._log_weight(incoming, rows)))

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the mean table under the message of x."""
        rows, valid = _rows_of(self, incoming)
        return np.where(valid, _tilted(rows, self._log_weight(incoming, rows)).log_z, np.inf)

    def _log_weight(self, incoming: Incoming, rows: _Rows) -> np.ndarray:
        return as_message(self, incoming, "x").log_p.reshape(-1, *rows.a.shape[1:])


class _Rows(NamedTuple):
    """The messages of all rows."""

    a: np.ndarray  # (n, R, J) concentrations, 1 where they say nothing
    log_point: np.ndarray | None  # (n, R, J) log probabilities of rows that are known, NaN of others

    def __len__(self) -> int:
        return len(self.a)


def _rows_of(factor: Any, incoming: Incoming) -> tuple[_Rows, np.ndarray]:
    """The rows' concentrations, and where all of them are distributions."""
    rows = [as_message(factor, incoming, port) for port in factor.rows]
    n = max(m.shape[0] for m in rows)
    rows = [m.broadcast_to((n,)) for m in rows]
    proper = np.stack([m.proper for m in rows], axis=1)
    a = np.stack([m.naturals[0] for m in rows], axis=1) + 1.0
    a = np.where(proper[..., None], a, 1.0)
    point = None
    if any(m.point is not None for m in rows):
        values = [np.full(a[:, 0].shape, np.nan) if m.point is None else m.point for m in rows]
        known = np.stack(values, axis=1)
        point = np.where(np.isnan(known), np.nan, log_or_minus_inf(known))
    return _Rows(a, point), np.asarray(proper.all(axis=1))


def _log_mean(rows: _Rows) -> np.ndarray:
    mean = np.log(rows.a) - np.log(rows.a.sum(axis=-1, keepdims=True))
    return mean if rows.log_point is None else np.where(np.isnan(rows.log_point), mean, rows.log_point)


def _tilted(rows: _Rows, log_weight: np.ndarray) -> _Tilted:
    log_mean = _log_mean(rows)
    joint = log_mean + log_weight
    return _Tilted(log_mean, joint, np.asarray(logsumexp(joint, axis=(1, 2))))


def _to_row(k: int, rows: _Rows, valid: np.ndarray, tilted: _Tilted) -> Dirichlet:
    """The projection of ``(1 - W) Dir(a) + sum_j w_j Dir(a + e_j)`` on its ``E log p``, divided by Dir(a)."""
    a = rows.a[:, k]
    possible = np.isfinite(tilted.log_z)
    w = np.exp(tilted.log_joint[:, k] - np.where(possible, tilted.log_z, 0.0)[:, None])  # P(row k chosen, child j)
    chosen = w.sum(axis=-1)
    known = chosen == w.max(axis=-1)  # one category at most: with probability 1 this is one count
    certain = known & (chosen == 1.0)
    open_ = np.ones(len(a), dtype=bool) if rows.log_point is None else np.isnan(rows.log_point[:, k, 0])
    soft = valid & possible & ~certain & (chosen > 0) & open_
    w = np.where(soft[:, None], w, 0.0)
    # psi(a + 1) = psi(a) + 1 / a
    total = a.sum(axis=-1, keepdims=True)
    rise = w / a - w.sum(axis=-1, keepdims=True) / total
    projected = Dirichlet.from_log_centre_and_gap(*raised_centre(a, rise), strict=False)
    message = np.where(soft[:, None], projected.naturals[0] - (a - 1.0), 0.0)
    hot = np.arange(a.shape[-1]) == tilted.log_joint[:, k].argmax(axis=-1)[:, None]
    return Dirichlet.from_naturals((np.where((certain & valid & open_)[:, None], hot.astype(float), message),))
