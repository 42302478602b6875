"""The output's message on the output's chart, and projections there, for references."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, log_expit

from heliograph.families import Beta, Gamma, Gaussian

__all__ = ["Output", "log_constant", "log_density", "project"]

_TINY = float(np.finfo(float).tiny)
_BELOW_ONE = float(np.nextafter(1.0, 0.0))
_LOG_2PI = float(np.log(2 * np.pi))
_MODEST = 100.0  # parameters of a Beta whose log density single precision holds to 1e-5


class Output:
    """The output's message on the output's chart, as a function of the value that the factor gives."""

    def __init__(self, message: Any) -> None:
        self.family, self.message = type(message), message
        self.first, self.second = message.naturals
        self.flat: np.ndarray | None = None  # where a Gaussian has no mean, if anywhere
        if self.family is Gaussian:  # the completed square keeps its digits far from 0
            known = self.second > 0
            safe = self.second if known.all() else np.where(known, self.second, 1.0)
            self.flat = None if known.all() else ~known
            self.first = np.where(known, self.first / safe, self.first)
        self.single = self.family is Beta and float(max(self.first.max(), self.second.max())) < _MODEST

    def some(self, rows: np.ndarray) -> Output:
        """The same for some of the rows."""
        other = object.__new__(Output)
        other.family, other.message = self.family, self.message[rows]
        other.first, other.second = self.first[rows], self.second[rows]
        other.flat = None if self.flat is None else self.flat[rows]
        other.single = self.single
        return other

    def look(self, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Position on the chart and log message, without its constant, of values ``(k, n)``."""
        if self.family is Gaussian:
            value = np.minimum(np.maximum(value, -1e150), 1e150)  # its square is still a number
            log_message = value - self.first
            log_message *= log_message
            log_message *= -0.5 * self.second
            return value, log_message if self.flat is None else np.where(self.flat, self.first * value, log_message)
        if self.family is Gamma:
            value = np.minimum(np.maximum(value, _TINY), 1e300)
            y = np.log(value)
            return y, self.first * y - self.second * value
        value = np.minimum(np.maximum(value, _TINY), _BELOW_ONE)
        up, down = np.log(value), np.log(1.0 - value)  # three times as fast as log1p, and nobody vouches for it
        log_message = self.first * up
        log_message += self.second * down
        up -= down
        return up, log_message

    def log_message(self, value: np.ndarray) -> np.ndarray:
        """The log message alone; in single precision where its parameters are modest, which is twice as fast."""
        if not self.single:
            return self.look(value)[1]
        up = np.log(np.maximum(value, 1e-37).astype(np.float32))
        down = np.log(np.maximum(1.0 - value, 1e-37).astype(np.float32))
        return self.first * up + self.second * down

    def log_constant(self) -> np.ndarray:
        """What `look` leaves out."""
        if self.family is not Gaussian:
            return self.message.log_normaliser()
        known = self.second > 0
        return np.where(known, 0.5 * (_LOG_2PI - np.log(np.where(known, self.second, 1.0))), 0.0)


def project(family: Any, u: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Chart moments of the EP projection of weighted positions ``(k, n)``: by its own statistics, not the chart's."""
    mean = (w * u).sum(axis=0)
    d = u - mean
    floor = 1e-12 * (1 + mean**2)
    if family is Gaussian:
        return mean, np.maximum((w * d * d).sum(axis=0), floor)
    # what Jensen's inequality leaves, term by term: nothing cancels
    if family is Gamma:
        gap = np.log1p((w * (np.expm1(np.clip(d, -700.0, 700.0)) - d)).sum(axis=0))
        found: Any = Gamma.from_mean_and_log_gap(np.exp(np.clip(mean + gap, -700.0, 700.0)), np.maximum(gap, floor))
    else:
        q = expit(mean)
        gap = (w * (np.logaddexp(np.log1p(-q), np.log(np.maximum(q, _TINY)) + d) - q * d)).sum(axis=0)
        found = Beta.from_mean_logit_and_gap(mean, np.maximum(gap, floor * q * (1 - q) + 1e-14))
    return found.chart_moments()


def log_density(message: Any, u: np.ndarray) -> np.ndarray:
    """The log density of a Gamma or a Beta on its chart at positions ``(k, n)``, without its constant."""
    first, second = message.naturals
    if isinstance(message, Gamma):
        return (first + 1.0) * u - second * np.exp(np.minimum(u, 700.0))
    return (first + 1.0) * log_expit(u) + (second + 1.0) * log_expit(-u)


def log_constant(message: Any) -> np.ndarray:
    """The constant that log densities on the chart are written without here."""
    if isinstance(message, Gaussian):
        return -0.5 * (_LOG_2PI + np.log(message.variance))
    return -message.log_normaliser()
