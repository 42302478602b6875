"""Adaptive integrals of plates of one-dimensional densities that may be narrow, lopsided or bimodal.

`adapt` halves panels until the density is resolved in each, all rows at once, and hands back the nodes with their
normalised weights, so that a factor can average whatever it likes. Fixed panels, for densities that a factor knows
well enough to place them, are in `panels`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from heliograph.numerics.panels import legendre

__all__ = ["Rule", "adapt", "around", "bounded_exp", "far_end"]

_NODES = 16
_LEVELS = 60  # halvings after which a panel is as narrow as two neighbouring numbers
# Legendre coefficients 14 and 15 below this share of the row's integral: they fall geometrically, and Gauss' rule
# is exact to degree 31, so its error is about the square of what is left out
_RESOLVED = 1e-9
_UNSURE = 1e-3  # share of the integral in unresolved panels from which on there is no answer: their error is its square
_MOST = 2000  # panels per row: more are only needed where the density itself is rounding noise


class Rule(NamedTuple):
    """Nodes and weights of each row's normalised density, one line per panel."""

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
    lost = np.asarray(~np.isfinite(edges).all(axis=1))
    if lost.any():
        edges = np.where(lost[:, None], np.arange(edges.shape[1]) > 0, edges)  # one panel for a lost row, of NaN below
    row = np.repeat(np.arange(edges.shape[0]), edges.shape[1] - 1)
    panels = _Open(edges[:, :-1].ravel(), edges[:, 1:].ravel(), row)
    panels = panels.some(panels.right > panels.left)
    halving = _Halving(log_density, tests, lost)
    for level in range(_LEVELS):
        panels = halving.step(panels, last=level == _LEVELS - 1)
        if not len(panels.row):
            break
    return halving.rule(centre)


class _Open(NamedTuple):
    """Panels that are not resolved yet, each array (panels,)."""

    left: np.ndarray
    right: np.ndarray
    row: np.ndarray

    def some(self, which: np.ndarray) -> _Open:
        return _Open(self.left[which], self.right[which], self.row[which])


