"""The factor of a compound Gamma prior: ``(1 + tau)^-2``, what a Gamma rate with a Gamma rate of its own leaves."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.special import betaln, expit, log_expit, psi

from heliograph.factors.base import Factor, Incoming
from heliograph.factors.incoming import as_message
from heliograph.factors.integrals.exponential import cliff, exp_beyond_tangent
from heliograph.factors.integrals.logistic import beyond_tangent
from heliograph.families import Family, Gamma
from heliograph.numerics.chunks import integral_chunks
from heliograph.numerics.panels import DROP, Panels, newton_from_above, split_evenly, steep

__all__ = ["CompoundGamma"]

# around x = 0, where 1 + exp(x) turns, and around x = -log rate, where the Gamma message ends
_BENDS = np.array([-38.0, -23.0, -14.0, -8.5, -5.0, -2.5, 0.0, 2.5, 5.0, 8.5, 14.0, 23.0, 38.0])
_CLIFF = np.array([-23.0, -14.0, -8.5, -5.0, -2.5, -0.5, 1.0, 2.0, 3.0, 4.0])


class CompoundGamma(Factor):
    """``f(tau) = (1 + tau)^-2``, the density of a ratio of two exponential variables.

    The belief matches ``E tau`` and ``E log tau``. Under a message of rate 0 these are those of a beta prime distribution,
    and exist for a shape below 1; the message is uniform where they do not, and where what comes in grows or has a
    shape that is not positive. At a point mass it is the limit of ever narrower messages.

    >>> CompoundGamma().belief("tau", {"tau": Gamma(5.0, 5.0)})
    Gamma(shape 4.6578, rate 5.6259)
    """

    name = "compound_gamma"
    families: ClassVar = {"tau": (Gamma,)}
    how: ClassVar = {"tau": "quadrature"}
    powers = True

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        tau = as_message(self, incoming, "tau")
        message = self.belief(to, incoming, power) / tau
        if tau.point is None:
            return message
        # log f has slope k / x - rate and bend -k / x^2 if it is k log x - rate x
        x = np.where(tau.is_point, tau.point, 1.0)
        limit = -2.0 * power * (x / (1.0 + x)) ** 2, 2.0 * power / (1.0 + x) ** 2
        return Gamma.from_naturals(
            tuple(np.where(tau.is_point, l, n) for l, n in zip(limit, message.naturals, strict=True))
        )

    def belief(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        """The projection of the incoming message times the factor."""
        tau = as_message(self, incoming, "tau")
        s, r = tau.naturals[0].reshape(-1) + 1.0, tau.naturals[1].reshape(-1)
        soft = (s > 0) & (r > 0)
        rows = [_Rows(s[i], r[i], soft[i], power) for i in integral_chunks(s.size)]
        log_mean, gap = (np.concatenate([getattr(row, name) for row in rows]) for name in ("log_mean", "gap"))
        prime = (r == 0) & (s > 0) & (s + 1.0 < 2.0 * power)
        a, b = np.where(prime, s, 0.5), np.where(prime, 2.0 * power - s, 1.5)
        log_mean = np.where(prime, np.log(a / (b - 1.0)), log_mean)
        gap = np.where(prime, np.log(a / (b - 1.0)) - psi(a) + psi(b), gap)
        belief = Gamma.from_mean_and_log_gap(np.exp(log_mean), gap, strict=False)
        naturals = (
            np.where(soft | prime, n, old.reshape(-1)).reshape(tau.shape)
            for n, old in zip(belief.naturals, tau.naturals, strict=True)
        )
        if tau.point is None:
            return Gamma.from_naturals(tuple(naturals))
        return Gamma.from_naturals(tuple(np.where(tau.is_point, 0.0, n) for n in naturals), tau.point)

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the integral of the incoming message times the factor; infinite where it diverges."""
        tau = as_message(self, incoming, "tau")
        s, r = tau.naturals[0].reshape(-1) + 1.0, tau.naturals[1].reshape(-1)
        soft = (s > 0) & (r > 0)
        log_z = np.concatenate([_Rows(s[i], r[i], soft[i], power).log_z for i in integral_chunks(s.size)] or [s])
        prime = (r == 0) & (s > 0) & (s < 2.0 * power)
        a, b = np.where(prime, s, 1.0), np.where(prime, 2.0 * power - s, 1.0)
        log_z = np.where(soft, log_z, np.where(prime, betaln(a, b), np.inf)).reshape(tau.shape)
        if tau.point is None:
            return log_z
        return np.where(tau.is_point, -2.0 * power * np.log1p(np.where(tau.is_point, tau.point, 1.0)), log_z)


