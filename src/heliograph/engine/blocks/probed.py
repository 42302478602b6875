# pyright: basic
"""A block that is too expensive to factorise: means by conjugate gradients, variances by random probes.

The probes are drawn once, so that a sweep is a function of its messages and the run can settle. What they leave is an error of each
standard deviation, known as it is made (`ProbedSolution.error`). There is no log determinant, and so no evidence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heliograph.engine.blocks.planned import PlanRefusedError, as_numeric
from heliograph.engine.blocks.records import Known, known_shift
from heliograph.engine.blocks.rows import Rows, image, over, pull, take, transposed
from heliograph.engine.blocks.system import Sites
from heliograph.errors import UnsupportedError
from heliograph.numerics import sparse
from heliograph.numerics.chunks import chunks

__all__ = ["EXPECTED_ERROR", "ProbedSolution", "ProbedSystem"]

_PROBES = 128
EXPECTED_ERROR = 0.5 * (2.0 / _PROBES) ** 0.5  # of a standard deviation, relative, if the probes had to find all of it
_SIGNS = 0  # the probes' own seed: a posterior by formulas does not hang on the seed of a run
_LARGEST_CORE = 400  # scalars that are solved for one by one in every sweep
_FEW = 64  # right-hand sides at a time
_MOST_SOLVED = 2000  # rows that are solved for one by one; more are read off the probes
_CHUNK = 4096  # rows at a time


@dataclass(frozen=True, eq=False)
class ProbedSolution:
    """The estimated belief of the base scalars."""

    mean: np.ndarray  # (N,)
    estimate: sparse.Estimate
    weights: tuple[np.ndarray, ...]  # of every group of rows


class ProbedSystem:
    """The linear system of one block, as `SparseSystem`, but estimated."""

    def __init__(
        self,
        known: tuple[Known, ...],
        rows: Rows,
        n_sites: int,
        vectors: tuple[tuple[Rows, int], ...],
        refused: PlanRefusedError,
    ) -> None:
        """`refused` holds the plan that was too expensive. Raises `TooExpensiveError` where this would be, too."""
        plan, self.refused = refused.plan, refused
        self.known, self.shown, self.n_sites, self.vectors = known, rows, n_sites, vectors
        self.site_rows = rows if n_sites == len(rows) else take(rows, np.arange(n_sites))
        if plan.n_core > _LARGEST_CORE or not plan.n_rounds:
            raise refused
        parts = [*(as_numeric(k.rows) for k in known), as_numeric(rows), *(as_numeric(r, d) for r, d in vectors)]
        queried = [False] * len(known) + [True] * (len(parts) - len(known))
        rng = np.random.default_rng(_SIGNS)
        self._prober = sparse.prepare(rng, plan, parts, queried=queried, n_probes=_PROBES)
        self._shift = known_shift(known, rows.n_columns)
        self._previous: sparse.Estimate | None = None

    def solve(self, sites: Sites) -> ProbedSolution | None:
        """The estimated belief under the sites; None where it is not a distribution."""
        if sites.fixed is not None:
            raise UnsupportedError(
                "a factor fixes an expression of a block exactly, and the block is too large to be solved jointly; give what is "
                "fixed a small variance, or use structure='factorised'"
            )
        b = self._shift
        tau = np.zeros(len(self.shown))
        tau[: self.n_sites] = sites.tau
        if len(sites.tau):
            b = b + pull(self.site_rows, sites.shift - sites.tau * self.site_rows.constant)
        for site in sites.vectors:
            constant = site.rows.constant.reshape(site.shift.shape)
            said = site.shift - np.einsum("mij,mj->mi", site.precision, constant)
            b = b + pull(site.rows, said.reshape(-1))
        weights = (*(k.weight for k in self.known), tau, *(s.precision for s in sites.vectors))
        if not all(np.isfinite(w.sum()) for w in (b, *weights)):
            return None
        try:
            found = sparse.estimate(self._prober, weights, b, previous=self._previous)
        except (sparse.NotPositiveDefiniteError, np.linalg.LinAlgError):
            return None
        self._previous = found
        return ProbedSolution(found.mean, found, weights)

    def marginals(self, solution: ProbedSolution) -> tuple[np.ndarray, np.ndarray]:
        """Means and variances of the rows that are wanted in every sweep."""
        variance = solution.estimate.variances[len(self.known)]
        assert variance is not None
        return self.means(self.shown, solution), np.where(variance > 0, variance, 0.0)

    def error(self, rows: Rows, start: int, solution: ProbedSolution) -> float:
        """The largest expected relative error of the standard deviations of some rows, which `start` among the shown ones.

        Rows that are not shown (`start` below 0) are solved for one by one, without such an error, unless they are many.
        """
        if start < 0:
            return EXPECTED_ERROR if self._too_many(rows) else 0.0
        errors = solution.estimate.errors[len(self.known)]
        assert errors is not None
        return float(errors[start : start + len(rows)].max(initial=0.0))

    def vector_moments(self, solution: ProbedSolution) -> list[tuple[np.ndarray, np.ndarray]]:
        """Means and covariances of every vector site, by port."""
        found = []
        for (rows, d), covariance in zip(self.vectors, solution.estimate.variances[len(self.known) + 1 :], strict=True):
            assert covariance is not None
            found.append((self.means(rows, solution).reshape(-1, d), covariance.reshape(-1, d, d)))
        return found

    def means(self, rows: Rows, solution: ProbedSolution) -> np.ndarray:
        """Means of any rows."""
        return rows.constant + image(rows, solution.mean)

    def moments(self, rows: Rows, solution: ProbedSolution, d: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Means of any rows, and their variances, or the covariances of every d of them, by solves."""
        step = d or 1
        if self._too_many(rows):
            found = self._by_probes(rows, step, solution)
            return self.means(rows, solution), found if d is not None else found.reshape(-1)
        found = np.empty((len(rows) // step, step, step))
        at_once = max(1, _FEW // step)
        for start in range(0, len(found), at_once):
            some = take(rows, np.arange(start * step, min(start + at_once, len(found)) * step))
            both = self.covariance(some, some, solution).reshape(len(some) // step, step, -1, step)
            own = np.arange(len(both))
            found[start : start + len(both)] = both[own, :, own, :]
        return self.means(rows, solution), found if d is not None else found.reshape(-1)

    def _too_many(self, rows: Rows) -> bool:
        """Whether there are more rows than are solved for one by one."""
        return len(rows) > _MOST_SOLVED and not self._prober.plan.n_core

    def _by_probes(self, rows: Rows, d: int, solution: ProbedSolution) -> np.ndarray:
        """The covariances of every d rows in the probes; those of negative weights are taken away."""
        probes = np.empty_like(solution.estimate.probes)
        probes[self._prober.plan.order] = solution.estimate.probes
        weight = np.where(np.arange(probes.shape[1]) < _PROBES, 1.0, -1.0) / _PROBES
        found = np.empty((len(rows) // d, d, d))
        for part in chunks(len(found), _CHUNK):
            seen = over(rows, probes, slice(part.start * d, part.stop * d)).reshape(-1, d, len(weight))
            found[part] = (seen * weight) @ seen.transpose(0, 2, 1)
        return found

    def naturals(self, rows: Rows, solution: ProbedSolution) -> None:
        """None: the whole precision is never laid out."""

    def covariance(self, rows: Rows, others: Rows, solution: ProbedSolution) -> np.ndarray:
        """Covariances of some rows with others, by conjugate gradients: exact."""
        solved = sparse.solve_iteratively(self._prober, solution.weights, transposed(others))
        return np.asarray(transposed(rows).T @ solved)

    def sample(self, rng: np.random.Generator, solution: ProbedSolution, n: int) -> np.ndarray:
        """Draws of the base scalars."""
        noise = sparse.information_noise(rng, self._prober, solution.weights, n)
        return solution.mean + sparse.solve_iteratively(self._prober, solution.weights, noise).T

    def log_mass(self, solution: ProbedSolution) -> float:
        """NaN: nobody knows the determinant."""
        return np.nan
