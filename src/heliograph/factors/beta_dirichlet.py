"""Probabilities with fixed parameters, and a category drawn from an unknown vector of probabilities."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.special import logsumexp

from heliograph.factors.base import Factor, Incoming
from heliograph.factors.incoming import as_data, as_message
from heliograph.factors.prior import log_overlap
from heliograph.families import Beta, Categorical, Dirichlet, Family
from heliograph.numerics.inverse_dirichlet import raised_centre

__all__ = ["BetaFactor", "CategoricalDirichlet", "DirichletFactor"]


class _KnownPrior(Factor):
    """A distribution of p whose parameters are data."""

    how: ClassVar = {"p": "closed form"}
    ignores_own = ("p",)
    powers = True

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the integral of the prior (to its power) times the incoming message."""
        prior = self.message("p", incoming)
        sent = self.message("p", incoming, power)
        return log_overlap(sent, incoming["p"]) + sent.log_normaliser() - power * prior.log_normaliser()


class BetaFactor(_KnownPrior):
    """``Beta(p; a, b)`` with a and b given."""

    name = "beta"
    families: ClassVar = {"a": (), "b": (), "p": (Beta,)}

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Beta:
        """The prior itself."""
        a, b = np.broadcast_arrays(as_data(self, incoming, "a"), as_data(self, incoming, "b"))
        return Beta.from_naturals((power * (a - 1.0), power * (b - 1.0)))


class DirichletFactor(_KnownPrior):
    """``Dirichlet(p; concentration)`` with the concentration given."""

    name = "dirichlet"
    families: ClassVar = {"concentration": (), "p": (Dirichlet,)}
    data_ranks: ClassVar = {"concentration": 1}

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Dirichlet:
        """The prior itself."""
        return Dirichlet.from_naturals((power * (as_data(self, incoming, "concentration") - 1.0),))


class CategoricalDirichlet(Factor):
    """``P(x = k | p) = p_k``.

    The message to x is the mean of p, exact; so is the one to p of a known x. An uncertain x gives p the projection of
    a mixture of Dirichlets on their ``E log p``. Where p is improper its mean does not exist: the messages are uniform.
    """

    name = "categorical_dirichlet"
    families: ClassVar = {"p": (Dirichlet,), "x": (Categorical,)}
    how: ClassVar = {"p": "closed form, projected", "x": "closed form"}
    ignores_own = ("x",)
    exact_given: ClassVar = {"p": ("x",)}

    def __init__(self, by_mean: bool = False) -> None:
        """With `by_mean`, an uncertain x gives p its probabilities as counts: the message that keeps the mean of p."""
        self.by_mean = by_mean

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        """To x the mean of p; to p one count, spread over the categories that x may be."""
        p, x = self._read(incoming)
        if to == "x":
            return Categorical.from_log_p(_log_mean(p), strict=False)
        if np.all(x.is_point):
            return Dirichlet.from_naturals((_one_hot(x),))
        return self._to_p(p, x)

    def belief(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        """The incoming message times the one sent."""
        p, x = self._read(incoming)
        return self.message(to, incoming, power) * (p if to == "p" else x)

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log sum_k P(x = k) E p_k``."""
        p, x = self._read(incoming)
        log_mean = _log_mean(p)
        log_mean = log_mean - logsumexp(log_mean, axis=-1, keepdims=True)
        return np.asarray(logsumexp(log_mean + _log_p(x), axis=-1))

    def _read(self, incoming: Incoming) -> tuple[Dirichlet, Categorical]:
        p = as_message(self, incoming, "p")
        x: Any = incoming["x"]
        x = x if isinstance(x, Family) else Categorical.point_mass(x, p.naturals[0].shape[-1])
        shape = np.broadcast_shapes(p.shape, x.shape)
        return p.broadcast_to(shape), x.broadcast_to(shape)

    def _to_p(self, p: Dirichlet, x: Any) -> Dirichlet:
        a = p.naturals[0] + 1.0
        soft = p.proper & ~p.is_point & ~x.is_point & ~x.is_uniform
        a = np.where(soft[..., None], a, 1.0)
        total = a.sum(axis=-1, keepdims=True)
        # the tilted distribution mixes Dirichlet(a + e_k) with weights w_k
        log_w = np.log(a) + np.where(soft[..., None], _log_p(x), 0.0)
        log_w = np.moveaxis(log_w, -1, 0).copy()  # sums over the first axis are far faster than over a short last one
        w = np.exp(log_w - log_w.max(axis=0))
        w = np.moveaxis(w / w.sum(axis=0), 0, -1)
        if self.by_mean:  # (a + w) / (total + 1) is the mean of that mixture, and never improper
            message = np.where(soft[..., None], w, 0.0)
            return Dirichlet.from_naturals((np.where(x.is_point[..., None], _one_hot(x), message),))
        # psi(a + 1) = psi(a) + 1 / a
        projected = Dirichlet.from_log_centre_and_gap(*raised_centre(a, w / a - 1.0 / total), strict=False)
        message = np.where(soft[..., None], projected.naturals[0] - (a - 1.0), 0.0)
        return Dirichlet.from_naturals((np.where(x.is_point[..., None], _one_hot(x), message),))


def _log_mean(p: Dirichlet) -> np.ndarray:
    """``log E p_k`` up to a constant; 0 where p is improper."""
    a = p.naturals[0] + 1.0
    log_a = np.log(np.where(p.proper[..., None], a, 1.0))
    if p.point is None:
        return log_a
    at = p.is_point[..., None] & (p.point > 0)
    log_point = np.where(at, np.log(np.where(at, p.point, 1.0)), -np.inf)
    return np.where(p.is_point[..., None], log_point, log_a)


def _log_p(x: Any) -> np.ndarray:
    """Normalised log probabilities, -inf for the categories a point mass leaves out."""
    log_p = x.naturals[0]
    log_p = log_p - logsumexp(log_p, axis=-1, keepdims=True)
    if x.point is None:
        return log_p
    hot = _one_hot(x) > 0
    return np.where(x.is_point[..., None], np.where(hot, 0.0, -np.inf), log_p)


def _one_hot(x: Any) -> np.ndarray:
    """1 at the category of each point mass; all 0 where an entry is none."""
    k = x.naturals[0].shape[-1]
    if x.point is None:
        return np.zeros(x.naturals[0].shape)
    at = np.where(x.is_point, x.point, -1.0)
    return (at[..., None] == np.arange(k)).astype(float)
