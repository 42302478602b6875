"""A block that is too expensive to factorise: means by conjugate gradients, variances by messages or by random probes.

Where every expression is of one or two scalars, variances come from messages between pairs, which loops make a little too small.
The second solve with sites checks some of them by single solves, and where they are not good enough, random probes take their
place for the rest of the run (docs/decisions/0061). Probes are drawn once, so that a sweep is a function of its messages and the
run can settle; they leave an error of each standard deviation, which is estimated beside it. There is no log determinant, and so
no evidence.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from heliograph.engine.blocks.planned import PlanRefusedError, as_numeric
from heliograph.engine.blocks.records import Known, known_shift
from heliograph.engine.blocks.rows import Rows, image, over, pull, take, transposed
from heliograph.engine.blocks.system import Error, Sites
from heliograph.errors import UnsupportedError
from heliograph.numerics import sparse
from heliograph.numerics.chunks import chunks

__all__ = ["EXPECTED_ERROR", "GOOD", "EstimatedSolution", "EstimatedSystem"]

_PROBES = 128
EXPECTED_ERROR = 0.5 * (2.0 / _PROBES) ** 0.5  # of a standard deviation, relative, if the probes had to find all of it
GOOD = 0.02  # largest relative error of a checked standard deviation with which messages are kept; half of what is promised
_CHECKED = 32  # rows that are checked during a run
_CHECKED_LATER = 256  # and when a reader asks how exact they are
_SIGNS = 0  # the seed of probes and samples: a posterior by formulas does not depend on the seed of a run
_LARGEST_CORE = 400  # scalars that are solved for one by one in every sweep
_FEW = 64  # right-hand sides at a time
_MOST_SOLVED = 2000  # rows that are solved for one by one; more are read off the messages or the probes
_CHUNK = 4096  # rows at a time
_ROUGH = 1e-3  # relative residual of the solves of a check: the error of a variance is of the order of its square


@dataclass(frozen=True, eq=False)
class EstimatedSolution:
    """The estimated belief of the base scalars."""

    mean: np.ndarray  # (N,)
    estimate: sparse.Estimate | sparse.Passed
    weights: tuple[np.ndarray, ...]  # of every group of rows
    right: np.ndarray  # (N,)


class EstimatedSystem:
    """The linear system of one block, as `SparseSystem`, but estimated."""

    def __init__(
        self,
        known: tuple[Known, ...],
        rows: Rows,
        n_sites: int,
        vectors: tuple[tuple[Rows, int], ...],
        refused: PlanRefusedError,
    ) -> None:
        """`refused` holds the plan that was too expensive, and its rows. Raises `TooExpensiveError` where this would be, too."""
        plan, self.refused = refused.plan, refused
        self.known, self.shown, self.n_sites, self.vectors = known, rows, n_sites, vectors
        self.site_rows = rows if n_sites == len(rows) else take(rows, np.arange(n_sites))
        if plan.n_core > _LARGEST_CORE or not plan.n_rounds:
            raise refused
        self._queried = [False] * len(known) + [True] * (1 + len(vectors))
        self._bare = sparse.bare_of(plan, refused.parts)
        self._passing = sparse.prepare_passing(self._bare, self._queried)
        self._unchecked = 2 if n_sites else 1  # solves that say something, up to the one that is checked
        self._shift = known_shift(known, rows.n_columns)
        self._previous: sparse.Estimate | sparse.Passed | None = None

    @cached_property
    def _prober(self) -> sparse.Prober:
        rng = np.random.default_rng(_SIGNS)
        return sparse.with_probes(rng, self._bare, queried=self._queried, n_probes=_PROBES)

    def solve(self, sites: Sites) -> EstimatedSolution | None:
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
            found = self._by_messages(weights, b, bool(tau.any())) or self._by_probes(weights, b)
        except (sparse.NotPositiveDefiniteError, np.linalg.LinAlgError):
            return None
        self._previous = found
        return EstimatedSolution(found.mean, found, weights, b)

    def _by_messages(self, weights: tuple[np.ndarray, ...], b: np.ndarray, has_sites: bool) -> sparse.Passed | None:
        """Variances from messages between pairs; None where these do not settle, or were found wrong."""
        if self._passing is None:
            return None
        previous = self._previous if isinstance(self._previous, sparse.Passed) else None
        found = sparse.pass_messages(self._passing, weights, b, previous=previous)
        if found is not None and (has_sites or not self.n_sites):
            self._unchecked -= 1
            if self._unchecked == 0 and self._found_wrong(found, weights):
                found = None
        if found is None:
            self._passing = None
        return found

    def _found_wrong(self, found: sparse.Passed, weights: tuple[np.ndarray, ...]) -> bool:
        """Return whether the standard deviations of some rows are too far from those of single solves."""
        solution = EstimatedSolution(found.mean, found, weights, found.mean)
        return self._checked_error(self.shown, found.variances[len(self.known)], solution, _CHECKED) > GOOD

    def _by_probes(self, weights: tuple[np.ndarray, ...], b: np.ndarray) -> sparse.Estimate:
        previous = self._previous if isinstance(self._previous, sparse.Estimate) else None
        return sparse.estimate(self._prober, weights, b, previous=previous)

    def marginals(self, solution: EstimatedSolution) -> tuple[np.ndarray, np.ndarray]:
        """Means and variances of the rows that are wanted in every sweep."""
        variance = solution.estimate.variances[len(self.known)]
        assert variance is not None
        return self.means(self.shown, solution), np.where(variance > 0, variance, 0.0)

    def error(self, rows: Rows, start: int, solution: EstimatedSolution) -> Error:
        """Estimate how wrong the standard deviations of some rows may be.

        `start` is the place of the first of them among the rows that are wanted in every sweep; below 0 they are not among
        these, and are solved for one by one, exactly, unless they are many.
        """
        found, shown = solution.estimate, slice(start, start + len(rows))
        if start < 0 and not self._too_many(rows):
            return Error(0.0)
        if isinstance(found, sparse.Passed):
            variance = self._passed(rows, 1, found) if start < 0 else found.variances[len(self.known)]
            if start >= 0 and variance is not None:
                rows, variance = take(self.shown, np.arange(shown.start, shown.stop)), variance[shown]
            if variance is not None:
                return Error(self._checked_error(rows, variance.reshape(-1), solution, _CHECKED_LATER), checked=True)
        elif start >= 0:
            errors = found.errors[len(self.known)]
            assert errors is not None
            return Error(float(errors[shown].max(initial=0.0)))
        return Error(EXPECTED_ERROR)

    def _checked_error(self, rows: Rows, variance: np.ndarray | None, solution: EstimatedSolution, most: int) -> float:
        """The largest relative error of a standard deviation of a sample of rows, by single solves."""
        assert variance is not None
        rng = np.random.default_rng(_SIGNS)
        chosen = np.sort(rng.choice(len(rows), min(most, len(rows)), replace=False))
        worst = 0.0
        for part in chunks(len(chosen), _FEW):
            at = chosen[part]
            a = transposed(take(rows, at))
            exact = np.einsum("nc,nc->c", a, sparse.solve_iteratively(self._bare, solution.weights, a, _ROUGH))
            ratio = np.sqrt(np.divide(variance[at], exact, out=np.ones_like(exact), where=exact > 0))
            worst = max(worst, float(np.abs(ratio - 1.0).max()))
        return worst

    def vector_moments(self, solution: EstimatedSolution) -> list[tuple[np.ndarray, np.ndarray]]:
        """Means and covariances of every vector site, by port."""
        found: list[tuple[np.ndarray, np.ndarray]] = []
        for (rows, d), covariance in zip(self.vectors, solution.estimate.variances[len(self.known) + 1 :], strict=True):
            assert covariance is not None
            found.append((self.means(rows, solution).reshape(-1, d), covariance.reshape(-1, d, d)))
        return found

    def means(self, rows: Rows, solution: EstimatedSolution) -> np.ndarray:
        """Means of any rows."""
        return rows.constant + image(rows, solution.mean)

    def moments(self, rows: Rows, solution: EstimatedSolution, d: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Means of any rows, and their variances, or the covariances of every d of them, by solves."""
        step = d or 1
        if self._too_many(rows):
            found = self._many(rows, step, solution)
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
        return len(rows) > _MOST_SOLVED and not self._bare.plan.n_core

    def _many(self, rows: Rows, d: int, solution: EstimatedSolution) -> np.ndarray:
        """The covariances of every d rows, read off the messages, or off the probes."""
        found = solution.estimate
        if isinstance(found, sparse.Passed):
            passed = self._passed(rows, d, found)
            if passed is not None:
                return passed
            found = sparse.estimate(self._prober, solution.weights, solution.right)
        return self._seen_by_probes(rows, d, found)

    def _passed(self, rows: Rows, d: int, found: sparse.Passed) -> np.ndarray | None:
        """Variances of single rows by messages, (n, 1, 1); None where they do not fit."""
        passing = sparse.prepare_passing(self._bare, self._queried)
        if passing is None or d != 1:
            return None
        variance = sparse.passed_variances(passing, found, as_numeric(rows))
        return None if variance is None else variance[:, None, None]

    def _seen_by_probes(self, rows: Rows, d: int, estimate: sparse.Estimate) -> np.ndarray:
        """The covariances of every d rows in the probes; those of negative weights are taken away."""
        probes = np.empty_like(estimate.probes)
        probes[self._bare.plan.order] = estimate.probes
        weight = np.where(np.arange(probes.shape[1]) < _PROBES, 1.0, -1.0) / _PROBES  # pyright: ignore[reportUnknownArgumentType]
        found = np.empty((len(rows) // d, d, d))
        for part in chunks(len(found), _CHUNK):
            seen = over(rows, probes, slice(part.start * d, part.stop * d)).reshape(-1, d, len(weight))
            found[part] = (seen * weight) @ seen.transpose(0, 2, 1)
        return found

    def whole(self, rows: Rows, solution: EstimatedSolution) -> None:
        """Return None, because the whole precision matrix is never formed."""

    def covariance(self, rows: Rows, others: Rows, solution: EstimatedSolution) -> np.ndarray:
        """Covariances of some rows with others, by conjugate gradients: exact."""
        solved = sparse.solve_iteratively(self._bare, solution.weights, transposed(others))
        return np.asarray(transposed(rows).T @ solved)

    def sample(self, rng: np.random.Generator, solution: EstimatedSolution, n: int) -> np.ndarray:
        """Draws of the base scalars."""
        noise = sparse.information_noise(rng, self._bare, solution.weights, n)
        return solution.mean + sparse.solve_iteratively(self._bare, solution.weights, noise).T

    def log_mass(self, solution: EstimatedSolution) -> float:
        """Return NaN, because the determinant is not computed."""
        return np.nan
