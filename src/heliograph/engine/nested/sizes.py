"""How much a tail counts in means and variances: by how large hyper-parameters and the variances of what they govern are there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from heliograph.engine.nested.starting import shares_at
from heliograph.engine.posterior import Posterior
from heliograph.graph.hyper import Hyper
from heliograph.graph.records import Graph
from heliograph.numerics.exploring.climbing import Evaluated

__all__ = ["Sizes", "log_sizes", "log_variances", "log_widths"]

_AWAY = 0.1  # share of a squared distance in standard deviations that a tail counts with: chosen on one scale that is far from zero
_HOLDS = 12.0  # nats below the top, beyond which a point holds no mass
_LEAST = 1e-300  # variance
_STEP = 1e-4  # of u, for the slope of a logarithm


class Ran(Evaluated, Protocol):
    """A value at which EP was run."""

    @property
    def posterior(self) -> Posterior | None:
        """What EP found."""
        ...

    @property
    def graph(self) -> Graph | None:
        """The graph of the run."""
        ...


class Sizes:
    """How much places count: by the sizes of positive hyper-parameters, and by the variances of unobserved variables.

    Parameters
    ----------
    hypers
        The hyper-parameters.
    """

    def __init__(self, hypers: Sequence[Hyper]) -> None:
        self._hypers = hypers
        self._log_variances: dict[Ran, np.ndarray] = {}

    def at(self, points: Sequence[Ran], metric: np.ndarray, u: np.ndarray) -> np.ndarray:
        """``log`` of how much more than at the best of these points a place ``(..., d)`` counts, 0 or more."""
        best = max(points, key=lambda p: p.log_density)
        sizes = log_sizes(self._hypers, best.u, metric, u)
        if len(best.u) == 1 and self._hypers[0].prior.positive:  # whose tail counts by its distance, which is enough
            return sizes
        use = [p for p in points if p.log_density > best.log_density - _HOLDS]
        for p in use:
            if p not in self._log_variances and p.posterior is not None and p.graph is not None:
                self._log_variances[p] = log_variances(p.posterior, p.graph)
        logs, at = [self._log_variances[p] for p in use], np.array([p.u for p in use])
        widths = log_widths(logs, at, use.index(best), metric, u)
        return np.maximum(sizes, widths)


def log_sizes(hypers: Sequence[Hyper], best: np.ndarray, metric: np.ndarray, u: np.ndarray) -> np.ndarray:
    """``log`` of the largest of the positive hyper-parameters, each over its size at the best value, or 0.

    A tail that holds little mass counts in the mean and the variance of a scale if the scale is large there; and that of a single
    one, if it is many standard deviations away.

    Parameters
    ----------
    hypers
        The hyper-parameters.
    best
        The best value, ``(d,)``.
    metric
        ``(d, d)``, in which it is one standard deviation wide.
    u
        Other values, ``(..., d)``.
    """
    start, found = 0, np.zeros(u.shape[:-1])
    for h in hypers:
        part = slice(start, start + h.prior.n)
        if h.prior.positive:
            log_here = np.log(h.prior.value(best[part]).reshape(-1))
            larger = np.log(h.prior.value(u[..., part]).reshape(*u.shape[:-1], -1)) - log_here
            found = np.maximum(found, larger.max(axis=-1))
            if len(best) == 1:
                slope = (np.log(h.prior.value(best + _STEP)).reshape(-1) - log_here)[0] / _STEP
                away = np.expm1(np.minimum(larger[..., 0], 50.0)) * float(np.abs(metric[0, 0])) / slope
                found = np.maximum(found, np.log(np.maximum(_AWAY * away**2, 1.0)))
        start += h.prior.n
    return found


def log_variances(posterior: Posterior, graph: Graph) -> np.ndarray:
    """The logarithms of the variances of a run's unobserved Gaussian variables."""
    nodes = [n for n in graph.nodes if n.given and n.family.gaussian and not n.fully_observed]
    found = [np.ravel(np.asarray(posterior[n.name].variance)) for n in nodes]
    return np.log(np.maximum(np.concatenate([*found, np.zeros(0)]), _LEAST))


def log_widths(
    log_variances: Sequence[np.ndarray], at: np.ndarray, best: int, metric: np.ndarray, u: np.ndarray
) -> np.ndarray:
    """``log`` of how much larger than at the best value the variance of any unobserved variable is at others, or 0.

    Parameters
    ----------
    log_variances
        At values that were tried, those of all variables one after the other.
    at
        These values, ``(P, d)``.
    best
        Which of them is the best.
    metric
        ``(d, d)``, in which nearness is measured.
    u
        Other values, ``(..., d)``; a straight line through the values near one says what it is there.
    """
    if len(at) <= at.shape[1] + 1 or not len(log_variances[best]):
        return np.zeros(u.shape[:-1])
    rise = np.array([np.max(v - log_variances[best]) for v in log_variances])
    flat = u.reshape(-1, u.shape[-1])
    found = [float(shares_at((at - here) @ metric.T) @ rise) for here in flat]
    return np.maximum(np.array(found), 0.0).reshape(u.shape[:-1])
