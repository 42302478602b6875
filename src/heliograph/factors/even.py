"""The square and the magnitude of a Gaussian variable, with Gaussian messages, by quadrature over the variable."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from heliograph.errors import ContradictionError
from heliograph.factors.base import Factor, Incoming
from heliograph.factors.incoming import as_plate
from heliograph.factors.integrals.even import Even, EvenTilt, magnitude, square, tilt_of_even
from heliograph.factors.integrals.mixing import Mixed, cavity_centre
from heliograph.factors.integrals.tilt import Tilt, cavity_of, gaussian_site
from heliograph.families import Gaussian
from heliograph.numerics.logarithms import LOG_2PI

__all__ = ["AbsoluteValue", "Square"]


class _OfEven(Factor):
    """``out = g(x)`` for an even g. Two values of x have the same one, so that a belief of x may span both.

    Where an incoming message leaves no normalisable tilted distribution the message sent is uniform.
    """

    families: ClassVar = {"x": (Gaussian,), "out": (Gaussian,)}
    how: ClassVar = {"x": "quadrature", "out": "quadrature"}
    exact_given: ClassVar = {"out": ("x",)}
    kind: ClassVar[Even]

    def inverse(self, out: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The x >= 0 with this value, and the log of g' there."""
        raise NotImplementedError  # pragma: no cover

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Gaussian:
        """Belief over cavity."""
        x, out = as_plate(self, incoming, self.ports)
        tilt = tilt_of_even(self.kind, x, out, np.ones(x.shape, dtype=bool))
        return self._to_x(x, out, tilt) if to == "x" else self._to_out(x, out, tilt)

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the integral of ``m_x(x) m_out(g(x))``; infinite where there is none."""
        x, out = as_plate(self, incoming, self.ports)
        log_z = tilt_of_even(self.kind, x, out, np.ones(x.shape, dtype=bool)).log_z
        log_z = np.where(out.is_uniform & x.proper & ~x.is_point, 0.0, log_z)
        if x.point is not None:
            log_z = np.where(x.is_point, out.log_density(self.kind.of(np.where(x.is_point, x.point, 0.0))), log_z)
        if out.point is not None:
            at, _, _, value = self._two_points(x, out)
            log_z = np.where(at & ~x.is_point, value, log_z)
        return log_z

    def _to_x(self, x: Gaussian, out: Gaussian, tilt: EvenTilt) -> Gaussian:
        m, v, known = cavity_of(x)
        s, t = x.naturals
        known = known & tilt.valid & tilt.weak
        # at a point mass the limit of ever narrower cavities
        flat = np.broadcast_to(np.asarray(m, dtype=float), x.shape)
        slope, bend = self.slopes(flat, *out.naturals)
        one = np.ones(x.shape)
        at_point = gaussian_site(flat, 0.0 * one, Tilt(one, flat, one, slope, bend))
        near = gaussian_site(m, v, tilt.x)
        spread = tilt.x_mean / tilt.x_variance - s, 1.0 / tilt.x_variance - t
        soft = tilt.valid & ~out.is_uniform
        naturals = (
            np.where(x.is_point, p, np.where(soft, np.where(known, n, w), 0.0))
            for p, n, w in zip(at_point, near, spread, strict=True)
        )
        sent = Gaussian.from_naturals(tuple(naturals))
        if out.point is None:
            return sent
        at, mean, variance, _ = self._two_points(x, out)
        mixed = Mixed(mean - cavity_centre(x), variance, 1.0 - np.where(x.is_point, 0.0, t) * variance)
        return mixed.message(x, at).where(at & ~x.is_point, sent)

    def _to_out(self, x: Gaussian, out: Gaussian, tilt: EvenTilt) -> Gaussian:
        t = out.naturals[1]
        mixed = Mixed(tilt.out_mean - cavity_centre(out), tilt.out_variance, 1.0 - t * tilt.out_variance)
        sent = mixed.message(out, tilt.valid)
        if x.point is None:
            return sent
        at = x.is_point
        return Gaussian.point_mass(self.kind.of(np.where(at, x.point, 0.0))).where(at, sent)

    def _two_points(self, x: Gaussian, out: Gaussian) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Where out is known: mean and variance of x, which is one of two points, and the log of their density."""
        at = out.is_point
        value = np.where(at, out.mean, 1.0)
        if np.any(value < 0):
            raise ContradictionError(f"factor {self.name!r}: it is known to be {value.min():g}, which is negative")
        r, log_slope = self.inverse(value)
        s, t = x.naturals
        half = s * r  # of the log odds of r against -r
        with np.errstate(over="ignore"):
            p, q = 1.0 / (1.0 + np.exp(-2.0 * half)), 1.0 / (1.0 + np.exp(2.0 * half))
        peak = np.where(half >= 0, r, -r)
        proper = x.proper & ~x.is_point
        tau = np.where(proper, t, 1.0)
        centred = -0.5 * tau * (peak - np.where(proper, x.mean, 0.0)) ** 2 + 0.5 * (np.log(tau) - LOG_2PI)
        top = np.where(proper, centred, s * peak - 0.5 * t * r**2)
        log_z = top + np.log1p(np.exp(-2.0 * np.abs(half))) - log_slope
        return (
            at & np.isfinite(log_slope),
            r * (p - q),
            4.0 * r * r * p * q,
            np.where(np.isfinite(log_slope), log_z, np.inf),
        )

    def slopes(self, x: np.ndarray, so: np.ndarray, to: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """First and second derivative of the log of out's message at g(x)."""
        raise NotImplementedError  # pragma: no cover


class Square(_OfEven):
    """``out = x^2``.

    >>> x, out = Gaussian(3.0, 0.04), Gaussian.uniform()
    >>> f = Square()
    >>> sent = f.message("out", {"x": x, "out": out})
    >>> float(sent.mean.round(9)), float(sent.variance.round(9))  # 9 + .04, and 2 * .04^2 + 4 * 9 * .04
    (9.04, 1.4432)
    """

    name = "square"
    kind: ClassVar = square

    def inverse(self, out: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The root; at 0 the density is infinite."""
        r = np.sqrt(out)
        return r, np.where(r > 0, np.log(2.0 * np.where(r > 0, r, 1.0)), np.inf)

    def slopes(self, x: np.ndarray, so: np.ndarray, to: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Those of ``so x^2 - to x^4 / 2``."""
        return 2.0 * x * (so - to * x**2), 2.0 * so - 6.0 * to * x**2


class AbsoluteValue(_OfEven):
    """``out = |x|``.

    >>> x, out = Gaussian(0.0, 1.0), Gaussian.uniform()
    >>> sent = AbsoluteValue().message("out", {"x": x, "out": out})
    >>> bool(np.isclose(sent.mean, np.sqrt(2 / np.pi))), bool(np.isclose(sent.variance, 1 - 2 / np.pi))
    (True, True)
    """

    name = "absolute_value"
    kind: ClassVar = magnitude

    def inverse(self, out: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The value itself."""
        return out, np.zeros(out.shape)

    def slopes(self, x: np.ndarray, so: np.ndarray, to: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Those of ``so |x| - to x^2 / 2``, away from the kink."""
        return np.sign(x) * (so - to * np.abs(x)), -to + 0.0 * x
