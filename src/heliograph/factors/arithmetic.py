"""Sums, differences and fixed affine maps of scalars (Gaussian) or vectors (MultivariateGaussian), all closed form.

No message here looks at its own port, so each is computed directly and loses no digits to a division.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np

from heliograph.factors import line, plane
from heliograph.factors.base import Factor, Incoming
from heliograph.factors.incoming import as_data, as_message
from heliograph.families import Family, Gaussian, MultivariateGaussian

__all__ = ["Difference", "Scale", "Shift", "Sum"]

_BOTH = (Gaussian, MultivariateGaussian)


class _Algebra(NamedTuple):
    """Operations on messages to numbers, or to vectors; what each does is said at the first of them."""

    rank: int  # event axes of a value
    weighted_sum: Callable[..., Family]
    linked_log_z: Callable[..., np.ndarray]
    stretch: Callable[..., Family]
    move: Callable[..., Family]
    moved_overlap: Callable[..., np.ndarray]
    overlap: Callable[..., np.ndarray]


_ALGEBRAS: dict[type[Family], _Algebra] = {
    Gaussian: _Algebra(
        0,
        line.weighted_sum,
        line.linked_log_z,
        line.stretch,
        line.move,
        line.moved_overlap,
        line.gaussian_overlap,
    ),
    MultivariateGaussian: _Algebra(
        1,
        plane.vector_sum,
        plane.vector_linked_log_z,
        plane.vector_stretch,
        plane.vector_move,
        plane.vector_moved_overlap,
        plane.vector_overlap,
    ),
}


def _algebra(message: Family) -> _Algebra:
    return _ALGEBRAS[type(message)]


class _Signed(Factor):
    """``out = a + sign b``; the two factors below fix the sign."""

    families: ClassVar = {"a": _BOTH, "b": _BOTH, "out": _BOTH}
    how: ClassVar = {"a": "closed form", "b": "closed form", "out": "closed form"}
    ignores_own = ("a", "b", "out")
    sign: ClassVar[float] = 1.0

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        """The convolution of the other two messages; uniform where it diverges."""
        first, second, c, d = {  # to = c first + d second
            "out": ("a", "b", 1.0, self.sign),
            "a": ("out", "b", 1.0, -self.sign),
            "b": ("out", "a", self.sign, -self.sign),
        }[to]
        x, y = as_message(self, incoming, first), as_message(self, incoming, second)
        return _algebra(x).weighted_sum(x, y, c, d)

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log N(m_out; m_a + sign m_b, v_out + v_a + v_b)``."""
        a, b, out = (as_message(self, incoming, p) for p in self.ports)
        return _algebra(a).linked_log_z(a, b, out, self.sign)


class Sum(_Signed):
    """``out = a + b``."""

    name = "sum"


class Difference(_Signed):
    """``out = a - b``."""

    name = "difference"
    sign = -1.0


class _OfConstant(Factor):
    """``out`` is x and a fixed constant per element; the two factors below say how."""

    families: ClassVar = {"x": _BOTH, "constant": (), "out": _BOTH}
    how: ClassVar = {"x": "closed form", "out": "closed form"}
    ignores_own = ("x", "out")

    def _other(self, to: str, incoming: Incoming) -> tuple[Family, np.ndarray]:
        """The other end's message, and the constant."""
        return as_message(self, incoming, "x" if to == "out" else "out"), as_data(self, incoming, "constant")


class Scale(_OfConstant):
    """``out = constant * x`` for a fixed constant per element; multiplied by 0 it sends x nothing."""

    name = "scale"

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        """The other end's message, stretched or pulled back."""
        m, c = self._other(to, incoming)
        return _algebra(m).stretch(m, c) if to == "out" else _pull(m, c)

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the integral of ``m_x(x) m_out(constant x)``."""
        x, c = self._other("out", incoming)
        return _pulled_overlap(x, as_message(self, incoming, "out"), c)


class Shift(_OfConstant):
    """``out = x + constant`` for a fixed constant (a number or a vector) per element."""

    name = "shift"

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        """The other end's message, moved there or back."""
        m, c = self._other(to, incoming)
        return _algebra(m).move(m, c if to == "out" else -c)

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the integral of ``m_x(x) m_out(x + constant)``."""
        x, c = self._other("out", incoming)
        return _algebra(x).moved_overlap(x, c, as_message(self, incoming, "out"))


def _pull(out: Any, c: np.ndarray) -> Family:
    """The message to x of the message to c x: ``m_out(c x)`` as a function of x."""
    vector = _algebra(out).rank == 1
    scale = c[..., None] if vector else c
    square = scale[..., None] ** 2 if vector else scale**2
    shift, precision = out.naturals[0] * scale, out.naturals[1] * square
    if out.point is None:
        return type(out).from_naturals((shift, precision))
    # out = 0 x says nothing about x, whatever out is
    safe = np.where(scale == 0, 1.0, scale)
    return type(out).with_points((shift, precision), np.where(scale == 0, np.nan, out.point / safe))


def _pulled_overlap(x: Any, out: Any, c: np.ndarray) -> np.ndarray:
    """``log`` of the integral of ``m_x(x) m_out(c x)``, points of `out` as densities in out."""
    algebra = _algebra(x)
    forward = algebra.overlap(algebra.stretch(x, c), out)
    origin = x.somewhere()
    at_zero = algebra.overlap(x.point_like(origin), out)
    # an improper m_x is not normalised, nor is its stretched message: the change of variable is left over
    jacobian = np.where(x.proper | (c == 0), 0.0, -origin.size * np.log(np.abs(np.where(c == 0, 1.0, c))))
    return np.where(c == 0, np.where(x.proper, at_zero, np.inf), forward + jacobian)
