"""The same sums with every number a logarithm, for tables whose entries differ by more than floating point holds."""

from __future__ import annotations

import numpy as np

from heliograph.numerics.elimination.plan import Plan
from heliograph.numerics.elimination.solve import gathered, rows_first, rows_last, scattered

__all__ = ["solve_in_logs"]


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
