"""The exponential factor ``out = exp(z)``: a Gaussian on the log of a positive variable with Gamma messages."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.special import gammaln, polygamma, psi

from heliograph.factors.base import Factor, Incoming
from heliograph.factors.incoming import as_message
from heliograph.factors.integrals.exponential import exponential_gap, exponential_tilt
from heliograph.factors.integrals.tilt import cavity_of, gaussian_site
from heliograph.families import Family, Gamma, Gaussian

__all__ = ["Exp"]

_LARGEST = 600.0  # of a log mean: beyond it the rate of a narrow belief overflows, and the mean is held there


class Exp(Factor):
    """``out = exp(z)``: the belief of z is its cavity times the Gamma message at exp(z), without a Jacobian.

    Under a cavity of z with precision 0 the belief of `out` is again a Gamma, if there is one; where there is none, under
    a cavity of negative precision, and under a Gamma message that grows (a negative rate), the message is uniform.

    >>> Exp().belief("out", {"z": Gaussian(0.0, 1.0), "out": Gamma(1.0, 1.0)})
    Gamma(shape 1.8763, rate 2.7671)
    """

    name = "exp"
    families: ClassVar = {"z": (Gaussian,), "out": (Gamma,)}
    how: ClassVar = {"z": "quadrature", "out": "quadrature"}

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        z, out = as_message(self, incoming, "z"), as_message(self, incoming, "out")
        return self._to_z(z, out) if to == "z" else self._belief_of_out(z, out) / out

    def belief(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        """The projected tilted distribution of z or out."""
        if to == "out":
            return self._belief_of_out(as_message(self, incoming, "z"), as_message(self, incoming, "out"))
        return super().belief(to, incoming, power)

    def _to_z(self, z: Gaussian, out: Gamma) -> Gaussian:
        m, v, known, a, r = _read(z, out)
        tilt, _ = exponential_tilt(m, v, a, np.maximum(r, 0.0))
        shift, precision = gaussian_site(m, v, tilt)
        good = known & (r >= 0)
        s, wild, shape, rate = _wild(z, a, r)
        wild &= ~known
        tau = 1.0 / polygamma(1, shape)
        shift = np.where(good, shift, np.where(wild, (psi(shape) - np.log(rate)) * tau - s, 0.0))
        precision = np.where(good, precision, np.where(wild, tau, 0.0))
        if out.point is None:
            return Gaussian.from_naturals((shift.reshape(z.shape), precision.reshape(z.shape)))
        positive = out.is_point & (out.point > 0)
        at = np.log(np.where(positive, out.point, 1.0))
        naturals = tuple(np.where(out.is_point, 0.0, n.reshape(z.shape)) for n in (shift, precision))
        return Gaussian.from_naturals(naturals, np.where(positive, at, np.nan))

    def _belief_of_out(self, z: Gaussian, out: Gamma) -> Gamma:
        """Matches ``E out`` and ``E log out``; where nothing can be normalised, the incoming message itself."""
        m, v, known, a, r = _read(z, out)
        mean, gap = exponential_gap(m, v, a, np.maximum(r, 0.0))
        point = known & (v == 0)
        belief = Gamma.from_mean_and_log_gap(
            np.exp(np.clip(mean + gap, -_LARGEST, _LARGEST)), np.where(point, 1.0, gap), strict=False
        )
        good = known & (r >= 0)
        _, wild, shape, rate = _wild(z, a, r)
        wild &= ~known
        k = np.where(good, belief.naturals[0], np.where(wild, shape - 1.0, a))
        rate = np.where(good, belief.naturals[1], np.where(wild, rate, r))
        hard = out.is_point.reshape(-1) | point
        if not hard.any():
            return Gamma.from_naturals((k.reshape(z.shape), rate.reshape(z.shape)))
        at = np.exp(np.clip(np.where(point, m, 0.0), -_LARGEST, _LARGEST))
        if out.point is not None:
            at = np.where(out.is_point.reshape(-1), out.point.reshape(-1), at)
        naturals = tuple(np.where(hard, 0.0, n).reshape(z.shape) for n in (k, rate))
        return Gamma.from_naturals(naturals, np.where(hard, at, np.nan).reshape(z.shape))

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the integral of both messages at ``out = exp(z)``; infinite where it diverges."""
        z, out = as_message(self, incoming, "z"), as_message(self, incoming, "out")
        m, v, known, a, r = _read(z, out)
        tilt, peak = exponential_tilt(m, v, a, np.maximum(r, 0.0))
        soft = Gamma.from_naturals((a, r))
        x = np.exp(np.minimum(peak, 600.0))
        plain = a * peak - np.maximum(r, 0.0) * x - soft.log_normaliser()
        firm = (r > 0) & (a > -1.0) & (np.abs(peak) < 600.0)  # large terms cancel on paper in a proper density
        at_peak = Gamma.from_naturals((np.where(firm, a, 0.0), np.where(firm, r, 1.0))).log_density(x)
        at_peak = np.where(firm, at_peak, plain)
        log_z = np.where(known & (r >= 0), tilt.log_z + at_peak, np.inf)
        _, wild, shape, rate = _wild(z, a, r)
        wild_log_z = gammaln(shape) - shape * np.log(rate) - soft.log_normaliser()
        log_z = np.where(wild & ~known, wild_log_z, log_z).reshape(z.shape)
        if out.point is None:
            return log_z
        # a delta in out: the cavity's density at log out, over d out / dz = out
        positive = out.is_point & (out.point > 0)
        log_out = np.log(np.where(positive, out.point, 1.0))
        return np.where(out.is_point, np.where(positive, z.log_density(log_out) - log_out, -np.inf), log_z)


def _read(z: Gaussian, out: Gamma) -> tuple[np.ndarray, ...]:
    """Cavity and powers in flat rows."""
    cavity = (x.reshape(-1) for x in cavity_of(z))
    return (*cavity, *(np.broadcast_to(n, z.shape).reshape(-1) for n in out.naturals))


def _wild(z: Gaussian, a: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Where a cavity ``exp(shift z)`` makes a Gamma(a + shift, r) of out, and its parameters (1 elsewhere)."""
    s, tau = (n.reshape(-1) for n in z.naturals)
    good = (tau == 0) & (a + s > 0) & (r > 0)
    return s, good, np.where(good, a + s, 1.0), np.where(good, r, 1.0)
