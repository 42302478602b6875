"""Exact sums by a plan: forwards in logarithms, backwards in probabilities.

Forwards, the sum over v of a clique is taken from each column's own largest term, so that nothing underflows that counts.
Backwards, ``P(v, N) = P(v | N) P(N)``: the marginal of every table is that of the clique it went into. Inside, the rows of a
table are its last axis: axes of a few categories are far slower to reduce when they lie inside.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heliograph.numerics.elimination.plan import Group, Part, Plan

__all__ = ["Marginals", "gathered", "rows_first", "rows_last", "scattered", "solve", "solve_in_logs"]


_BLAS = 8  # categories from which on products of matrices are faster one by one
_UNRESOLVED = 1e-250  # a sum of products below this is taken again in logarithms


class Marginals(NamedTuple):
    """The normaliser of a product of tables, and the marginals of some of them."""

    log_z: float  # -inf where every configuration is impossible; there are no marginals then
    tables: dict[int, np.ndarray]  # number of a table -> probabilities, in the table's shape


class _Whole(NamedTuple):
    """A group as full tables."""

    conditional: np.ndarray  # (*shape, m) P(v | N)


class _Paired(NamedTuple):
    """A group as two matrices per clique: ``P(v | a, b) = left[v, a] right[v, b] / total[a, b]``."""

    left: np.ndarray
    right: np.ndarray
    total: np.ndarray


def solve(plan: Plan, tables: list[np.ndarray], wanted: tuple[int, ...]) -> Marginals:
    """The log normaliser of the product of `exp(tables)`, and the marginals of the wanted ones."""
    values = [rows_last(t) for t in tables]
    done: list[_Whole | _Paired] = []
    log_z = 0.0
    with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
        for group in plan.groups:
            output, state = _summed(group, values)
            values.append(output)
            done.append(state)
            if len(group.shape) == 1:
                log_z += float(output.sum())
    if not np.isfinite(log_z):
        return Marginals(log_z, {})
    needed = set(wanted)
    found = {k: np.empty(values[k].shape) for k in (*wanted, *range(plan.n_tables, len(values)))}
    for group, state in zip(reversed(plan.groups), reversed(done), strict=True):
        below = found.pop(group.output) if len(group.shape) > 1 else np.ones(group.size)
        parts = [p for p in group.parts if p.source in needed or p.source >= plan.n_tables]
        _spread(state, below, parts, found)
    return Marginals(log_z, {k: rows_first(found[k]) for k in wanted})


def rows_last(table: np.ndarray) -> np.ndarray:
    """The axis of rows moved from the first place to the last."""
    return np.ascontiguousarray(np.moveaxis(np.asarray(table), 0, -1))


def rows_first(table: np.ndarray) -> np.ndarray:
    """The axis of rows moved from the last place to the first."""
    return np.ascontiguousarray(np.moveaxis(table, -1, 0))


# ---- forwards -----------------------------------------------------------------------------------------------------
def _summed(group: Group, values: list[np.ndarray]) -> tuple[np.ndarray, _Whole | _Paired]:
    if group.paired:
        left, right = _sides(group, values)
        top_l, top_r = _finite(left.max(axis=0)), _finite(right.max(axis=0))
        left, right = np.exp(left - top_l), np.exp(right - top_r)
        total = _contracted(left, right)
        if total.min() > _UNRESOLVED:
            return np.log(total) + (top_l[:, None] + top_r), _Paired(left, right, total)
    table = np.zeros((*group.shape, group.size))
    for part in group.parts:
        gathered(part, values[part.source], table)
    top = _finite(table.max(axis=0))
    table = np.exp(table - top)
    total = table.sum(axis=0)
    table /= np.where(total > 0, total, 1.0)
    return np.log(total) + top, _Whole(table)


def _sides(group: Group, values: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The tables of v with its first and with its second neighbour."""
    v, a, b = group.shape
    left, right = np.zeros((v, a, group.size)), np.zeros((v, b, group.size))
    for part in group.parts:
        if 2 in part.axes:
            gathered(part._replace(axes=tuple(min(k, 1) for k in part.axes)), values[part.source], right)
        else:
            gathered(part, values[part.source], left)
    return left, right


