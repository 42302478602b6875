# pyright: basic
"""A block as one dense linear system: best for up to some hundred base scalars, and for products ``X @ w`` with long rows.

The precision is ``Q = sum of weight a a'`` over the rows of known weight, which is summed once, and over the sites, which
is summed again in every sweep. Variances are squared lengths of whitened rows, so none is negative.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy.linalg as sl
from scipy.linalg.lapack import dpotrf, dpotrs  # type: ignore[attr-defined]

from heliograph.engine.blocks.careful import careful_solve
from heliograph.engine.blocks.csr import empty
from heliograph.engine.blocks.gram import gram_of
from heliograph.engine.blocks.records import Known, joined_known, known_log_density
from heliograph.engine.blocks.rows import Rows, image, over, pull, take
from heliograph.engine.blocks.short import short_rows
from heliograph.engine.blocks.system import Error, Sites
from heliograph.engine.blocks.vectors import DenseVectors
from heliograph.factors import dot_forward
from heliograph.families import MultivariateGaussian, factored_gaussian
from heliograph.numerics.logarithms import LOG_2PI
from heliograph.numerics.triangular import inverse_of_upper

__all__ = ["DenseSystem", "Solution"]

_CANCELLED = 1e7  # beyond it, a sum of precisions has lost too many digits
_ROUNDING = 1e-15  # of a diagonal entry: a pivot below this is nothing but rounding
_LARGEST = 4_000_000  # numbers up to which rows are laid out as one dense matrix
_CHUNK = 2**21  # numbers of a temporary


class Solution(NamedTuple):
    """The joint belief of the base scalars."""

    mean: np.ndarray  # (N,)
    root: np.ndarray  # (N, N) R with R R' the covariance
    log_det: float  # of the precision, given what is fixed
    n_free: int  # base scalars less those that exact values fix
    # shift, precision and U with U'U the precision, where these are exact
    factored: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
    lost: float = 1.0  # the largest precision over what is left of it when the other scalars are known
    prior: MultivariateGaussian | None = None  # the belief as a message, where nothing else is known


class DenseSystem:
    """The linear system of one block."""

    refused = None  # it solves

    def __init__(
        self, known: tuple[Known, ...], rows: Rows, n_sites: int, vectors: tuple[tuple[Rows, int], ...] = ()
    ) -> None:
        """`rows` are those whose marginals are wanted in every sweep; the first `n_sites` of them hold sites.

        `vectors` are the rows of vector sites, with their dimension.
        """
        self.known = known
        self.shown = laid_out(rows)
        self.site_rows = rows if n_sites == len(rows) else take(rows, np.arange(n_sites))
        self.sites = self.shown if n_sites == len(rows) else laid_out(self.site_rows)
        self.vectors = tuple(DenseVectors(r, d) for r, d in vectors)
        n = rows.n_columns
        self._prior: MultivariateGaussian | None = None  # what is known without sites, where that is one message
        self.precision, self.shift = np.zeros((n, n)), np.zeros(n)
        for part in known:
            if part.rows.in_order:  # a prior around 0 without correlations
                self.precision[np.diag_indices(n)] += part.weight
                continue
            value = -part.weight * part.rows.constant
            if part.gram is None:
                gram_of(laid_out(part.rows)).add(self.precision, self.shift, part.weight, value)
            else:
                at = part.gram[0]
                whole = len(at) == n and bool((at == np.arange(n)).all())
                self.precision[... if whole else np.ix_(at, at)] += part.gram[1]
                self.shift += pull(part.rows, value)
                self._prior = part.prior if whole and len(known) == 1 else None
        self._gram = gram_of(self.sites)
        self._short = short_rows(self.shown)

    def solve(self, sites: Sites) -> Solution | None:
        """The joint belief under the sites; None where it is not a distribution."""
        tau = sites.tau
        silent = sites.fixed is None and not (sites.vectors or tau.any() or sites.shift.any())
        if silent and self._prior is not None and self._prior.root is not None:
            return _of_prior(self._prior, self._prior.root[0][0])
        q, b = self.precision.copy(), self.shift.copy()
        if len(tau):
            self._gram.add(q, b, tau, sites.shift - tau * self.sites.constant)
        for place, site in zip(self.vectors, sites.vectors, strict=True):
            place.add(q, b, site)
        if not len(b):
            return Solution(b, q, 0.0, 0)
        if not math.isfinite(q.sum() + b.sum()):
            return None
        solution = self._plain(q, b)
        if solution is None or solution.lost > _CANCELLED:
            careful = careful_solve(joined_known(self.known, len(b)), self.site_rows, sites)
            solution = None if careful is None else Solution(*careful, len(b))
        if solution is None:
            return None
        if sites.fixed is None:
            return solution
        assert sites.values is not None
        return _conditioned(solution, take(self.sites, sites.fixed), sites.values)

    def centre(self, sites: Sites) -> np.ndarray | None:
        """The means of the expressions that hold sites, at a third of the cost of a solution; None where there is none."""
        q, b = self.precision.copy(), self.shift.copy()
        self._gram.add(q, b, sites.tau, sites.shift - sites.tau * self.sites.constant)
        upper, failed = dpotrf(q.T, lower=0)
        diagonal = upper.diagonal()
        if failed or not (q.diagonal() / (diagonal * diagonal)).max() < _CANCELLED:
            solution = self.solve(sites)
            return None if solution is None else self.means(self.site_rows, solution)
        return self.sites.constant + image(self.sites, dpotrs(upper, b, lower=0)[0])

    def _plain(self, q: np.ndarray, b: np.ndarray) -> Solution | None:
        """The belief from the precision; None where it is not positive definite."""
        upper, failed = dpotrf(q.T, lower=0)  # in LAPACK's order as it is
        if failed:
            return None
        diagonal = upper.diagonal()
        lost = float((q.diagonal() / (diagonal * diagonal)).max())
        if not lost < 1.0 / _ROUNDING:
            return None
        root = inverse_of_upper(upper)  # LAPACK leaves zeros below the diagonal
        mean = root @ (root.T @ b)
        mean += root @ (root.T @ (b - q @ mean))  # one step of refinement
        return Solution(mean, root, 2 * float(np.log(diagonal).sum()), len(b), (b, q, upper), lost)

    def whole(self, rows: Rows, solution: Solution) -> MultivariateGaussian | None:
        """The joint belief of `rows` if they are exactly the base scalars in their order, else None."""
        if solution.prior is not None and rows.in_order:
            return solution.prior
        if solution.factored is None or not rows.in_order:
            return None
        return factored_gaussian(*solution.factored, solution.root, solution.mean)

    def covariance(self, rows: Rows, others: Rows, solution: Solution) -> np.ndarray:
        """Covariances of some rows with others."""
        return over(rows, solution.root) @ over(others, solution.root).T

    def sample(self, rng: np.random.Generator, solution: Solution, n: int) -> np.ndarray:
        """Draws of the base scalars."""
        return solution.mean + rng.standard_normal((n, solution.root.shape[1])) @ solution.root.T

    def marginals(self, solution: Solution) -> tuple[np.ndarray, np.ndarray]:
        """Means and variances of the rows that are wanted in every sweep."""
        if self._short is None:
            return moments(self.shown, solution)
        return self.means(self.shown, solution), self._short.variances(solution.root)

    def vector_moments(self, solution: Solution) -> list[tuple[np.ndarray, np.ndarray]]:
        """Means and covariances of every vector site, by port."""
        return [(v.means(solution.mean), v.covariances(solution.root)) for v in self.vectors]

    def moments(self, rows: Rows, solution: Solution, d: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Means of any rows, and their variances, or the covariances of every d of them."""
        if d is None:
            return moments(rows, solution)
        return self.means(rows, solution), DenseVectors(rows, d).covariances(solution.root)

    def means(self, rows: Rows, solution: Solution) -> np.ndarray:
        """Means of any rows."""
        return rows.constant + image(rows, solution.mean)

    def error(self, rows: Rows, start: int, solution: Solution) -> Error:
        """Return an error of 0, because nothing is estimated."""
        return Error(0.0)

    def log_mass(self, solution: Solution) -> float:
        """``log`` of the integral of the known rows times the sites, the sites' statistics counted from their means."""
        return known_log_density(self.known, solution.mean) + 0.5 * (solution.n_free * LOG_2PI - solution.log_det)


