"""Draws and their importance weights: the product of all messages over the proposal, eq. (2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from heliograph.errors import UnsupportedError
from heliograph.oracles.problem import Port, Problem, log_inputs, walk
from heliograph.oracles.proposal import Proposal, draw, log_density

__all__ = ["Draws", "Match", "log_output", "look", "refuse_observed", "weigh"]

Match = Callable[[Port, np.ndarray], np.ndarray]  # the output's port and coordinates -> log weight


class Draws(NamedTuple):
    """Weighted draws of a chunk."""

    u: np.ndarray  # (n, s, D)
    v: np.ndarray  # (n, s, Dout)
    log_q: np.ndarray  # (n, s), the proposal's density of u
    log_weights: np.ndarray  # (n, s)
    edge: np.ndarray  # (n, s), -1 or 1 where the output rounded onto its lower or upper edge
    bad: np.ndarray  # (n,) bool: a weight was NaN or infinite


def look(rng: np.random.Generator, problem: Problem, proposal: Proposal, uniforms: np.ndarray, match: Match) -> Draws:
    """Draw, call, weigh."""
    u = draw(problem, proposal, uniforms)
    v, edge = walk(rng, problem, u)
    return weigh(problem, u, v, log_density(problem, proposal, u), edge, match)


def weigh(problem: Problem, u: np.ndarray, v: np.ndarray, log_q: np.ndarray, edge: np.ndarray, match: Match) -> Draws:
    """The weights of eq. (2) for draws from a density `log_q`."""
    log_w = log_inputs(problem, u) - log_q + match(problem.output, v)
    wrong = np.isnan(log_w) | np.isposinf(log_w)
    return Draws(u, v, log_q, np.where(wrong, -np.inf, log_w), edge, np.asarray(wrong.any(axis=1)))


def log_output(output: Port, v: np.ndarray) -> np.ndarray:
    """The usual comparison: the log density of the output's message."""
    return output.axis.log_message(output.message, v)


def refuse_observed(problem: Problem) -> None:
    """Raise where the output is a continuous value known exactly."""
    if not problem.output.axis.discrete and problem.output.message.is_point.any():
        raise UnsupportedError(
            f"the output of factor {problem.sampler.name!r} is observed exactly, and no draw of a continuous value "
            "ever equals an observation: put noise between the two (a Gaussian around the output), or use oracle='abc'"
        )
