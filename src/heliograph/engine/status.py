"""The end of a run in words: converged, or why not and what to do."""

from __future__ import annotations

import numpy as np

from heliograph.engine.sweep_info import SweepInfo
from heliograph.engine.unsent import Unsent
from heliograph.factors.black_box.auditing import Audit
from heliograph.graph.records import Graph

__all__ = ["judged_by_audits", "status", "unsent_sentence"]


def status(graph: Graph, info: SweepInfo, converged: bool, unsent: Unsent, single_pass: bool) -> str:
    """One sentence: converged, stopped early, hidden by noise, diverged, or messages missing."""
    if converged:
        return "converged"
    if info.in_vain:
        return (
            f"does not settle: {info.in_vain} questions to the oracle have brought the beliefs no nearer to rest (variable "
            f"{info.moving!r} moves by {info.change:.2g} nats per sweep); where there are several solutions, as when only the size "
            "of an unknown is seen, a prior that prefers one of them settles it"
        )
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
            f"determines it; give it a proper prior{', or raise max_sweeps=' if info.sweep <= 3 else ''}"
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


def judged_by_audits(audits: list[Audit], estimate: float, tolerance: float) -> tuple[bool, str]:
    """Whether a run of which the beliefs settled is converged, by what its predictions were found to be wrong by, and in words."""
    if not audits:
        return False, (
            "the beliefs settled, but some messages were predicted without saying how wrong they may be and were not checked; "
            'operator="learned" says it, operator="ask" predicts nothing, and infer(audit=True) checks some'
        )
    if estimate <= tolerance:
        return True, "converged"
    worst = max(audits, key=lambda a: a.n_rows * a.root_kl)
    together = "nobody knows how much" if not np.isfinite(estimate) else f"about {estimate:.2g} nats"
    return False, (
        f"the beliefs settled, but {worst.sentence}: that may have added {together} to the posterior's error, "
        f"and tolerance={tolerance:g}; "
        'operator="learned" asks until its predictions are good enough'
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