class _Rows:
    """The quadrature over x = log tau of ``s x - r exp(x) - n log(1 + exp(x))``, around its peak; it is log-concave."""

    def __init__(self, s: np.ndarray, r: np.ndarray, soft: np.ndarray, power: float) -> None:
        s, r, n = np.where(soft, s, 1.0), np.where(soft, r, 1.0), 2.0 * power
        x0 = _peak(s, r, n)
        height, p = r * np.exp(x0), expit(x0)
        log_height = np.log(r) + x0

        def fall(d: np.ndarray, side: float, lift: float) -> tuple[np.ndarray, np.ndarray]:
            cost, pull = exp_beyond_tangent(side * d, log_height)
            beyond, gain = _softplus_beyond(side * d, x0)
            return cost + n * beyond - lift * d - DROP, side * (pull + n * gain) - lift

        # the mean of tau itself may lie far to the right of the peak in log tau, so there the window is its
        high = newton_from_above(cliff(log_height, 1.0), lambda d: fall(d, 1.0, 1.0), 12)
        # far to the left only s x is left; near the peak exp(-d) - 1 + d > d^2 / (2 + d), the closer bound for large s
        start = (DROP + height - n * log_expit(-x0)) / s
        start = np.minimum(start, steep(height))
        low = -newton_from_above(start, lambda d: fall(d, -1.0, 0.0), 12)
        zero = np.zeros_like(low)
        bends = [-x0[:, None] + _BENDS, -log_height[:, None] + _CLIFF]
        breaks = [split_evenly(low, zero, 4), split_evenly(zero, high, 4), *bends]
        panels = Panels(np.concatenate(breaks, axis=1), low, high)
        d, of = panels.x, panels.of
        rest = s - height - n * p  # the slope at the peak, which is rounding
        beyond, _ = _softplus_beyond(d, of(x0))
        cost, _ = exp_beyond_tangent(d, of(log_height))
        log_mass = panels.tilt(of(rest) * d - cost - n * beyond)
        self.log_z = log_mass + Gamma.from_naturals((s - 1.0, r)).log_density(np.exp(x0)) + x0 + n * log_expit(-x0)
        move = panels.integrate(d)
        self.gap = panels.log_mean_exp(d - of(move))
        self.log_mean = x0 + move + self.gap


def _softplus_beyond(d: np.ndarray, x0: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`beyond_tangent` from any x0: mirrored where x0 > 0, as ``log(1 + exp(x)) = x + log(1 + exp(-x))``."""
    side = np.where(x0 > 0, -1.0, 1.0)
    beyond, gain = beyond_tangent(side * d, side * x0)
    return beyond, side * gain


def _peak(s: np.ndarray, r: np.ndarray, n: float) -> np.ndarray:
    """Where ``s x - r exp(x) - n log(1 + exp(x))`` is highest: the root of ``s - r t - n t / (1 + t)`` in t = exp(x)."""
    b = r + n - s
    root = np.sqrt(b * b + 4.0 * r * s)  # of r t^2 + b t - s = 0
    t = np.where(b > 0, 2.0 * s / (root + np.maximum(b, 0.0)), (root - np.minimum(b, 0.0)) / (2.0 * r))
    return np.log(t)
