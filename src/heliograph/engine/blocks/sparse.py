# pyright: basic
"""A block as a sparse linear system: chains, trees, grids, leagues, many groups; planned once, factorised in every sweep."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp

from heliograph.engine.blocks.records import Known
from heliograph.engine.blocks.rows import Rows, image, over, pull, take
from heliograph.engine.blocks.system import Sites, VectorSites
from heliograph.numerics import sparse

__all__ = ["SparseSolution", "SparseSystem", "as_numeric"]

_LOG_2PI = float(np.log(2 * np.pi))
_FEW = 64  # rows whose covariance is solved for at a time


@dataclass(frozen=True, eq=False)
class SparseSolution:
    """The joint belief of the base scalars."""

    mean: np.ndarray  # (N,)
    factor: sparse.Factor
    log_det: float  # of the precision, given what is fixed
    gain: np.ndarray | None = None  # (N, m) what exact values take from the covariance: gain gain'

    @cached_property
    def inverse(self) -> sparse.Inverse:
        """The covariances of neighbours."""
        return sparse.invert(self.factor)

    @property
    def n_free(self) -> int:
        """Base scalars less those that exact values fix."""
        return len(self.mean) - (0 if self.gain is None else self.gain.shape[1])


class SparseSystem:
    """The linear system of one block."""

    def __init__(self, known: Known, rows: Rows, n_sites: int, vectors: tuple[tuple[Rows, int], ...] = ()) -> None:
        """`rows` are those whose marginals are wanted in every sweep; the first `n_sites` of them hold sites.

        `vectors` are the rows of vector sites, with their dimension. Raises `sparse.TooExpensiveError` beyond the budget.
        """
        self.known, self.shown = known, rows
        self.site_rows = rows if n_sites == len(rows) else take(rows, np.arange(n_sites))
        parts = [as_numeric(r) for r in (known.rows, rows)] + [as_numeric(r, d) for r, d in vectors]
        self.plan = sparse.analyse(parts)
        if not self.plan.affordable:
            raise sparse.TooExpensiveError(
                f"a joint solve takes {self.plan.flops:.1e} operations and {self.plan.bytes:.1e} bytes"
            )
        self._shown = sparse.place(self.plan, parts[1])
        self._sites = self._shown if n_sites == len(rows) else sparse.place(self.plan, as_numeric(self.site_rows))
        self._vectors = [sparse.place(self.plan, p) for p in parts[2:]]
        self._vector_rows = vectors
        placed = sparse.place(self.plan, parts[0], queried=False)
        self._values = sparse.gram(placed, known.weight)
        self._shift = pull(known.rows, known.weight * (known.target - known.rows.constant))

    def solve(self, sites: Sites) -> SparseSolution | None:
        """The joint belief under the sites; None where it is not a distribution."""
        values, b = self._values.copy(), self._shift.copy()
        if len(sites.tau):
            values += sparse.gram(self._sites, sites.tau)
            b += pull(self.site_rows, sites.shift - sites.tau * self.site_rows.constant)
        for placed, site in zip(self._vectors, sites.vectors, strict=True):
            values += sparse.gram(placed, site.precision)
            b += pull(site.rows, _vector_information(site))
        if not np.isfinite(values).all() or not np.isfinite(b).all():
            return None
        try:
            factor = sparse.factorise(self.plan, values)
        except sparse.NotPositiveDefiniteError:
            return None
        solution = SparseSolution(sparse.solve(factor, b), factor, factor.log_determinant)
        if sites.fixed is None:
            return solution
        assert sites.values is not None
        return _conditioned(solution, take(self.site_rows, sites.fixed), sites.values)

    def marginals(self, solution: SparseSolution) -> tuple[np.ndarray, np.ndarray]:
        """Means and variances of the rows that are wanted in every sweep."""
        variance = sparse.variances(solution.inverse, self._shown)
        if solution.gain is not None:
            variance = np.maximum(variance - (over(self.shown, solution.gain) ** 2).sum(axis=1), 0.0)
        variance = np.where(variance > 0, variance, 0.0)
        return self.means(self.shown, solution), variance

    def vector_moments(self, solution: SparseSolution) -> list[tuple[np.ndarray, np.ndarray]]:
        """Means and covariances of every vector site, by port."""
        found = []
        for placed, (rows, d) in zip(self._vectors, self._vector_rows, strict=True):
            covariance = sparse.variances(solution.inverse, placed).reshape(-1, d, d)
            if solution.gain is not None:
                gone = over(rows, solution.gain).reshape(len(covariance), d, -1)
                covariance = covariance - gone @ gone.transpose(0, 2, 1)
            found.append((self.means(rows, solution).reshape(-1, d), covariance))
        return found

    def means(self, rows: Rows, solution: SparseSolution) -> np.ndarray:
        """Means of any rows."""
        return rows.constant + image(rows, solution.mean)

    def moments(self, rows: Rows, solution: SparseSolution, d: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Means of any rows, and their variances, or the covariances of every d of them."""
        step = d or 1
        n = len(rows) // step
        found = np.empty((n, step, step))
        for start in range(0, n, max(1, _FEW // step)):
            stop = min(start + max(1, _FEW // step), n)
            some = take(rows, np.arange(start * step, stop * step))
            both = self.covariance(some, some, solution).reshape(stop - start, step, stop - start, step)
            at = np.arange(stop - start)
            found[start:stop] = both[at, :, at, :]
        return self.means(rows, solution), found if d is not None else found.reshape(-1)

    def naturals(self, rows: Rows, solution: SparseSolution) -> tuple[np.ndarray, np.ndarray] | None:
        """None: the whole precision is never laid out."""
        return None

    def covariance(self, rows: Rows, others: Rows, solution: SparseSolution) -> np.ndarray:
        """Covariances of some rows with others, by solves."""
        found = sparse.covariance(solution.factor, as_numeric(rows), as_numeric(others))
        if solution.gain is None:
            return found
        return found - over(rows, solution.gain) @ over(others, solution.gain).T

    def sample(self, rng: np.random.Generator, solution: SparseSolution, n: int) -> np.ndarray:
        """Draws of the base scalars."""
        draws = sparse.sample(rng, solution.factor, n)
        if solution.gain is not None:  # what is fixed does not vary: project it out
            half = np.linalg.lstsq(solution.gain, draws.T, rcond=None)[0]
            draws = draws - (solution.gain @ half).T
        return solution.mean + draws

    def log_mass(self, solution: SparseSolution) -> float:
        """``log`` of the integral of the known rows times the sites, the sites' statistics counted from their means."""
        return known_log_density(self.known, solution.mean) + 0.5 * (solution.n_free * _LOG_2PI - solution.log_det)


def known_log_density(known: Known, mean: np.ndarray) -> float:
    """``log`` density of the rows of known weight at values of the base scalars."""
    gap = known.target - known.rows.constant - image(known.rows, mean)
    density = 0.5 * (np.log(known.weight).sum() - len(gap) * _LOG_2PI - (known.weight * gap) @ gap)
    return float(density) + known.log_constant


def as_numeric(rows: Rows, width: int = 1) -> sparse.Rows:
    """Rows as the solver takes them: dense parts over neighbouring scalars stay dense."""
    whole, dense = rows.sparse, []
    for x, columns in rows.dense:
        if (np.diff(columns) == 1).all():
            dense.append(sparse.Dense(0, int(columns[0]), x))
        else:
            part = sp.coo_array(x)
            shape = (len(rows), rows.n_columns)
            whole = whole + sp.csr_array(
                sp.coo_array((part.data, (part.coords[0], columns[part.coords[1]])), shape=shape)
            )
    entries = sp.coo_array(whole)
    return sparse.make_rows(
        rows.n_columns, entries.coords[0], entries.coords[1], entries.data, n_rows=len(rows), constant=rows.constant,
        width=width, dense=dense,
    )  # fmt: skip


def _vector_information(site: VectorSites) -> np.ndarray:
    constant = site.rows.constant.reshape(site.shift.shape)
    return (site.shift - np.einsum("mij,mj->mi", site.precision, constant)).reshape(-1)


def _conditioned(solution: SparseSolution, rows: Rows, values: np.ndarray) -> SparseSolution | None:
    """The belief given that some expressions have exactly these values."""
    columns = _columns_of(rows)
    solved = sparse.solve(solution.factor, columns)  # (N, m)
    gap = values - rows.constant - image(rows, solution.mean)
    try:
        lower = np.linalg.cholesky(columns.T @ solved)
    except np.linalg.LinAlgError:
        return None  # two values of one expression
    gain = sl.solve_triangular(lower, solved.T, lower=True, check_finite=False).T
    mean = solution.mean + gain @ sl.solve_triangular(lower, gap, lower=True, check_finite=False)
    log_det = solution.log_det + 2 * float(np.log(np.diag(lower)).sum())
    return SparseSolution(mean, solution.factor, log_det, gain)


def _columns_of(rows: Rows) -> np.ndarray:
    """``A'``, dense."""
    whole = rows.sparse.T.toarray()
    for x, columns in rows.dense:
        whole[columns] += x.T
    return whole
