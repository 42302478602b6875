"""Adaptive integrals of plates of one-dimensional densities that may be narrow, lopsided or bimodal.

`adapt` halves panels until the density is resolved in each, all rows at once, and hands back the nodes with their
normalised weights, so that a factor can average whatever it likes. Fixed panels, for densities that a factor knows
well enough to place them, are in `panels`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from heliograph.numerics.panels import legendre

__all__ = ["Rule", "adapt", "around", "bounded_exp"]

_NODES = 16
_LEVELS = 60  # halvings after which a panel is as narrow as two neighbouring numbers
# Legendre coefficients 14 and 15 below this share of the row's integral: they fall geometrically, and Gauss' rule
# is exact to degree 31, so its error is about the square of what is left out
_RESOLVED = 1e-9
_UNSURE = 1e-3  # share of the integral in unresolved panels from which on there is no answer: their error is its square
_MOST = 2000  # panels a row: more are only needed where the density itself is rounding noise


class Rule(NamedTuple):
    """Nodes and weights of each row's normalised density, one line a panel."""

    row: np.ndarray  # (panels,) the row that a panel belongs to
    offset: np.ndarray  # (panels, nodes) the nodes, from the row's centre
    weight: np.ndarray  # (panels, nodes), summing to 1 over each row
    log_z: np.ndarray  # (rows,) log of the integral of the density
    centre: np.ndarray  # (rows,)

    @property
    def x(self) -> np.ndarray:
        """The nodes themselves (panels, nodes)."""
        return self.centre[self.row][:, None] + self.offset

    def of(self, values: np.ndarray) -> np.ndarray:
        """One number per row, laid out beside the nodes of that row."""
        return values[self.row][:, None]

    def mean(self, values: np.ndarray) -> np.ndarray:
        """The expectation of what has these values at the nodes, row by row."""
        inside = np.einsum("ij,ij->i", self.weight, values)
        return np.bincount(self.row, weights=inside, minlength=self.log_z.shape[0])


