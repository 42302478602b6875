"""Cells of the integration: boxes on the whitened axes with what was found at their nodes, and sums over them."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np

from heliograph.oracles.frames import log_totals

__all__ = ["Cells", "Map", "halves", "join", "log_below", "log_sum", "log_total", "mean_sizes", "take"]


class Cells(NamedTuple):
    """Boxes on the whitened axes, and what was found at their nodes."""

    row: np.ndarray  # (c,)
    choice: np.ndarray  # (c,), which combination of the discrete inputs
    low: np.ndarray  # (c, C)
    high: np.ndarray  # (c, C)
    u: np.ndarray  # (c, g, D)
    v: np.ndarray  # (c, g, Dout)
    edge: np.ndarray  # (c, g)
    log_w: np.ndarray  # (c, g), integrand times quadrature weight
    log_most: np.ndarray  # (c,), bound on the log integral over the cell
    log_unlooked: np.ndarray  # (c, 2), bound on the log mass where the function gave no value, or an infinite one
    place: np.ndarray  # (c, D), one node at which it gave no value; NaN if there is none
    forced: np.ndarray  # (c,), accepted without being resolved
    offset: np.ndarray  # (c,), the largest log_w, or -1e300
    sums: np.ndarray  # (c, 1 + Q), of the weights and of weights times statistics, over exp(offset)
    sizes: np.ndarray  # (c, Q), the same without signs
    largest: np.ndarray  # (c, Q), the largest size of each statistic at a node
    missed: np.ndarray  # (c,), what may lie between the outermost nodes and the border, over exp(offset)


class Map(NamedTuple):
    """From whitened axes to coordinates, and the combinations of the discrete inputs."""

    mean: np.ndarray  # (n, C)
    root: np.ndarray  # (n, C, C)
    choices: np.ndarray  # (number of combinations, number of discrete inputs)


def halves(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every box cut in two along every axis, the parts of a box one after the other."""
    d = low.shape[1]
    middle = 0.5 * (low + high)
    sides = np.array(list(product((0, 1), repeat=d)), dtype=bool).reshape(2**d, d)
    lows = np.where(sides, middle[:, None], low[:, None]).reshape(-1, d)
    return lows, np.where(sides, high[:, None], middle[:, None]).reshape(-1, d)


def log_sum(cells: Cells) -> np.ndarray:
    """The log integral (c,) over each cell."""
    total = cells.sums[:, 0]
    return np.where(total > 0, cells.offset + np.log(np.where(total > 0, total, 1.0)), -np.inf)


def log_total(n: int, cells: Cells) -> np.ndarray:
    """The log integral (n,) over the cells of each row."""
    return log_totals(n, cells.row, log_sum(cells))


def take(cells: Cells, which: np.ndarray) -> Cells:
    """Some of the cells."""
    return Cells(*(a[which] for a in cells))


def join(parts: list[Cells]) -> Cells:
    """Cells one after the other."""
    return parts[0] if len(parts) == 1 else Cells(*(np.concatenate(a) for a in zip(*parts, strict=True)))


def log_below(log_part: np.ndarray, log_total: np.ndarray) -> np.ndarray:
    """``log_part - log_total``, and -inf where there is nothing."""
    some = np.isfinite(log_part) & np.isfinite(log_total)
    return np.where(some, np.where(some, log_part, 0.0) - np.where(some, log_total, 0.0), -np.inf)


def mean_sizes(n: int, cells: Cells, log_total: np.ndarray) -> np.ndarray:
    """What cells add to the mean size (n, Q) of each statistic under a belief of that total."""
    sizes = np.zeros((n, cells.sizes.shape[1]))
    safe = np.where(np.isfinite(log_total), log_total, 0.0)
    np.add.at(sizes, cells.row, cells.sizes * np.exp(np.minimum(cells.offset - safe[cells.row], 50.0))[:, None])
    return sizes
