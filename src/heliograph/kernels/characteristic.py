"""Characteristic functions ``E exp(i t x)`` of messages, in closed form, on the identity, log or logit axis.

With them an embedding is exact instead of moment-matched: ``E cos(t x + b)`` is the real part of
``exp(i b) E exp(i t x)``. Only kernels need them, so they are here and not with the families.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import digamma, log_expit, loggamma, polygamma

from heliograph.errors import UnsupportedError
from heliograph.families import Bernoulli, Beta, Family, Gamma, Gaussian
from heliograph.families.charts import chart_of

__all__ = ["BORDER", "characteristic", "is_gaussian", "reach"]

_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680)  # log Gamma's asymptotic series in 1/z, 1/z^3, ...
_STIRLING_FROM = 20.0  # where the first omitted term, 1 / (1188 z^9), is below 2e-15
BORDER = 740.0  # where a point mass at the border of the support is put on a chart: log of about the least number
_BLOCK = 2_000_000  # complex numbers held at once by a quadrature


def characteristic(message: Family, t: np.ndarray, axis: str = "identity") -> np.ndarray:
    """``E exp(i t x)`` of every entry of a plate at every frequency, x on the identity axis or on the family's chart.

    `message` has plate shape ``(n,)`` and `t` shape ``(D,)``; the result is ``(n, D)``, complex.

    >>> characteristic(Gaussian([0.0], [1.0]), np.array([0.0, 2.0])).real.round(4)
    array([[1.    , 0.1353]])
    """
    t = np.asarray(t, dtype=float)
    charted = _charted(message, axis)
    closed_form = (_ON_THE_CHART if charted else _ON_THE_LINE).get(type(message))
    if closed_form is None:
        raise UnsupportedError(
            f"there is no closed-form embedding of a {type(message).__name__} on the {axis} axis; "
            "use how='moments', which embeds the Gaussian of the same mean and variance"
        )
    phi = closed_form(message, t)
    if message.point is not None:
        x = np.where(message.is_point, message.point, message.somewhere())
        if charted:  # a point mass at the border of the support stays finite on the chart
            x = np.clip(chart_of(message).coordinates(x), -BORDER, BORDER)
        phi = np.where(message.is_point[:, None], np.exp(1j * t * x[:, None]), phi)
    return phi


def is_gaussian(message: Family) -> bool:
    """Whether the message is a Gaussian, so that its moments are its whole law."""
    return message.gaussian


def reach(message: Family, mean: np.ndarray, variance: np.ndarray, axis: str) -> tuple[float, float]:
    """An interval that holds all but 1e-12 of every entry's mass, for the step of a quadrature over frequencies."""
    charted = _charted(message, axis)
    low, high = message.support
    if not charted and low > -np.inf and high < np.inf:
        return low, high
    # exponential tails: 28 of their scales is 1e-12, and the scale is at most a deviation on the charts
    far = np.full(np.shape(mean), 30.0)
    if isinstance(message, Gamma) and not charted:
        far = far * np.maximum(1.0, 1.0 / np.sqrt(np.maximum(message.shape_parameter, 1e-6)))
    far = far * np.sqrt(variance)
    return float(np.min(mean - far)), float(np.max(mean + far))


def _charted(message: Family, axis: str) -> bool:
    """Whether the message is seen on a chart that is not the variable itself."""
    return axis == "chart" and message.chart != "identity"


def _gaussian(message: Gaussian, t: np.ndarray) -> np.ndarray:
    known = message.naturals[1] > 0
    mean = np.where(known, message.mean, 0.0)[:, None]
    variance = np.where(known, message.variance, 1.0)[:, None]
    return np.exp(1j * t * mean - 0.5 * variance * t**2)


def _bernoulli(message: Bernoulli, t: np.ndarray) -> np.ndarray:
    p = np.asarray(message.p)[:, None]
    return 1 - p + p * np.exp(1j * t)


def _gamma(message: Gamma, t: np.ndarray) -> np.ndarray:
    s, r = _entries(message, message.naturals[0] + 1), _entries(message, message.naturals[1])
    # -s log(1 - i t/r), its modulus by log1p: a naive complex log loses |t/r|^2 below rounding
    u = t / r
    return np.exp(s * (-0.5 * np.log1p(u**2) + 1j * np.arctan(u)))


def _log_gamma(message: Gamma, t: np.ndarray) -> np.ndarray:
    s, r = _entries(message, message.naturals[0] + 1), _entries(message, message.naturals[1])
    return np.exp(_log_gamma_ratio(s, t) - 1j * t * np.log(r))


def _logit_beta(message: Beta, t: np.ndarray) -> np.ndarray:
    a, b = _entries(message, message.naturals[0] + 1), _entries(message, message.naturals[1] + 1)
    return np.exp(_log_gamma_ratio(a, t) + _log_gamma_ratio(b, -t))


