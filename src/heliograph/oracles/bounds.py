"""How large the output's message may be: what bounds the mass where the function could not be looked at, or was not."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from heliograph.families import Beta, Family, Gamma, Gaussian
from heliograph.oracles.problem import Problem, Walked

__all__ = ["highest", "log_unknown", "mode_of"]

_FAR = 700.0  # on a log or logit axis: the end of double precision


def mode_of(message: Family) -> np.ndarray:
    """Where on its axis a message of one number is largest (in the measure of the variable); an end if at an end."""
    a, b = message.naturals
    if isinstance(message, Gaussian):
        safe = np.where(b > 0, b, 1.0)
        return np.where(b > 0, a / safe, np.where(a < 0, -1e300, 1e300))
    if isinstance(message, (Gamma, Beta)):
        inner = (a > 0) & (b > 0)
        at_end = np.where(a > (b if isinstance(message, Beta) else 0), _FAR, -_FAR)
        return np.where(inner, np.log(np.where(inner, a / np.where(inner, b, 1.0), 1.0)), at_end)
    return np.zeros(message.shape)


def highest(problem: Problem) -> np.ndarray:
    """The largest log density (n,) that the output's message has anywhere; infinite where that is not known."""
    axis, message = problem.output.axis, problem.output.message
    if axis.discrete:
        return np.zeros(problem.n)
    if not isinstance(message, (Gaussian, Gamma, Beta)):
        return np.full(problem.n, np.inf)
    a, b = message.naturals
    flat = (a == 0) & (b == 0)
    # a Gaussian with precision, a Gamma or Beta that does not grow towards an end of its support
    bounded = (b > 0) if isinstance(message, Gaussian) else (a >= 0) & (b >= 0)
    bounded = (bounded | flat) & ~message.is_point
    at = axis.log_message(message, np.where(flat, 0.0, mode_of(message))[:, None, None])[:, 0]
    return np.where(bounded, at, np.inf)


def log_unknown(problem: Problem, walked: Walked, log_in: np.ndarray, rule: np.ndarray) -> np.ndarray:
    """A bound (n,) on the log mass at points where the function gave no value; -inf where there are none.

    `log_in` is the log density of the inputs' messages and `rule` the log weight of each point, both (n, s). An infinite
    value has no mass under a message that falls off.
    """
    if walked.wrong is None:
        return np.full(problem.n, -np.inf)
    message = problem.output.message
    most = np.broadcast_to(highest(problem)[:, None], log_in.shape)
    if isinstance(message, (Gaussian, Gamma)):
        falls_off = (message.naturals[1] > 0)[:, None]
        most = np.where((walked.wrong == 2) & falls_off, -np.inf, most)
    terms = np.where(walked.wrong > 0, log_in + rule, -np.inf)
    terms = np.where(np.isneginf(terms) | np.isneginf(most), -np.inf, terms + np.where(np.isneginf(most), 0.0, most))
    with np.errstate(divide="ignore"):  # no mass at all
        return np.asarray(logsumexp(terms, axis=1))
