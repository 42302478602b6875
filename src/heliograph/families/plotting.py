"""Densities of beliefs as pictures; matplotlib is loaded when one is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from heliograph.errors import ModelError

__all__ = ["MOST", "draw_marginals"]

MOST = 10  # entries in one picture; more cannot be told apart
_NODES = 400


def draw_marginals(belief: Any, ax: Any = None, names: Sequence[str] | None = None) -> Any:
    """Draw the first entries of a belief: densities as lines, probabilities as bars, point masses as vertical lines.

    Parameters
    ----------
    belief
        Any member of a family, or whatever else is read like one (quantiles and log densities).
    ax
        Matplotlib's axes; new ones by default.
    names
        Labels of the entries.
    """
    if ax is None:
        from matplotlib import pyplot

        ax = pyplot.subplots()[1]
    if getattr(belief, "discrete", False):
        _bars(belief, ax, names)
    else:
        _lines(belief.marginals(), ax, names)
    return ax


def _lines(one: Any, ax: Any, names: Sequence[str] | None) -> None:
    flat = one.reshape((one.size,))
    labels = _labels(names, flat.size)
    if not np.any(flat.proper):
        raise ModelError("there is nothing to draw: no entry is a distribution")
    for i, label in zip(range(min(flat.size, MOST)), labels, strict=False):
        entry = flat[i : i + 1]
        if not entry.proper[0]:
            continue
        if entry.is_point[0]:
            ax.axvline(float(entry.point[0]), label=label, linestyle="--", color="grey")
            continue
        ends: np.ndarray = entry.quantile([0.0005, 0.9995])
        x = np.linspace(float(ends[0, 0]), float(ends[1, 0]), _NODES)
        ax.plot(x, np.exp(entry.log_density(x)), label=label)
    ax.set_ylabel("density")
    _legend(ax, flat.size)


def _bars(belief: Any, ax: Any, names: Sequence[str] | None) -> None:
    p = np.atleast_1d(belief.mean)
    if belief.point_rank == 0 and belief.ranks == (1,):  # categories: one group of bars per entry
        rows = p.reshape(-1, p.shape[-1])[:MOST]
        width = 0.8 / len(rows)
        for i, (row, label) in enumerate(zip(rows, _labels(names, len(rows)), strict=False)):
            ax.bar(np.arange(len(row)) + (i - (len(rows) - 1) / 2) * width, row, width, label=label)
        ax.set_xlabel("category")
        _legend(ax, len(rows))
    else:
        flat = p.reshape(-1)
        ax.bar(np.arange(flat.size), flat)
        ax.set_xlabel("entry")
    ax.set_ylabel("probability")
    ax.set_ylim(0, 1)


def _labels(names: Sequence[str] | None, n: int) -> list[str]:
    if names is None:
        return [str(i) for i in range(n)]
    if len(names) < min(n, MOST):
        raise ModelError(f"{len(names)} names were given for {n} entries")
    return [str(name) for name in names]


def _legend(ax: Any, n: int) -> None:
    if n > 1:
        ax.legend(title=f"first {MOST} of {n}" if n > MOST else None)
