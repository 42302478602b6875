"""Sums, differences and fixed affine maps of scalars (Gaussian) or vectors (MultivariateGaussian), all closed form.

No message here looks at its own port, so each is computed directly and loses no digits to a division.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from heliograph.factors.base import Factor, Incoming
from heliograph.factors.incoming import as_data, as_message
from heliograph.factors.line import (
    gaussian_overlap,
    stretch,
    weighted_sum,
    weighted_sum_log_scale,
)
from heliograph.factors.plane import (
    linked_log_z,
    vector_move,
    vector_overlap,
    vector_stretch,
    vector_sum,
)
from heliograph.families import Family, Gaussian, MultivariateGaussian

__all__ = ["Difference", "Scale", "Shift", "Sum"]

_BOTH = (Gaussian, MultivariateGaussian)


class _Signed(Factor):
    """``out = a + sign b``; the two factors below fix the sign."""

    ports = ("a", "b", "out")
    families: ClassVar = {"a": _BOTH, "b": _BOTH, "out": _BOTH}
    how: ClassVar = {"a": "closed form", "b": "closed form", "out": "closed form"}
    sign: ClassVar[float] = 1.0

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        """The convolution of the other two messages; uniform where it diverges."""
        self.check_port(to)
        first, second, c, d = {  # to = c first + d second
            "out": ("a", "b", 1.0, self.sign),
            "a": ("out", "b", 1.0, -self.sign),
            "b": ("out", "a", self.sign, -self.sign),
        }[to]
        x, y = as_message(self, incoming, first), as_message(self, incoming, second)
        if isinstance(x, MultivariateGaussian):
            return vector_sum(x, y, c, d)
        return weighted_sum(x, y, c, d)

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log N(m_out; m_a + sign m_b, v_out + v_a + v_b)``."""
        a, b, out = (as_message(self, incoming, p) for p in self.ports)
        if isinstance(a, MultivariateGaussian):
            return linked_log_z(a, b, out, self.sign)
        forward = gaussian_overlap(weighted_sum(a, b, 1.0, self.sign), out)
        return np.asarray(forward + weighted_sum_log_scale(a, b, 1.0, self.sign))

    def depends(self, to: str, points: frozenset[str]) -> frozenset[str]:
        """The other two ports."""
        return frozenset(self.ports) - {to}


class Sum(_Signed):
    """``out = a + b``."""

    name = "sum"


class Difference(_Signed):
    """``out = a - b``."""

    name = "difference"
    sign = -1.0


class Scale(Factor):
    """``out = constant * x`` for a fixed constant per element; multiplied by 0 it sends x nothing."""

    name = "scale"
    ports = ("x", "constant", "out")
    families: ClassVar = {"x": _BOTH, "constant": (), "out": _BOTH}
    how: ClassVar = {"x": "closed form", "out": "closed form"}

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        """The other end's message with its axis stretched."""
        self.check_port(to)
        c = as_data(self, incoming, "constant")
        m = as_message(self, incoming, "x" if to == "out" else "out")
        if to == "x":
            return _pull(m, c)
        return vector_stretch(m, c) if isinstance(m, MultivariateGaussian) else stretch(m, c)

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the integral of ``m_x(x) m_out(c x)``."""
        c = as_data(self, incoming, "constant")
        x, out = as_message(self, incoming, "x"), as_message(self, incoming, "out")
        return _pulled_overlap(x, out, c)

    def depends(self, to: str, points: frozenset[str]) -> frozenset[str]:
        """The other end and the constant."""
        return frozenset(self.ports) - {to}


class Shift(Factor):
    """``out = x + constant`` for a fixed constant (a number or a vector) per element."""

    name = "shift"
    ports = ("x", "constant", "out")
    families: ClassVar = {"x": _BOTH, "constant": (), "out": _BOTH}
    how: ClassVar = {"x": "closed form", "out": "closed form"}

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        """The other end's message, moved."""
        self.check_port(to)
        c = as_data(self, incoming, "constant")
        m = as_message(self, incoming, "x" if to == "out" else "out")
        return _move(m, c if to == "out" else -c)

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the integral of ``m_x(x) m_out(x + c)``."""
        c = as_data(self, incoming, "constant")
        x, out = as_message(self, incoming, "x"), as_message(self, incoming, "out")
        if isinstance(x, MultivariateGaussian):
            return vector_overlap(vector_move(x, c), out)
        point = Gaussian.point_mass(c)
        return np.asarray(gaussian_overlap(weighted_sum(x, point), out) + weighted_sum_log_scale(x, point))

    def depends(self, to: str, points: frozenset[str]) -> frozenset[str]:
        """The other end and the constant."""
        return frozenset(self.ports) - {to}


def _move(m: Any, c: np.ndarray) -> Family:
    if isinstance(m, MultivariateGaussian):
        return vector_move(m, c)
    return weighted_sum(m, Gaussian.point_mass(c))


def _pull(out: Any, c: np.ndarray) -> Family:
    """The message to x of the message to c x: ``m_out(c x)`` as a function of x."""
    scale = c[..., None] if isinstance(out, MultivariateGaussian) else c
    square = scale[..., None] ** 2 if isinstance(out, MultivariateGaussian) else scale**2
    shift, precision = out.naturals[0] * scale, out.naturals[1] * square
    if out.point is None:
        return type(out).from_naturals((shift, precision))
    # out = 0 x says nothing about x, whatever out is
    safe = np.where(scale == 0, 1.0, scale)
    return type(out).with_points((shift, precision), np.where(scale == 0, np.nan, out.point / safe))


def _pulled_overlap(x: Any, out: Any, c: np.ndarray) -> np.ndarray:
    """``log`` of the integral of ``m_x(x) m_out(c x)``, points of `out` as densities in out."""
    if isinstance(x, MultivariateGaussian):
        d = x.naturals[0].shape[-1]
        zero = MultivariateGaussian.point_mass(np.zeros(d))
        forward = vector_overlap(vector_stretch(x, c), out)
        at_zero = vector_overlap(zero, out)
    else:
        d = 1
        forward = gaussian_overlap(stretch(x, c), out)
        at_zero = gaussian_overlap(Gaussian.point_mass(0.0), out)
    # an improper m_x is not normalised, nor is its stretched message: the change of variable is left over
    jacobian = np.where(x.proper | (c == 0), 0.0, -d * np.log(np.abs(np.where(c == 0, 1.0, c))))
    return np.where(c == 0, np.where(x.proper, at_zero, np.inf), forward + jacobian)
