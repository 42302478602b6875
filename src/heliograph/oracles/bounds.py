"""How large the output's message may be: what bounds the mass where the function could not be looked at, or was not."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from heliograph.oracles.problem import Problem, Walked

__all__ = ["NOTICEABLE", "log_unknown"]

NOTICEABLE = 1e-6  # share of the mass that may lie where a function gives no value


def log_unknown(problem: Problem, walked: Walked, log_in: np.ndarray, rule: np.ndarray) -> np.ndarray:
    """A bound (n,) on the log mass at points where the function gave no value; -inf where there are none.

    `log_in` is the log density of the inputs' messages and `rule` the log weight of each point, both (n, s). An infinite
    value has no mass under a message that falls off.
    """
    if walked.wrong is None:
        return np.full(problem.n, -np.inf)
    axis, message = problem.output.axis, problem.output.message
    most = np.broadcast_to(axis.log_highest(message)[:, None], log_in.shape)
    most = np.where((walked.wrong == 2) & axis.falls_off(message)[:, None], -np.inf, most)
    terms = np.where(walked.wrong > 0, log_in + rule, -np.inf)
    terms = np.where(np.isneginf(terms) | np.isneginf(most), -np.inf, terms + np.where(np.isneginf(most), 0.0, most))
    with np.errstate(divide="ignore"):  # no mass at all
        return np.asarray(logsumexp(terms, axis=1))
