# pyright: basic
"""A system without private scalars: they are integrated out of the sites that read them, and recovered when asked for.

A site ``exp(shift z - tau z^2 / 2)`` on ``z = y + noise``, with noise of variance v that nothing else reads, is one on y:
``exp(shift g y - tau g y^2 / 2)`` with ``g = 1 / (1 + tau v)``. Given y, what is known of z is ``g (y + v shift)`` with variance
``g v``. Nothing is subtracted, so no digits are lost (docs/decisions/0048).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from heliograph.engine.blocks.choosing import Limits, system_for
from heliograph.engine.blocks.private import Fold, entries_at, without_private
from heliograph.engine.blocks.rows import Rows, add, apply, joined, over, scale, shifted, take
from heliograph.engine.blocks.system import Error, Sites, System
from heliograph.families import MultivariateGaussian

__all__ = ["FoldedSystem", "folded_system"]


class _Folded(NamedTuple):
    """The belief of the remaining scalars, and the sites' statistics of the deviations given these."""

    inner: Any
    share: np.ndarray  # (n,) g
    pull: np.ndarray  # (n,) shift g: a deviation is ``weight * variance * (pull - push y)`` on average
    push: np.ndarray  # (n,) tau g
    log_share: float  # sum of log g, and of - log(2 pi v) where a site is exact


def folded_system(fold: Fold, rows: Rows, n_sites: int, limits: Limits = Limits()) -> FoldedSystem:  # noqa: B008
    """Make the system of a block; of the rows wanted in every sweep only the sites, which come first, may hold private scalars."""
    sites, others = take(rows, np.arange(n_sites)), take(rows, np.arange(n_sites, len(rows)))
    n_left = fold.rest.n_columns
    shown = joined([fold.site_rows, without_private(others, fold.number, n_left)], n_left)
    return FoldedSystem(fold, system_for(fold.known, shown, n_sites, (), limits), sites)


class _Opened(NamedTuple):
    """Expressions of the remaining scalars, plus the part of the deviations that these leave uncertain."""

    rows: Rows  # (n,)
    own: Any  # (n, p) CSR: coefficients of the deviations; None where there are none
    shared: Any  # (n, sites) CSR: the same by site, times weight and variance


