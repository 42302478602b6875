"""The output's message on the output's chart, as a function of the value that the factor gives, for references."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.special import expit

from heliograph.families import Beta, Family, Gamma, Gaussian
from heliograph.families.charts import DensityChart, density_chart_of
from heliograph.numerics.logarithms import LOG_2PI

__all__ = ["Output", "output_of", "serves_output"]

_TINY = float(np.finfo(float).tiny)


class Output:
    """A message of one number; there is one class for each family."""

    def __init__(self, message: Any) -> None:
        chart = density_chart_of(message)
        assert chart is not None
        self.chart: DensityChart = chart
        self.message = message
        self.first, self.second = message.naturals

    def some(self, rows: np.ndarray) -> Self:
        """The same for some of the rows."""
        other = object.__new__(type(self))
        other.chart, other.message = self.chart, self.message[rows]
        other.first, other.second = self.first[rows], self.second[rows]
        return other

    def look(self, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Position on the chart and log message, without its constant, of values ``(k, n)``."""
        raise NotImplementedError

    def log_message(self, value: np.ndarray) -> np.ndarray:
        """The log message alone."""
        return self.look(value)[1]

    def log_constant(self) -> np.ndarray:
        """What `look` leaves out."""
        return self.message.log_normaliser()

    def peak(self) -> tuple[np.ndarray, np.ndarray]:
        """The value at which the message is highest, and its logarithm there; NaN where it is highest at an end."""
        mode = self._mode()
        some = np.isfinite(mode)
        if not some.any():
            return mode, np.full(len(mode), -np.inf)
        return mode, np.where(some, self.look(np.where(some, mode, 0.5)[None])[1][0], -np.inf)

    def _mode(self) -> np.ndarray:
        raise NotImplementedError

    def site(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The message as ``exp(height + shift y - precision y^2 / 2)`` on the chart, by two derivatives at positions (n,)."""
        level, slope, precision, at = self._derivatives(at)
        precision = np.maximum(precision, 0.0)  # a message that is convex there says nothing of where the output is
        shift = slope + precision * at
        return shift, precision, level - shift * at + 0.5 * precision * at**2

    def _derivatives(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The log message, its slope and its curvature less the sign, and the position kept in range."""
        raise NotImplementedError


class _GaussianOutput(Output):
    def __init__(self, message: Any) -> None:
        super().__init__(message)
        known = self.second > 0  # the completed square keeps its digits far from 0
        safe = self.second if known.all() else np.where(known, self.second, 1.0)
        self.flat: np.ndarray | None = None if known.all() else ~known  # where it has no mean, if anywhere
        self.first = np.where(known, self.first / safe, self.first)

    def some(self, rows: np.ndarray) -> Self:
        other = super().some(rows)
        other.flat = None if self.flat is None else self.flat[rows]
        return other

    def _mode(self) -> np.ndarray:
        return self.first if self.flat is None else np.where(self.flat, np.nan, self.first)

    def look(self, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        value = np.minimum(np.maximum(value, -1e150), 1e150)  # its square is still a number
        log_message = value - self.first
        log_message *= log_message
        log_message *= -0.5 * self.second
        return value, log_message if self.flat is None else np.where(self.flat, self.first * value, log_message)

    def log_constant(self) -> np.ndarray:
        known = self.second > 0
        return np.where(known, 0.5 * (LOG_2PI - np.log(np.where(known, self.second, 1.0))), 0.0)

    def site(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        first, second = self.first, self.second
        known = second > 0
        return np.where(known, first * second, first), second, np.where(known, -0.5 * second * first**2, 0.0)


class _GammaOutput(Output):
    def _mode(self) -> np.ndarray:
        inner = (self.first > 0) & (self.second > 0)
        return np.where(inner, self.first / np.where(inner, self.second, 1.0), np.nan)

    def look(self, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        value = np.minimum(self.chart.inside(value), 1e300)
        y = np.log(value)
        return y, self.first * y - self.second * value

    def _derivatives(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        at = np.clip(at, -700.0, 700.0)
        value = self.second * np.exp(at)
        return self.first * at - value, self.first - value, value, at


class _BetaOutput(Output):
    def _mode(self) -> np.ndarray:
        inner = (self.first > 0) & (self.second > 0)
        return np.where(inner, self.first / np.where(inner, self.first + self.second, 1.0), np.nan)

    def look(self, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        value = self.chart.inside(value)
        up, down = np.log(value), np.log(1.0 - value)  # three times as fast as log1p; references need no last digits
        log_message = self.first * up
        log_message += self.second * down
        up -= down
        return up, log_message

    def _derivatives(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        first, second = self.first, self.second
        p = expit(at)
        level = first * np.log(np.maximum(p, _TINY)) + second * np.log(np.maximum(1 - p, _TINY))
        return level, first - (first + second) * p, (first + second) * p * (1 - p), at


_OUTPUTS: dict[type[Family], type[Output]] = {Gaussian: _GaussianOutput, Gamma: _GammaOutput, Beta: _BetaOutput}


def serves_output(family: type[Family]) -> bool:
    """Whether references know what to do with an output of this family."""
    return family in _OUTPUTS


def output_of(message: Any) -> Output:
    """The output's message as references see it."""
    return _OUTPUTS[type(message)](message)
