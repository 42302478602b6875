# pyright: basic
"""A block as a sparse linear system: chains, trees, grids, leagues, many groups; planned once, factorised in every sweep."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy.linalg as sl

from heliograph.engine.blocks.line import line_solver
from heliograph.engine.blocks.planned import PlannedSolver
from heliograph.engine.blocks.records import Known, known_log_density, known_shift
from heliograph.engine.blocks.rows import Rows, image, over, pull, take, transposed
from heliograph.engine.blocks.system import Error, Sites, VectorSites
from heliograph.numerics import sparse
from heliograph.numerics.logarithms import LOG_2PI

__all__ = ["SparseSolution", "SparseSystem"]

_FEW = 64  # rows whose covariance is solved for at a time


class Solver(Protocol):
    """Factorises the precision of a block."""

    flops: float  # of one factorisation with all variances

    def factorise(self, sites: Sites) -> Any:
        """The precision under the sites, factorised; raises `NotPositiveDefiniteError`."""
        ...

    def log_determinant(self, factor: Any) -> float:
        """Of the precision."""
        ...

    def solve(self, factor: Any, right: np.ndarray) -> np.ndarray:
        """Solve for right-hand sides (N,) or (N, c)."""
        ...

    def invert(self, factor: Any) -> Any:
        """The covariances of scalars that share a row."""
        ...

    def variances(self, inverse: Any) -> np.ndarray:
        """Variances of the rows that are wanted in every sweep."""
        ...

    def vector_covariances(self, inverse: Any) -> list[np.ndarray]:
        """Covariances ``(m, d, d)`` of every vector site."""
        ...

    def covariance(self, factor: Any, rows: Rows, others: Rows) -> np.ndarray:
        """Covariances of a few rows with others."""
        ...

    def sample(self, rng: np.random.Generator, factor: Any, n: int) -> np.ndarray:
        """Draws (n, N) around 0."""
        ...


@dataclass(frozen=True, eq=False)
class SparseSolution:
    """The joint belief of the base scalars."""

    mean: np.ndarray  # (N,)
    solver: Solver
    factor: Any  # of the solver
    log_det: float  # of the precision, given what is fixed
    gain: np.ndarray | None = None  # (N, m) what exact values take from the covariance: gain gain'

    @cached_property
    def inverse(self) -> Any:
        """The covariances of neighbours."""
        return self.solver.invert(self.factor)

    @property
    def n_free(self) -> int:
        """Base scalars less those that exact values fix."""
        return len(self.mean) - (0 if self.gain is None else self.gain.shape[1])


class SparseSystem:
    """The linear system of one block."""

    refused = None  # it solves

    def __init__(
        self,
        known: tuple[Known, ...],
        rows: Rows,
        n_sites: int,
        vectors: tuple[tuple[Rows, int], ...] = (),
        budget: sparse.Budget | None = None,
    ) -> None:
        """`rows` are those whose marginals are wanted in every sweep; the first `n_sites` of them hold sites.

        `vectors` are the rows of vector sites, with their dimension. Raises `sparse.TooExpensiveError` beyond the budget.
        """
        self.known, self.shown = known, rows
        self.site_rows = rows if n_sites == len(rows) else take(rows, np.arange(n_sites))
        line = line_solver(known, rows, n_sites, vectors)
        self.solver: Solver = PlannedSolver(known, rows, n_sites, vectors, budget) if line is None else line
        self._vectors = vectors
        self._shift = known_shift(known, rows.n_columns)

    def solve(self, sites: Sites) -> SparseSolution | None:
        """The joint belief under the sites; None where it is not a distribution."""
        b = self._shift
        if len(sites.tau):
            b = b + pull(self.site_rows, sites.shift - sites.tau * self.site_rows.constant)
        for site in sites.vectors:
            b = b + pull(site.rows, _vector_information(site))
        if not np.isfinite(b.sum()):
            return None
        try:
            factor = self.solver.factorise(sites)
        except sparse.NotPositiveDefiniteError:
            return None
        mean, log_det = self.solver.solve(factor, b), self.solver.log_determinant(factor)
        solution = SparseSolution(mean, self.solver, factor, log_det)
        if sites.fixed is None:
            return solution
        assert sites.values is not None
        return self._conditioned(solution, take(self.site_rows, sites.fixed), sites.values)

    def marginals(self, solution: SparseSolution) -> tuple[np.ndarray, np.ndarray]:
        """Means and variances of the rows that are wanted in every sweep."""
        variance = self.solver.variances(solution.inverse)
        if solution.gain is not None:
            variance = np.maximum(variance - (over(self.shown, solution.gain) ** 2).sum(axis=1), 0.0)
        variance = np.where(variance > 0, variance, 0.0)
        return self.means(self.shown, solution), variance

    def vector_moments(self, solution: SparseSolution) -> list[tuple[np.ndarray, np.ndarray]]:
        """Means and covariances of every vector site, by port."""
        found: list[tuple[np.ndarray, np.ndarray]] = []
        for (rows, d), covariance in zip(self._vectors, self.solver.vector_covariances(solution.inverse), strict=True):
            if solution.gain is not None:
                gone = over(rows, solution.gain).reshape(len(covariance), d, -1)
                covariance -= gone @ gone.transpose(0, 2, 1)
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

    def whole(self, rows: Rows, solution: SparseSolution) -> None:
        """None: the whole precision is never laid out."""
        return None

    def covariance(self, rows: Rows, others: Rows, solution: SparseSolution) -> np.ndarray:
        """Covariances of some rows with others, by solves."""
        found = self.solver.covariance(solution.factor, rows, others)
        if solution.gain is None:
            return found
        return found - over(rows, solution.gain) @ over(others, solution.gain).T

    def sample(self, rng: np.random.Generator, solution: SparseSolution, n: int) -> np.ndarray:
        """Draws of the base scalars."""
        draws = self.solver.sample(rng, solution.factor, n)
        if solution.gain is not None:  # what is fixed does not vary: project it out
            half = np.linalg.lstsq(solution.gain, draws.T, rcond=None)[0]
            draws = draws - (solution.gain @ half).T
        return solution.mean + draws

    def error(self, rows: Rows, start: int, solution: SparseSolution) -> Error:
        """0: nothing is estimated."""
        return Error(0.0)

    def log_mass(self, solution: SparseSolution) -> float:
        """``log`` of the integral of the known rows times the sites, the sites' statistics counted from their means."""
        return known_log_density(self.known, solution.mean) + 0.5 * (solution.n_free * LOG_2PI - solution.log_det)

    def _conditioned(self, solution: SparseSolution, rows: Rows, values: np.ndarray) -> SparseSolution | None:
        """The belief given that some expressions have exactly these values."""
        columns = transposed(rows)
        solved = self.solver.solve(solution.factor, columns)  # (N, m)
        gap = values - rows.constant - image(rows, solution.mean)
        try:
            lower = np.linalg.cholesky(columns.T @ solved)
        except np.linalg.LinAlgError:
            return None  # two values of one expression
        gain = sl.solve_triangular(lower, solved.T, lower=True, check_finite=False).T
        mean = solution.mean + gain @ sl.solve_triangular(lower, gap, lower=True, check_finite=False)
        log_det = solution.log_det + 2 * float(np.log(np.diag(lower)).sum())
        return replace(solution, mean=mean, log_det=log_det, gain=gain)


def _vector_information(site: VectorSites) -> np.ndarray:
    constant = site.rows.constant.reshape(site.shift.shape)
    return (site.shift - np.einsum("mij,mj->mi", site.precision, constant)).reshape(-1)