def gathered(part: Part, values: np.ndarray, table: np.ndarray) -> None:
    """Add the rows of a part to the tables of their cliques."""
    rows = values[..., part.rows].transpose(part.order)
    if part.counts is not None:
        rows = np.add.reduceat(rows, np.cumsum(part.counts) - part.counts, axis=-1)
    shape = [1] * (table.ndim - 1) + [rows.shape[-1]]
    for axis, size in zip(sorted(part.axes), rows.shape, strict=False):
        shape[axis] = size
    table[..., part.target] += rows.reshape(shape)


def _contracted(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """``sum_k x[k, i, m] y[k, j, m]``, (i, j, m): a product of matrices for every m."""
    if len(x) < _BLAS:
        return np.einsum("kim,kjm->ijm", x, y)
    rows = np.ascontiguousarray(x.transpose(2, 1, 0)) @ np.ascontiguousarray(y.transpose(2, 0, 1))
    return np.ascontiguousarray(rows.transpose(1, 2, 0))


def _finite(top: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(top), top, 0.0)


# ---- backwards ----------------------------------------------------------------------------------------------------
def _spread(state: _Whole | _Paired, below: np.ndarray, parts: list[Part], found: dict[int, np.ndarray]) -> None:
    """Give every part of a group its marginal, from that of the group's output."""
    if isinstance(state, _Whole):
        belief = state.conditional * below
        for part in parts:
            scattered(part, _sum_to(belief, part.axes), found[part.source])
        return
    weight = below / state.total
    left = right = None
    for part in parts:
        if 2 in part.axes:
            if right is None:
                right = state.right * _contracted(state.left.transpose(1, 0, 2), weight)
            flat, belief = tuple(min(k, 1) for k in part.axes), right
        else:
            if left is None:
                left = state.left * _contracted(state.right.transpose(1, 0, 2), weight.transpose(1, 0, 2))
            flat, belief = part.axes, left
        scattered(part._replace(axes=flat), _sum_to(belief, flat), found[part.source])


def _sum_to(belief: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """The marginal on some axes of a clique."""
    others = tuple(k for k in range(belief.ndim - 1) if k not in axes)
    return belief.sum(axis=others) if others else belief


def scattered(part: Part, marginal: np.ndarray, found: np.ndarray) -> None:
    """Write the marginals of cliques, on the axes of a part in ascending order, to the part's rows."""
    rows = marginal[..., part.target]
    if part.counts is not None:
        rows = np.repeat(rows, part.counts, axis=-1)
    found[..., part.rows] = rows.transpose(part.places)


def solve_in_logs(plan: Plan, tables: list[np.ndarray], wanted: tuple[int, ...]) -> dict[int, np.ndarray]:
    """The logarithms of the marginals of the wanted tables; some configuration must be possible."""
    values = [rows_last(t) for t in tables]
    cliques: list[np.ndarray] = []
    with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
        for group in plan.groups:
            table = np.zeros((*group.shape, group.size))
            for part in group.parts:
                gathered(part, values[part.source], table)
            values.append(_log_sum(table, (0,)))
            cliques.append(table)
        needed = (*wanted, *range(plan.n_tables, len(values)))
        found = {k: np.empty(values[k].shape) for k in needed}
        for group, table in zip(reversed(plan.groups), reversed(cliques), strict=True):
            total = values[group.output]
            below = found[group.output] if len(group.shape) > 1 else np.zeros(group.size)
            gap = np.where(np.isneginf(below), -np.inf, below - np.where(np.isneginf(total), 0.0, total))
            belief = table + gap
            for part in group.parts:
                if part.source in found:
                    others = tuple(k for k in range(len(group.shape)) if k not in part.axes)
                    scattered(part, _log_sum(belief, others) if others else belief, found[part.source])
    return {k: rows_first(found[k]) for k in wanted}


def _log_sum(a: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """``log sum exp`` over some axes, -inf where all terms are."""
    top = a.max(axis=axes, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    return np.log(np.exp(a - top).sum(axis=axes)) + top.squeeze(axes)