def adapt(
    log_density: Callable[[np.ndarray, np.ndarray], np.ndarray],
    edges: np.ndarray,
    tests: Callable[[np.ndarray, np.ndarray], Sequence[np.ndarray]] | None = None,
    centre: np.ndarray | None = None,
) -> Rule:
    """Resolve ``exp(log_density(offset, row))`` between the first and the last of each row's sorted `edges` (rows, k).

    All is measured from the row's `centre` (0 if there is none), so that a density much narrower than its place keeps
    its digits. `offset` is (panels, nodes) and `row` (panels, 1). `tests` gives functions, 0 or more, whose expectations
    matter and that may be large where the density is small: they are resolved too. A row whose edges or density are
    not numbers, or that has no mass between its edges, ends with NaN for its integral and for every mean.

    >>> r = adapt(lambda x, row: -0.5 * ((x - 3) * 1e5) ** 2, np.array([[-100.0, 100.0]]))
    >>> r.mean(r.x), np.allclose(r.log_z, 0.5 * np.log(2 * np.pi * 1e-10))
    (array([3.]), True)
    """
    centre = np.zeros(edges.shape[0]) if centre is None else centre
    edges = edges - centre[:, None]
    n_rows = edges.shape[0]
    lost = np.asarray(~np.isfinite(edges).all(axis=1))
    if lost.any():
        edges = np.where(lost[:, None], np.arange(edges.shape[1]) > 0, edges)  # one panel for a lost row, of NaN below
    nodes, weights = legendre(_NODES)
    tail = _tail_rows(_NODES)
    left, right = edges[:, :-1].ravel(), edges[:, 1:].ravel()
    row = np.repeat(np.arange(n_rows), edges.shape[1] - 1)
    keep = right > left
    left, right, row = left[keep], right[keep], row[keep]
    top = np.full(n_rows, -np.inf)  # highest node of the finished panels
    done: list[tuple[np.ndarray, ...]] = []
    settled: list[np.ndarray] = []  # sums over finished panels, per row and test, relative to exp(scale)
    scale = np.zeros(n_rows)
    spent = np.zeros(n_rows, dtype=int)  # panels so far
    unsure = np.zeros(n_rows)  # what panels that could not be halved further may be wrong by, relative to exp(scale)
    for level in range(_LEVELS):
        spent += np.bincount(row, minlength=n_rows)
        x = left[:, None] + (right - left)[:, None] * nodes
        log_p = log_density(x, row[:, None])
        peak = log_p.max(axis=1, initial=-np.inf)
        wrong = ~(peak < np.inf)
        if wrong.any() or lost.any():  # nothing is left to resolve in such a row
            lost[row[wrong]] = True
            log_p[lost[row]] = np.nan
            peak[lost[row]] = -np.inf
        highest = top.copy()
        np.maximum.at(highest, row, peak)
        base = np.where(np.isfinite(highest), highest, 0.0)
        p = np.exp(log_p - base[row][:, None])
        values = [p] if tests is None else [p, *(p * np.abs(t) for t in tests(x, row[:, None]))]
        width = right - left
        # from the last level's scale to this one's; only those that underflowed there could overflow here
        rise = np.exp(np.minimum(scale - base, 700.0))
        settled = [s * rise for s in settled] or [np.zeros(n_rows) for _ in values]
        unsure = unsure * rise
        scale = base
        doubt = width * np.abs(p @ tail).max(axis=1)
        good = np.ones(row.shape[0], dtype=bool)
        found = np.zeros(n_rows, dtype=bool)
        parts = []
        for value, before in zip(values, settled, strict=True):
            inside, rest = width * (value @ weights), width * np.abs(value @ tail).max(axis=1)
            # a peak seen at one node looks as wide as its panel: only resolved panels count for the total
            sure = before + np.bincount(
                row, weights=np.where(rest <= _RESOLVED * inside, inside, 0.0), minlength=n_rows
            )
            good &= rest <= _RESOLVED * sure[row]
            found |= sure > 0
            parts.append(inside)
        if not found.all():
            good = np.where(found[row], good, ~_near_top(peak, left, row, highest))
        middle = 0.5 * (left + right)
        good |= lost[row]
        forced = ~good & ((spent[row] > _MOST) | (middle <= left) | (middle >= right) | (level == _LEVELS - 1))
        if forced.any():
            good |= forced
            unsure += np.bincount(row[forced], weights=doubt[forced], minlength=n_rows)
        done.append((row[good], left[good], right[good], log_p[good]))
        np.maximum.at(top, row[good], peak[good])
        settled = [
            s + np.bincount(row[good], weights=part[good], minlength=n_rows)
            for s, part in zip(settled, parts, strict=True)
        ]
        if good.all():
            break
        bad = ~good
        left, middle, right, row = left[bad], middle[bad], right[bad], row[bad]
        left, right, row = np.concatenate([left, middle]), np.concatenate([middle, right]), np.concatenate([row, row])
    row, left, right, log_p = (np.concatenate(parts) for parts in zip(*done, strict=True))
    base = np.where(np.isfinite(top), top, 0.0)
    weight = (right - left)[:, None] * weights * np.exp(log_p - base[row][:, None])
    total = np.bincount(row, weights=weight.sum(axis=1), minlength=n_rows)
    total = np.where((total > 0) & (unsure * np.exp(np.minimum(scale - base, 700.0)) <= _UNSURE * total), total, np.nan)
    weight /= total[row][:, None]
    log_z = base + np.log(total)
    return Rule(row, left[:, None] + (right - left)[:, None] * nodes, weight, log_z, centre)


def _near_top(highest: np.ndarray, left: np.ndarray, row: np.ndarray, top: np.ndarray) -> np.ndarray:
    """The panels with their row's highest node, and their neighbours: a peak between nodes is in one of them."""
    order = np.lexsort((left, row))
    at, r = (highest >= top[row])[order], row[order]
    same = r[1:] == r[:-1]
    near = at.copy()
    near[1:] |= at[:-1] & same
    near[:-1] |= at[1:] & same
    result = np.empty_like(near)
    result[order] = near
    return result


def around(low: np.ndarray, high: np.ndarray, centres: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """Sorted edges (rows, k) from `low` to `high`, dense around each of the `centres` (rows, c), `widths` alike."""
    steps = np.array([-30.0, -12.0, -6.0, -3.0, -1.0, 1.0, 3.0, 6.0, 12.0, 30.0])
    inner = (centres[:, :, None] + widths[:, :, None] * steps).reshape(centres.shape[0], -1)
    inner = np.clip(inner, low[:, None], high[:, None])
    return np.sort(np.concatenate([low[:, None], inner, high[:, None]], axis=1), axis=1)


def bounded_exp(u: np.ndarray) -> np.ndarray:
    """``exp(u)``, but no more than exp(600): far ends of a window in the log of a variable must not overflow."""
    return np.exp(np.minimum(u, 600.0))


def _tail_rows(n: int) -> np.ndarray:
    """Columns that give the Legendre coefficients n - 2 and n - 1 of what has given values at the nodes."""
    nodes, weights = legendre(n)
    basis = np.polynomial.legendre.legvander(2 * nodes - 1, n - 1)[:, -2:]
    return weights[:, None] * basis * (2 * np.arange(n - 2, n) + 1)