def _of_prior(prior: MultivariateGaussian, root: np.ndarray) -> Solution:
    """The belief before any site says anything, where a prior has a root R of its covariance: nothing is solved."""
    shift = prior.naturals[0][0]
    mean = root @ (root.T @ shift) if shift.any() else np.zeros(len(shift))
    return Solution(mean, root, -2 * float(np.log(root.diagonal()).sum()), len(shift), prior=prior)


def laid_out(rows: Rows) -> Rows:
    """Rows as one dense matrix, where that is small."""
    n, n_columns = len(rows), rows.n_columns
    largest = max(_LARGEST, 2 * rows.n_entries)  # a sparse matrix that is half full takes more memory than a dense one
    if not n or n * n_columns > largest or not (rows.n_entries or len(rows.dense) > 1):
        return rows
    if rows.n_entries < 0.05 * n * n_columns and n_columns > 64 and not rows.dense:
        return rows
    whole = rows.sparse.toarray()
    for x, columns in rows.dense:
        whole[:, columns] += x
    return Rows(empty(n, n_columns), ((whole, np.arange(n_columns)),), rows.constant)


def moments(rows: Rows, solution: Solution) -> tuple[np.ndarray, np.ndarray]:
    """Means and variances of the rows."""
    if not rows.n_entries and len(rows.dense) == 1:
        x, columns = rows.dense[0]
        whole = len(columns) == rows.n_columns
        root = solution.root if whole else _root_of(solution.root, columns)
        mean, variance = dot_forward(x, solution.mean[columns], root=root)
        return rows.constant + mean, variance
    mean = rows.constant + image(rows, solution.mean)
    variance = np.zeros(len(rows))
    if not rows.n_entries and not rows.dense:
        return mean, variance
    step = max(1, _CHUNK // max(1, rows.n_columns))
    for start in range(0, len(rows), step):
        white = over(rows, solution.root, slice(start, min(start + step, len(rows))))
        variance[start : start + step] = np.einsum("ij,ij->i", white, white)
    return mean, variance


def _root_of(root: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """A square root of the covariance of some base scalars."""
    some = root[columns]
    if len(columns) > 0.7 * root.shape[1]:
        return some
    return np.asarray(np.linalg.qr(some.T, mode="r")).T


def _conditioned(solution: Solution, rows: Rows, values: np.ndarray) -> Solution | None:
    """The belief given that some expressions have exactly these values."""
    white = over(rows, solution.root)  # (m, N)
    gap = values - rows.constant - image(rows, solution.mean)
    try:
        lower = np.linalg.cholesky(white @ white.T)
    except np.linalg.LinAlgError:
        return None  # two values of one expression
    half = sl.solve_triangular(lower, white, lower=True, check_finite=False)  # orthonormal rows
    mean = solution.mean + solution.root @ (half.T @ sl.solve_triangular(lower, gap, lower=True, check_finite=False))
    root = solution.root - (solution.root @ half.T) @ half
    log_det = solution.log_det + 2 * float(np.log(np.diag(lower)).sum())
    return Solution(mean, root, log_det, solution.n_free - len(rows))
