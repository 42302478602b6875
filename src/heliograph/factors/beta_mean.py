"""A probability around an unknown mean: ``p ~ Beta(mean concentration, (1 - mean) concentration)``, by quadrature over the mean."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.special import betaln

from heliograph.factors.base import Factor, Incoming
from heliograph.factors.incoming import as_data, as_plate
from heliograph.factors.integrals.beta_mean import MeanTilt, tilt_of_mean
from heliograph.families import Beta, Family

__all__ = ["BetaMean"]


class BetaMean(Factor):
    """``Beta(p; mean k, (1 - mean) k)`` with a Beta message at the mean and a known concentration k.

    The belief of the mean matches ``E log`` and ``E log(1 - .)``; that of p its mean and variance, since ``E log p`` does not exist
    for a mean that may be near 0, as under Beta(1, 1), where no success was seen. Exact where the mean is a point mass. Where a
    message leaves no tilted distribution (an improper one at the mean, one at p that grows towards 0 or 1) the message is uniform.

    >>> f = BetaMean()
    >>> f.message("p", {"mean": Beta.point_mass(0.25), "concentration": 8.0, "p": Beta(1.0, 1.0)})
    Beta(a 2., b 6.)
    """

    name = "beta_mean"
    families: ClassVar = {"mean": (Beta,), "concentration": (), "p": (Beta,)}
    how: ClassVar = {"mean": "quadrature", "p": "quadrature over mean"}
    exact_given: ClassVar = {"p": ("mean",)}

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        """Belief over cavity."""
        mean, p, k, valid = self._read(incoming)
        known = mean.is_point
        wanted = valid & ~known & ~((to == "mean") & p.is_uniform) & ~((to == "p") & p.is_point)
        tilt = self._tilt(mean, p, k, wanted)
        found = tilt.mean if to == "mean" else tilt.p
        first, second = (np.where(wanted, f.reshape(wanted.shape), 0.2) for f in found)
        if to == "mean":
            belief = Beta.from_mean_logit_and_gap(first, second, strict=False)
        else:
            known_p = np.isfinite(first) & (second > 0) & (second < first * (1.0 - first))
            moments = np.where(known_p, first, 0.5), np.where(known_p, second, 0.05)
            belief = Beta.from_mean_variance(*moments).without(~known_p)
        own = (mean if to == "mean" else p).naturals
        naturals = [np.where(wanted, n - c, 0.0) for n, c in zip(belief.naturals, own, strict=True)]
        if to == "p" and mean.point is not None:
            at = np.where(known, mean.point, 0.5)
            exact = at * k - 1.0, (1.0 - at) * k - 1.0
            naturals = [np.where(known & ~p.is_point, e, n) for e, n in zip(exact, naturals, strict=True)]
        return Beta.from_naturals(tuple(naturals))

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the integral over the mean and p; infinite where there is none."""
        mean, p, k, valid = self._read(incoming)
        known, silent = mean.is_point, p.is_uniform & mean.proper
        wanted = valid & ~known & ~silent
        proper = p.proper & ~p.is_point
        a, b = (np.where(proper, n + 1.0, 1.0) for n in p.naturals)
        normaliser = np.where(proper, betaln(a, b), 0.0)
        log_z = np.where(wanted, self._tilt(mean, p, k, wanted).log_z.reshape(wanted.shape) - normaliser, np.inf)
        if mean.point is not None:
            at = np.clip(np.where(known, mean.point, 0.5), 1e-300, 1.0 - 1e-16)
            given = Beta(at * k, (1.0 - at) * k)
            soft = betaln(at * k + p.naturals[0], (1.0 - at) * k + p.naturals[1]) - betaln(at * k, (1.0 - at) * k)
            value = np.where(p.is_point, given.log_density(np.where(p.is_point, p.mean, 0.5)), soft - normaliser)
            log_z = np.where(known, value, log_z)
        return np.where(silent, 0.0, log_z)

    def _read(self, incoming: Incoming) -> tuple[Beta, Beta, np.ndarray, np.ndarray]:
        """The messages, the concentration, and where there is a tilted distribution."""
        mean, p = as_plate(self, incoming, ("mean", "p"))
        k = np.broadcast_to(as_data(self, incoming, "concentration"), mean.shape)
        inside = (p.mean > 0) & (p.mean < 1) & p.is_point
        grows = ~p.is_point & ((p.naturals[0] < 0) | (p.naturals[1] < 0))
        return mean, p, k, mean.proper & ~grows & (inside | ~p.is_point)

    def _tilt(self, mean: Beta, p: Beta, k: np.ndarray, wanted: np.ndarray) -> MeanTilt:
        n = (mean.size,)
        return tilt_of_mean(mean.reshape(n), k.reshape(n), p.reshape(n), wanted.reshape(n))