def _entries(message: Family, parameter: np.ndarray) -> np.ndarray:
    """A column of parameters, with 1 in place of those of point masses and uniform messages, which are not used."""
    soft = np.asarray(message.proper & ~message.is_point)
    return np.where(soft, parameter, 1.0)[:, None]


def _log_gamma_ratio(s: np.ndarray, t: np.ndarray) -> np.ndarray:
    """``log G(s + i t) - log G(s)``: the difference taken inside Stirling's series where s is large.

    There the two logarithms agree in their leading digits, and a plain difference would lose 1e-7 at s = 1e8.
    """
    s, t = np.broadcast_arrays(s, t)
    large = s >= _STIRLING_FROM
    low, high = np.where(large, 1.0, s), np.where(large, s, _STIRLING_FROM)
    small_s = loggamma(low + 1j * t) - loggamma(low.astype(complex))
    z = high + 1j * t
    u = t / high
    log_ratio = 0.5 * np.log1p(u**2) + 1j * np.arctan(u)  # log(z / s)
    large_s = (high - 0.5) * log_ratio + 1j * t * (np.log(high) + log_ratio) - 1j * t
    for k, c in enumerate(_STIRLING):
        large_s = large_s + c * (z ** -(2 * k + 1) - high ** -(2 * k + 1.0))
    return np.where(large, large_s, small_s)


def _beta(message: Beta, t: np.ndarray) -> np.ndarray:
    """``1F1(a; a + b; i t)`` by the trapezoid rule on the logit axis, each different ``(a, b)`` once.

    The library function for 1F1 is wrong by 1e117 at Beta(500, 3). On the logit axis the density is analytic and
    falls exponentially, so equal steps converge faster than any power of the step.
    """
    a, b = _entries(message, message.naturals[0] + 1), _entries(message, message.naturals[1] + 1)
    pairs, row = np.unique(np.concatenate([a, b], axis=1), axis=0, return_inverse=True)
    values = np.stack([_beta_at(a, b, t) for a, b in pairs])
    return values[row.reshape(-1)]


def _beta_at(a: float, b: float, t: np.ndarray) -> np.ndarray:
    mean = float(digamma(a) - digamma(b))
    sd = float(np.sqrt(polygamma(1, a) + polygamma(1, b)))
    low, high = mean - max(9.5 * sd, 38 / a), mean + max(9.5 * sd, 38 / b)
    nearest = min(max(low, 0.0), high)  # where x changes fastest with its logit
    slope = float(np.exp(log_expit(nearest) + log_expit(-nearest)))
    t_max = float(np.max(np.abs(t), initial=0.0))
    # the sum aliases the transform of the integrand at 2 pi / step: the density's has died there (Gaussian with 1/sd,
    # or exp(-pi w) from the poles of the logistic), after exp(i t x) has moved it by t times the slope and a tail;
    # with 1.5 for that and 18 the error was below 5e-14 for all of Beta(.3, .4) to Beta(500, 3), t up to 50 / sd
    step = 2 * np.pi / (max(9.0 / sd, 18.0) + 1.5 * t_max * slope)
    u = np.arange(low, high + step, step)
    log_p = _log_beta_shape(a, b, u)
    keep = log_p > log_p.max() - 45.0
    u, p = u[keep], np.exp(log_p[keep] - log_p.max())
    x = np.exp(log_expit(u))
    p = p / p.sum()
    out = np.empty(t.shape, dtype=complex)
    for start in range(0, t.size, max(1, _BLOCK // max(u.size, 1))):
        part = slice(start, start + max(1, _BLOCK // max(u.size, 1)))
        out[part] = np.exp(1j * np.outer(t[part], x)) @ p
    return out


def _log_beta_shape(a: float, b: float, u: np.ndarray) -> np.ndarray:
    """The log density of the logit, up to a constant; for large parameters relative to its mode.

    There ``a log x + b log(1 - x)`` is a small difference of numbers like 1e8, and would lose half its digits.
    """
    if a + b < 1e3:
        return a * log_expit(u) + b * log_expit(-u)
    mode = np.log(a) - np.log(b)
    d = u - mode
    d = np.clip(d, -600.0, 600.0)  # expm1 overflows beyond; the density is 0 there already
    return -a * np.log1p(np.exp(log_expit(-mode)) * np.expm1(-d)) - b * np.log1p(np.exp(log_expit(mode)) * np.expm1(d))


_ON_THE_LINE: dict[type[Family], Callable[..., np.ndarray]] = {
    Gaussian: _gaussian,
    Gamma: _gamma,
    Beta: _beta,
    Bernoulli: _bernoulli,
}
_ON_THE_CHART: dict[type[Family], Callable[..., np.ndarray]] = {Gamma: _log_gamma, Beta: _logit_beta}