class FoldedSystem:
    """The system of a block some of whose scalars are private."""

    def __init__(self, fold: Fold, inner: System, site_rows: Rows) -> None:
        """`inner` is the system of the remaining scalars; `site_rows` are the sites' expressions over all scalars."""
        self.fold, self.inner, self.site_rows = fold, inner, site_rows
        self.refused = inner.refused
        self.noise = np.bincount(fold.site, fold.weight**2 * fold.variance, len(site_rows))

    def solve(self, sites: Sites) -> _Folded | None:
        """The joint belief; None where it is not a distribution."""
        v = self.noise
        grown = 1.0 + sites.tau * v
        if not (grown > 0).all():
            return None
        share = 1.0 / grown
        pull, push, log_share = sites.shift * share, sites.tau * share, float(np.log(share).sum())
        said = sites._replace(shift=pull, tau=push)
        if sites.fixed is not None:
            assert sites.values is not None
            noisy = v[sites.fixed] > 0
            at, rest = sites.fixed[noisy], sites.fixed[~noisy]
            share[at], push[at], pull[at] = 0.0, 1.0 / v[at], sites.values[noisy] / v[at]
            log_share -= float(np.log(2 * np.pi * v[at]).sum())
            fixed = (rest, sites.values[~noisy]) if len(rest) else (None, None)
            said = Sites(pull, push, sites.vectors, *fixed)
        inner = self.inner.solve(said)
        return None if inner is None else _Folded(inner, share, pull, push, log_share)

    # ---- beliefs of expressions ------ ---------------------------------------------------------------------------
    def marginals(self, solution: _Folded) -> tuple[np.ndarray, np.ndarray]:
        """Means and variances of the expressions that are wanted in every sweep: the sites first."""
        mean, variance = self.inner.marginals(solution.inner)
        n, g = len(self.noise), solution.share
        mean[:n] = g * mean[:n] + self.noise * solution.pull
        variance[:n] = g * (g * variance[:n] + self.noise)
        return mean, variance

    def vector_moments(self, solution: _Folded) -> list[tuple[np.ndarray, np.ndarray]]:
        """Means and covariances of every vector site, none of which reads a private scalar."""
        return self.inner.vector_moments(solution.inner)

    def means(self, rows: Rows, solution: _Folded) -> np.ndarray:
        """Means of any expressions."""
        return self.inner.means(self._opened(rows, solution).rows, solution.inner)

    def moments(self, rows: Rows, solution: _Folded, d: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Means of any expressions, and their variances, or the covariances of every d of them."""
        opened = self._opened(rows, solution)
        mean, spread = self.inner.moments(opened.rows, solution.inner, d)
        if opened.own is None:
            return mean, spread
        if d is None:
            return mean, spread + opened.own**2 @ self.fold.variance - opened.shared**2 @ solution.push
        more = sp.coo_array(self._rest(opened, opened, solution))
        i, j = more.coords
        near = i // d == j // d
        np.add.at(spread, (i[near] // d, i[near] % d, j[near] % d), more.data[near])
        return mean, spread

    def whole(self, rows: Rows, solution: _Folded) -> MultivariateGaussian | None:
        """The joint belief of `rows` if they are exactly the remaining scalars in their order, where the system has it."""
        if len(rows) != self.fold.rest.n_columns or len(entries_at(rows, -1 - self.fold.number)[0]):
            return None
        return self.inner.whole(without_private(rows, self.fold.number, len(rows)), solution.inner)

    def covariance(self, rows: Rows, others: Rows, solution: _Folded) -> np.ndarray:
        """Covariances of some expressions with others."""
        left, right = self._opened(rows, solution), self._opened(others, solution)
        found = self.inner.covariance(left.rows, right.rows, solution.inner)
        if left.own is None or right.own is None:
            return found
        return found + self._rest(left, right, solution).toarray()

    def sample(self, rng: np.random.Generator, solution: _Folded, n: int) -> np.ndarray:
        """Draws ``(n, N)`` of the base scalars."""
        fold = self.fold
        left = self.inner.sample(rng, solution.inner, n).T
        found = np.empty((len(fold.number), n))
        found[fold.number >= 0] = left
        deviation = np.sqrt(fold.variance)[:, None] * rng.standard_normal((len(fold.private), n))
        gain, v = fold.weight * fold.variance, self.noise
        reads = sp.csr_array((fold.weight, (fold.site, np.arange(len(gain)))), shape=(len(v), len(gain)))
        narrower = np.divide(1.0 - np.sqrt(solution.share), v, out=np.zeros_like(v), where=v > 0)
        y = over(fold.site_rows, left) + fold.site_rows.constant[:, None]
        moved = solution.pull[:, None] - solution.push[:, None] * y - narrower[:, None] * (reads @ deviation)
        deviation += gain[:, None] * moved[fold.site]
        found[fold.private] = over(fold.rest, left) + fold.rest.constant[:, None] + fold.scale[:, None] * deviation
        return found.T

    def error(self, rows: Rows, start: int, solution: _Folded) -> Error:
        """Bound how wrong the standard deviations of some rows may be; the part of the deviations is exact."""
        if self.refused is not None and start < 0:
            rows = self._opened(rows, solution).rows
        return self.inner.error(rows, start, solution.inner)

    def log_mass(self, solution: _Folded) -> float:
        """``log`` of the integral of the known rows times the sites, the sites' statistics counted from their means."""
        fold = self.fold
        y = self.inner.means(fold.site_rows, solution.inner)
        moved = fold.weight * (solution.pull - solution.push * y)[fold.site]  # over the deviation's variance
        density = 0.5 * (solution.log_share - float(fold.variance @ moved**2)) + float(np.log(np.abs(fold.scale)).sum())
        return self.inner.log_mass(solution.inner) + density

    def _opened(self, rows: Rows, solution: _Folded) -> _Opened:
        """Write expressions of any scalars over the remaining ones and the uncertain part of the deviations."""
        fold = self.fold
        n_left, p = fold.rest.n_columns, len(fold.private)
        place = np.full(len(fold.number), -1)
        place[fold.private] = np.arange(p)
        row, column, value = entries_at(rows, place)
        inner = without_private(rows, fold.number, n_left)
        if not len(row):
            return _Opened(inner, None, None)
        gain = fold.weight * fold.variance
        own = sp.csr_array((value * fold.scale[column], (row, column)), shape=(len(rows), p))
        reads = sp.csr_array((gain, (np.arange(p), fold.site)), shape=(p, len(self.noise)))
        shared = sp.csr_array(own @ reads)
        inner = add(inner, apply(sp.csr_array((value, (row, column)), shape=(len(rows), p)), fold.rest))
        inner = shifted(inner, shared @ solution.pull)
        at = np.flatnonzero(np.bincount(shared.indices))
        moved = scale(take(fold.site_rows, at), -solution.push[at])
        return _Opened(add(inner, apply(sp.csr_array(shared[:, at]), moved)), own, shared)

    def _rest(self, left: _Opened, right: _Opened, solution: _Folded) -> Any:
        """Covariances of the uncertain parts of the deviations in some expressions with those in others."""
        own = (left.own * self.fold.variance) @ right.own.T
        return sp.csr_array(own - (left.shared * solution.push) @ right.shared.T)