class _Halving:
    """What is known of all rows between one halving and the next; sums are relative to exp(scale) of their row."""

    def __init__(
        self,
        log_density: Callable[[np.ndarray, np.ndarray], np.ndarray],
        tests: Callable[[np.ndarray, np.ndarray], Sequence[np.ndarray]] | None,
        lost: np.ndarray,
    ) -> None:
        self.log_density, self.tests, self.lost = log_density, tests, lost
        self.n_rows = len(lost)
        self.nodes, self.weights = legendre(_NODES)
        self.tail = _tail_rows(_NODES)
        self.top = np.full(self.n_rows, -np.inf)  # highest node of the finished panels
        self.done: list[tuple[np.ndarray, ...]] = []
        self.settled: list[np.ndarray] = []  # sums over finished panels, per row and test
        self.scale = np.zeros(self.n_rows)
        self.spent = np.zeros(self.n_rows, dtype=int)  # panels so far
        self.unsure = np.zeros(self.n_rows)  # what panels that could not be halved further may be wrong by

    def step(self, open_: _Open, last: bool) -> _Open:
        """Keep the panels that are resolved, and halve the others; the `last` time all are kept."""
        left, right, row = open_
        self.spent += self._per_row(row)
        x = left[:, None] + (right - left)[:, None] * self.nodes
        log_p, peak = self._evaluate(x, row)
        highest = self.top.copy()
        np.maximum.at(highest, row, peak)
        self._rescale(np.where(np.isfinite(highest), highest, 0.0))
        p = np.exp(log_p - self.scale[row][:, None])
        values = [p] if self.tests is None else [p, *(p * np.abs(t) for t in self.tests(x, row[:, None]))]
        self.settled = self.settled or [np.zeros(self.n_rows) for _ in values]
        good, found, parts = self._resolved(values, right - left, row)
        if not found.all():
            good = np.where(found[row], good, ~_near_top(peak, left, row, highest))
        middle = 0.5 * (left + right)
        good |= self.lost[row]
        forced = ~good & ((self.spent[row] > _MOST) | (middle <= left) | (middle >= right) | last)
        if forced.any():
            good |= forced
            doubt = (right - left) * np.abs(p @ self.tail).max(axis=1)
            self.unsure += self._per_row(row[forced], doubt[forced])
        self.done.append((row[good], left[good], right[good], log_p[good]))
        np.maximum.at(self.top, row[good], peak[good])
        self.settled = [s + self._per_row(row[good], part[good]) for s, part in zip(self.settled, parts, strict=True)]
        rest, middle = open_.some(~good), middle[~good]
        halves = (rest.left, middle), (middle, rest.right), (rest.row, rest.row)
        return _Open(*(np.concatenate(pair) for pair in halves))

    def rule(self, centre: np.ndarray) -> Rule:
        """The finished panels with their normalised weights."""
        row, left, right, log_p = (np.concatenate(parts) for parts in zip(*self.done, strict=True))
        base = np.where(np.isfinite(self.top), self.top, 0.0)
        weight = (right - left)[:, None] * self.weights * np.exp(log_p - base[row][:, None])
        total = self._per_row(row, weight.sum(axis=1))
        unsure = self.unsure * np.exp(np.minimum(self.scale - base, 700.0))
        total = np.where((total > 0) & (unsure <= _UNSURE * total), total, np.nan)
        weight /= total[row][:, None]
        log_z = base + np.log(total)
        return Rule(row, left[:, None] + (right - left)[:, None] * self.nodes, weight, log_z, centre)

    def _per_row(self, row: np.ndarray, values: np.ndarray | None = None) -> np.ndarray:
        return np.bincount(row, weights=values, minlength=self.n_rows)

    def _evaluate(self, x: np.ndarray, row: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The log density at the nodes and its highest value in each panel; a row that is not a number is lost."""
        log_p = self.log_density(x, row[:, None])
        peak = log_p.max(axis=1, initial=-np.inf)
        wrong = ~(peak < np.inf)
        if wrong.any() or self.lost.any():  # nothing is left to resolve in such a row
            self.lost[row[wrong]] = True
            log_p[self.lost[row]] = np.nan
            peak[self.lost[row]] = -np.inf
        return log_p, peak

    def _rescale(self, scale: np.ndarray) -> None:
        # from the last level's scale to this one's; only those that underflowed there could overflow here
        rise = np.exp(np.minimum(self.scale - scale, 700.0))
        self.settled = [s * rise for s in self.settled]
        self.unsure = self.unsure * rise
        self.scale = scale

    def _resolved(
        self, values: list[np.ndarray], width: np.ndarray, row: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
        """Which panels are resolved, which rows have anything to compare with, and the integral of each value."""
        good, found = np.ones(row.shape[0], dtype=bool), np.zeros(self.n_rows, dtype=bool)
        parts = []
        for value, before in zip(values, self.settled, strict=True):
            inside, rest = width * (value @ self.weights), width * np.abs(value @ self.tail).max(axis=1)
            # a peak seen at one node looks as wide as its panel: only resolved panels count for the total
            sure = before + self._per_row(row, np.where(rest <= _RESOLVED * inside, inside, 0.0))
            good &= rest <= _RESOLVED * sure[row]
            found |= sure > 0
            parts.append(inside)
        return good, found, parts


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


def far_end(rise: Callable[[np.ndarray], np.ndarray], turns: np.ndarray, widths: np.ndarray, side: float) -> np.ndarray:
    """A point beyond the outermost of the `turns` (rows, k) on a side, from which on a density is negligible.

    `rise` is the log density less its highest value, which falls beyond the outermost turn; steps from there, as long as that
    turn's width at first, double until it has fallen by 60 nats.
    """
    outer = (side * turns).argmax(axis=1)[:, None]
    start, step = (np.take_along_axis(a, outer, axis=1)[:, 0] for a in (turns, widths))
    for _ in range(200):
        short = ~(rise(start + side * step) < -60.0) & np.isfinite(step)
        if not short.any():
            break
        step = np.where(short, 2.0 * step, step)
    return start + side * step


def bounded_exp(u: np.ndarray) -> np.ndarray:
    """``exp(u)``, but no more than exp(600): far ends of a window in the log of a variable must not overflow."""
    return np.exp(np.minimum(u, 600.0))


@cache
def _tail_rows(n: int) -> np.ndarray:
    """Columns that give the Legendre coefficients n - 2 and n - 1 of what has given values at the nodes."""
    nodes, weights = legendre(n)
    basis = np.polynomial.legendre.legvander(2 * nodes - 1, n - 1)[:, -2:]
    return weights[:, None] * basis * (2 * np.arange(n - 2, n) + 1)
