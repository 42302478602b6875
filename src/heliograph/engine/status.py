"""The end of a run in words: the status of a posterior, and the warnings of `infer`."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from heliograph.engine.trace import SweepInfo
from heliograph.engine.unsent import Unsent
from heliograph.errors import AccuracyWarning, ConvergenceWarning, OracleWarning
from heliograph.graph.loops import variables_in_loops
from heliograph.graph.records import Graph

if TYPE_CHECKING:
    from heliograph.engine.posterior import Posterior

__all__ = ["status", "unsent_sentence", "warn_of_doubts"]

_NAMED = 6  # variables that a sentence names
_CALLER = 5  # frames from a warning to the line that called `infer`


def status(graph: Graph, info: SweepInfo, converged: bool, unsent: Unsent, single_pass: bool) -> str:
    """One sentence: converged, stopped early, hidden by noise, diverged, or messages missing."""
    if converged:
        return "converged"
    if len(unsent):
        return unsent_sentence(graph, unsent)
    if info.hidden or (single_pass and info.noise):
        return (
            f"hidden by noise: fresh draws of the oracle alone move the beliefs by about {info.noise:.2g} nats, more than "
            f"the tolerance of {info.tolerated:.2g} allows; give the oracle more draws, or raise tolerance="
        )
    if info.rolled_back:
        return (
            f"diverged: every step, however short, makes the belief of variable {info.moving!r} improper; "
            "set damping= between 0.5 and 0.9, or give the variables narrower priors"
        )
    sweeps = f"{info.sweep} sweep{'' if info.sweep == 1 else 's'}"
    if not np.isfinite(info.change):
        return (
            f"stopped after {sweeps}: the belief of variable {info.moving!r} is improper, as nothing that was sent "
            "determines it; give it a proper prior, or raise max_sweeps="
        )
    ahead = ""
    if np.isfinite(info.to_go) and info.to_go > info.change:
        ahead = f", and at this rate by {info.to_go:.2g} more in all"
    elif info.sweep == 1:
        ahead = ", and one sweep cannot show that it is the last"
    return (
        f"stopped after {sweeps}, before the beliefs settled: variable {info.moving!r} still moves by {info.change:.2g} "
        f"nats per sweep{ahead}; {_remedy(info)}"
    )


def _remedy(info: SweepInfo) -> str:
    if info.damping > 0.5:
        return "raise max_sweeps=, or set damping= between 0.5 and 0.9"
    return "raise max_sweeps= (and set damping= between 0.5 and 0.9 if the changes do not fall)"


def unsent_sentence(graph: Graph, unsent: Unsent) -> str:
    """The sentence on messages that could not be computed, with their number and reason."""
    parts: list[str] = []
    if unsent.n_skipped:
        parts.append(
            f"{unsent.sentence(graph, failed=False)} could not be computed: not finite, or the belief would be improper"
        )
    if unsent.n_failed:
        parts.append(
            f"the oracle could not answer {unsent.sentence(graph, failed=True)}: no weight, or too heavy tails"
        )
    n = len(unsent)
    return f"{n} row{'' if n == 1 else 's'} failed: {'; '.join(parts)}; older messages, or none, stand there"


def warn_of_doubts(graph: Graph, posterior: Posterior, tolerance: float) -> None:
    """Warn of everything that a user should know before trusting the posterior."""
    if posterior.unsent.n_failed:
        warnings.warn(posterior.status, OracleWarning, stacklevel=_CALLER)
    elif not posterior.converged:
        warnings.warn(f"not converged: {posterior.status}", ConvergenceWarning, stacklevel=_CALLER)
    loops = variables_in_loops(graph)
    if loops:
        names = ", ".join(repr(name) for name in loops[:_NAMED]) + (", ..." if len(loops) > _NAMED else "")
        warnings.warn(
            f"variables {names} are factorised in a loop: correlations are lost, so that their standard deviations, and those "
            "of what depends on them, may be too small and the evidence off; one vector with X @ w keeps its correlations",
            AccuracyWarning,
            stacklevel=_CALLER,
        )
    if np.isnan(posterior.error_estimate):
        warnings.warn(
            "this operator predicts messages without saying how wrong they may be, so nothing is known of the posterior's "
            'error; operator="learned" estimates it, and operator="ask" predicts nothing',
            AccuracyWarning,
            stacklevel=_CALLER,
        )
    if posterior.error_estimate > tolerance > 0 and not posterior.unsent.n_failed:
        warnings.warn(
            f"learned or sampled messages may have added {posterior.error_estimate:.2g} nats to the posterior's error, more "
            f"than tolerance={tolerance:g}; give the oracle more draws, or raise tolerance=",
            AccuracyWarning,
            stacklevel=_CALLER,
        )
