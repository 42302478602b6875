"""A port of one row, as the plain sampler sees it: how log densities and statistics depend on two numbers of each draw, T.

T is (y, y^2) for a Gaussian, (x / unit, log x - c) for a Gamma, and (log p, log(1 - p)) less those of the centre for a Beta.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

from heliograph.families import Beta, Family, Gamma, Gaussian

__all__ = ["Edges", "PlainLine", "has_line", "line_class"]

_TINY, _BELOW_ONE = float(np.finfo(float).tiny), float(np.nextafter(1.0, 0.0))
_NOWHERE = np.zeros(0, dtype=int)


class Edges(NamedTuple):
    """Outputs, and those of them that had rounded onto an edge of the support."""

    inside: np.ndarray  # the outputs, kept inside the open support
    low: np.ndarray  # the numbers of those on the lower edge
    high: np.ndarray


class PlainLine:
    """A centre, a scale, and the two rows of T that belong to the port; there is one class for each family."""

    def __init__(self, centre: float, scale: float, rows: slice) -> None:
        self.centre, self.scale, self.rows = centre, scale, rows

    @staticmethod
    def draw(rng: np.random.Generator, message: Family, n: int) -> np.ndarray:
        """Plain draws from a message of one row."""
        raise NotImplementedError

    def coefficients(self, message: Family) -> tuple[float, np.ndarray]:
        """The log density of a message of one row as ``constant + slopes . T``."""
        first, second = (float(a[0]) for a in message.naturals)
        constant, slopes = self._linear(first, second)
        return constant - float(message.log_normaliser()[0]), np.array(slopes)

    def _linear(self, first: float, second: float) -> tuple[float, list[float]]:
        raise NotImplementedError

    def fill(self, t: np.ndarray, x: np.ndarray) -> None:
        """Write T at values x."""
        raise NotImplementedError

    def statistics_from(self) -> np.ndarray:
        """The axis' statistics are this matrix times T."""
        return np.eye(2)

    def edges(self, out: np.ndarray) -> Edges:
        """Outputs that had rounded onto an edge."""
        return Edges(out, _NOWHERE, _NOWHERE)


class _GaussianLine(PlainLine):
    @staticmethod
    def draw(rng: np.random.Generator, message: Family, n: int) -> np.ndarray:
        first, second = (float(a[0]) for a in message.naturals)
        x = rng.standard_normal(n)
        x *= second**-0.5
        if first:
            x += first / second
        return x

    def _linear(self, first: float, second: float) -> tuple[float, list[float]]:
        c, s = self.centre, self.scale
        return first * c - 0.5 * second * c * c, [(first - second * c) * s, -0.5 * second * s * s]

    def fill(self, t: np.ndarray, x: np.ndarray) -> None:
        np.subtract(x, self.centre, out=t[0])
        t[0] /= self.scale
        np.multiply(t[0], t[0], out=t[1])


class _GammaLine(PlainLine):
    @staticmethod
    def draw(rng: np.random.Generator, message: Family, n: int) -> np.ndarray:
        first, second = (float(a[0]) for a in message.naturals)
        return np.maximum(rng.gamma(first + 1, 1 / second, n), _TINY)

    def _linear(self, first: float, second: float) -> tuple[float, list[float]]:
        c, s = self.centre, self.scale
        return first * c, [-second * float(np.exp(np.clip(c + s, -700.0, 700.0))), first]

    def fill(self, t: np.ndarray, x: np.ndarray) -> None:
        np.log(x, out=t[1])
        t[1] -= self.centre
        np.minimum(t[1] - self.scale, 300.0, out=t[0])
        np.exp(t[0], out=t[0])

    def edges(self, out: np.ndarray) -> Edges:
        low = np.flatnonzero(out <= _TINY) if out.min() <= _TINY else _NOWHERE
        return _moved_inside(out, low, _NOWHERE)


class _BetaLine(PlainLine):
    @staticmethod
    def draw(rng: np.random.Generator, message: Family, n: int) -> np.ndarray:
        first, second = (float(a[0]) for a in message.naturals)
        return np.clip(rng.beta(first + 1, second + 1, n), _TINY, _BELOW_ONE)

    def _linear(self, first: float, second: float) -> tuple[float, list[float]]:
        c = self.centre
        return first * float(special.log_expit(c)) + second * float(special.log_expit(-c)), [first, second]

    def fill(self, t: np.ndarray, x: np.ndarray) -> None:
        np.log(x, out=t[0])
        t[0] -= special.log_expit(self.centre)
        # log(1 - x) with what 1 - x rounded away put back: as exact as log1p at half its cost
        q = 1 - x
        np.log(q, out=t[1])
        np.subtract(1, q, out=q)
        q -= x
        t[1] += q
        t[1] -= special.log_expit(-self.centre)

    def statistics_from(self) -> np.ndarray:
        q = float(special.expit(self.centre))
        return np.array([[1.0, -1.0], [-q, q - 1]])  # u - c, and log(1 + e^u) less its tangent at c

    def edges(self, out: np.ndarray) -> Edges:
        low = np.flatnonzero(out <= _TINY) if out.min() <= _TINY else _NOWHERE
        high = np.flatnonzero(out == 1) if out.max() == 1 else _NOWHERE
        return _moved_inside(out, low, high)


def _moved_inside(out: np.ndarray, low: np.ndarray, high: np.ndarray) -> Edges:
    if len(low) or len(high):
        out = out.copy()  # the function may have kept it
        out[low], out[high] = _TINY, _BELOW_ONE
    return Edges(out, low, high)


_LINES: dict[type[Family], type[PlainLine]] = {Gaussian: _GaussianLine, Gamma: _GammaLine, Beta: _BetaLine}


def has_line(family: type[Family]) -> bool:
    """Whether the plain sampler knows a family."""
    return family in _LINES


def line_class(family: type[Family]) -> type[PlainLine]:
    """The line of a family."""
    return _LINES[family]
