"""Draws and their importance weights: the product of all messages over the proposal, eq. (2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from heliograph.errors import FactorError
from heliograph.oracles.importance.proposal import Proposal, draw, log_density
from heliograph.oracles.problem import NOTICEABLE, Port, Problem, Walked, log_inputs, log_unknown, walk

__all__ = ["Draws", "Match", "log_output", "look", "refuse_unlooked", "weigh"]

Match = Callable[[Port, np.ndarray], np.ndarray]  # the output's port and coordinates -> log weight


class Draws(NamedTuple):
    """Weighted draws of a chunk."""

    u: np.ndarray  # (n, s, D)
    v: np.ndarray  # (n, s, Dout)
    log_q: np.ndarray  # (n, s), the proposal's density of u
    log_weights: np.ndarray  # (n, s)
    edge: np.ndarray  # (n, s), -1 or 1 where the output rounded onto its lower or upper edge
    bad: np.ndarray  # (n,) bool: a weight was NaN or infinite, or too much may lie where the function overflows
    # (n,) share of the mass where it gave no value, and what it gave
    unlooked: tuple[np.ndarray, FactorError] | None = None


def look(rng: np.random.Generator, problem: Problem, proposal: Proposal, uniforms: np.ndarray, match: Match) -> Draws:
    """Draw, call, weigh."""
    u = draw(problem, proposal, uniforms)
    walked = walk(rng, problem, u)
    log_q = log_density(problem, proposal, u)
    drawn = weigh(problem, u, walked.v, log_q, walked.edge, match)
    return drawn if walked.wrong is None else _without(problem, drawn, walked)


def _without(problem: Problem, drawn: Draws, walked: Walked) -> Draws:
    """The draws at which the function gave a value; the others keep no weight, now or when they are weighed again."""
    assert walked.wrong is not None
    wrong = walked.wrong > 0
    log_w = np.where(wrong, -np.inf, drawn.log_weights)
    log_in = log_inputs(problem, drawn.u)
    log_total = np.asarray(logsumexp(log_w, axis=1))
    shares = []
    for which in (1, 2):  # no value, and an infinite one
        some = walked._replace(wrong=np.where(walked.wrong == which, walked.wrong, 0))
        log_most = log_unknown(problem, some, log_in, -drawn.log_q)
        seen = np.isfinite(log_total) & ~np.isneginf(log_most)  # a row without any weight fails for that
        gap = np.where(seen, log_most, -np.inf) - np.where(seen, log_total, 0.0)
        everywhere = (walked.wrong == which).all(axis=1)  # then the function is at fault, and not the row
        shares.append(np.where(everywhere, np.inf, np.exp(np.minimum(gap, 50.0))))
    error = walked.complain(int(np.argmax(walked.wrong.ravel() == 1))) if (walked.wrong == 1).any() else None
    return drawn._replace(
        log_q=np.where(wrong, np.inf, drawn.log_q),
        log_weights=log_w,
        bad=drawn.bad | (shares[1] > NOTICEABLE),
        unlooked=None if error is None else (shares[0], error),
    )


def refuse_unlooked(drawn: Draws) -> None:
    """Raise the error of a function that gives no value where there is mass."""
    if drawn.unlooked is not None and (drawn.unlooked[0] > NOTICEABLE).any():
        raise drawn.unlooked[1]


def weigh(problem: Problem, u: np.ndarray, v: np.ndarray, log_q: np.ndarray, edge: np.ndarray, match: Match) -> Draws:
    """The weights of eq. (2) for draws from a density `log_q`."""
    log_w = log_inputs(problem, u) - log_q + match(problem.output, v)
    wrong = np.isnan(log_w) | np.isposinf(log_w)
    return Draws(u, v, log_q, np.where(wrong, -np.inf, log_w), edge, np.asarray(wrong.any(axis=1)))


def log_output(output: Port, v: np.ndarray) -> np.ndarray:
    """The usual comparison: the log density of the output's message."""
    return output.axis.log_message(output.message, v)
