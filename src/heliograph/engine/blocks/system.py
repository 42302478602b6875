"""The interface between a block and its linear system, dense or sparse."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from heliograph.engine.blocks.rows import Rows, take
from heliograph.families import MultivariateGaussian
from heliograph.numerics.sparse import TooExpensiveError

__all__ = ["Cavities", "Error", "Sites", "System", "VectorSites", "cavities_of", "with_weak_sites"]

# of the largest known precision: the precision of sites that no message has reached yet; vectors are not solved carefully
_HARDLY, _HARDLY_VECTOR = 1e-12, 1e-6
_MOST_APART = 32  # sites that are conditioned on one another one by one


class VectorSites(NamedTuple):
    """Messages on vectors of expressions: d rows each, with a precision matrix."""

    rows: Rows  # (m d,)
    shift: np.ndarray  # (m, d)
    precision: np.ndarray  # (m, d, d)


class Sites(NamedTuple):
    """The messages of other factors to the expressions of a block."""

    shift: np.ndarray  # (n,) exp(shift z - tau z^2 / 2)
    tau: np.ndarray  # (n,)
    vectors: tuple[VectorSites, ...] = ()
    fixed: np.ndarray | None = None  # (m,) positions of the sites whose value is known exactly
    values: np.ndarray | None = None  # (m,)


class Error(NamedTuple):
    """How wrong estimated standard deviations may be, relative to themselves."""

    size: float
    checked: bool = False  # True: the largest error in a sample of exact solves; False: a standard error

    def in_words(self) -> str:
        """The end of a sentence on standard deviations."""
        text = "within {:.1f} % of exact ones in a sample" if self.checked else "with a standard error of {:.1f} %"
        return text.format(100 * self.size)


class Cavities(NamedTuple):
    """The beliefs of some expressions without their own sites."""

    sites: np.ndarray  # (m,) their numbers
    mean: np.ndarray  # (m,)
    variance: np.ndarray  # (m,)


class System(Protocol):
    """The linear system of one block; a solution is whatever `solve` gives."""

    @property
    def site_rows(self) -> Rows:
        """The expressions that hold sites."""
        ...

    @property
    def refused(self) -> TooExpensiveError | None:
        """The reason for which the system estimates; None where it solves."""
        ...

    def error(self, rows: Rows, start: int, solution: Any) -> Error:
        """Bound how wrong the standard deviations of some rows may be.

        `start` is the place of the first of them among the rows that are wanted in every sweep; below 0, they are not among these.
        """
        ...

    def solve(self, sites: Sites) -> Any | None:
        """The joint belief; None where it is not a distribution."""
        ...

    def marginals(self, solution: Any) -> tuple[np.ndarray, np.ndarray]:
        """Means and variances of the expressions that are wanted in every sweep: the sites first."""
        ...

    def vector_moments(self, solution: Any) -> list[tuple[np.ndarray, np.ndarray]]:
        """Means ``(m, d)`` and covariances ``(m, d, d)`` of every vector site, by port."""
        ...

    def means(self, rows: Rows, solution: Any) -> np.ndarray:
        """Means of any expressions."""
        ...

    def moments(self, rows: Rows, solution: Any, d: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Means of any expressions, and their variances, or the covariances of every d of them."""
        ...

    def whole(self, rows: Rows, solution: Any) -> MultivariateGaussian | None:
        """The joint belief of `rows` if they are exactly the base scalars in their order, where the system has it."""
        ...

    def covariance(self, rows: Rows, others: Rows, solution: Any) -> np.ndarray:
        """Covariances of some expressions with others."""
        ...

    def sample(self, rng: np.random.Generator, solution: Any, n: int) -> np.ndarray:
        """Draws ``(n, N)`` of the base scalars."""
        ...

    def log_mass(self, solution: Any) -> float:
        """``log`` of the integral of the known rows times the sites, the sites' statistics counted from their means."""
        ...


def with_weak_sites(sites: Sites, heaviest: float) -> Sites:
    """The sites, with a weak precision where no message has arrived yet.

    The output of a black box has no prior. Before its first message, whatever depends on it alone (a missing value) has no
    distribution, and must not keep the rest of the block from having one.
    """
    silent = (sites.tau == 0) & (sites.shift == 0)
    vectors: list[VectorSites] = []
    for site in sites.vectors:
        nothing = ~site.precision.any(axis=(1, 2)) & ~site.shift.any(axis=1)
        d = site.shift.shape[1]
        vectors.append(
            site._replace(
                precision=site.precision + np.where(nothing, _HARDLY_VECTOR * heaviest, 0.0)[:, None, None] * np.eye(d)
            )
        )
    return sites._replace(tau=np.where(silent, _HARDLY * heaviest, sites.tau), vectors=tuple(vectors))


def cavities_of(system: System, chosen: np.ndarray, sites: Sites) -> Cavities | None:
    """The cavities of some sites, computed without subtracting the sites.

    The system is solved without any of these sites, and each expression is then conditioned on the other ones. None where that
        leaves no distribution.
    """
    some = np.ones(len(sites.tau))
    some[chosen] = 0.0
    rest = system.solve(sites._replace(shift=some * sites.shift, tau=some * sites.tau))
    if rest is None:
        return None
    rows = take(system.site_rows, chosen)
    return _conditioned_cavities(chosen, sites, system.means(rows, rest), system.covariance(rows, rows, rest))


def _conditioned_cavities(chosen: np.ndarray, sites: Sites, mean: np.ndarray, covariance: np.ndarray) -> Cavities:
    """The belief of each expression given the sites of the others, from one without all of these sites.

    Parameters
    ----------
    chosen
        Positions of the sites, (m,).
    sites
        All sites.
    mean, covariance
        Of the chosen expressions, without their sites: (m,) and (m, m).
    """
    value, noise = sites.shift[chosen] / sites.tau[chosen], 1.0 / sites.tau[chosen]
    m, v = mean.copy(), np.diag(covariance).copy()
    if len(chosen) > _MOST_APART:
        inverse = np.linalg.inv(covariance + np.diag(noise))
        own = np.diag(inverse)
        m, v = value - inverse @ (value - mean) / own, 1.0 / own - noise
    else:
        for k in range(len(chosen)) if len(chosen) > 1 else ():
            others = np.delete(np.arange(len(chosen)), k)
            among = covariance[np.ix_(others, others)] + np.diag(noise[others])
            weight: np.ndarray = np.linalg.solve(among, covariance[others, k])  # pyright: ignore[reportUnknownVariableType]
            m[k] += weight @ (value[others] - mean[others])
            v[k] -= weight @ covariance[others, k]
    good = np.isfinite(m) & (v > 0)
    return Cavities(chosen[good], m[good], v[good])
