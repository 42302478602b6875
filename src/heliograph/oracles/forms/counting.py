"""Counts drawn by a stochastic function: the way to a proposal whose draws hit the number that was seen.

The share of draws that give exactly 40 is small, and almost nothing where the inputs are not yet near their belief. So a row is
first asked which inputs come within half of its count, then within an eighth, and so on; each answer is where the next one looks.
The last one counts hits alone, and states its error as any importance sampling does: what came before decides where it draws, not
what it says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from heliograph.families import Family
from heliograph.oracles.answer import Answer, Oracle, gather
from heliograph.oracles.automatic import AutomaticOracle, Route
from heliograph.oracles.axes import axis_of
from heliograph.oracles.importance.importance_oracle import ImportanceOracle
from heliograph.oracles.sampler import Sampler

__all__ = ["Near", "ask_counts"]

_WITHIN = (0.5, 0.125, 0.03, 0.008)  # of the count
_LARGE = 4.0  # the least count that is worth the way: draws hit smaller ones by themselves
_ROUGH = 4096  # draws on the way
_BROADER = 2.25  # times the variance of what was found, as the defensive half of any proposal


class Near(Protocol):
    """A function that says whether a draw is near an observed count."""

    def within(self, share: float) -> Any:
        """The same, for draws within that share of the count."""
        ...


def ask_counts(oracle: Oracle, rng: np.random.Generator, sampler: Sampler, incoming: Mapping[str, Any]) -> Answer:
    """The beliefs of every direction, one row for each incoming tuple."""
    draws = _sampling(oracle)
    assert sampler.counted is not None
    count, seen = np.asarray(incoming[sampler.counted], dtype=float), incoming[sampler.child]
    far = (count >= _LARGE) & np.broadcast_to(seen.is_point, count.shape)
    for port in sampler.inputs:
        if isinstance(incoming[port], Family):
            far &= incoming[port].proper
    if draws is None or not far.any():
        return oracle.ask(rng, sampler, incoming)
    parts = []
    if not far.all():
        near = np.flatnonzero(~far)
        parts.append((near, oracle.ask(rng, sampler, _rows(incoming, near))))
    for row in np.flatnonzero(far):
        one = np.array([row])
        parts.append((one, _approach(draws, rng, sampler, _rows(incoming, one), float(count[row]))))
    return gather(parts, len(count))


def _sampling(oracle: Oracle) -> ImportanceOracle | None:
    """The importance sampling that an oracle does, where its proposals are its own to choose."""
    if isinstance(oracle, (AutomaticOracle, Route)):
        oracle = replace(oracle.importance, precision=oracle.precision)
    return oracle if isinstance(oracle, ImportanceOracle) and isinstance(oracle.proposal, str) else None


def _approach(
    draws: ImportanceOracle, rng: np.random.Generator, sampler: Sampler, incoming: Mapping[str, Any], count: float
) -> Answer:
    """One row, by draws that come nearer and nearer."""
    hits: Near = sampler.function  # type: ignore[assignment]
    here, spent = draws, 0
    for share in _WITHIN:
        if share * count < 1:
            break
        rough = replace(here, n_samples=min(_ROUGH, draws.n_samples), precision=None, budget=None)
        found = rough.ask(rng, sampler._replace(function=hits.within(share)), incoming)
        spent += found.n_evaluations
        if found.failed[0]:
            here = draws
            break
        here = replace(draws, proposal=_around(sampler, incoming, found), adapt=False)
    answer = here.ask(rng, sampler, incoming)
    if answer.failed[0] and here is not draws:
        spent, answer = spent + answer.n_evaluations, draws.ask(rng, sampler, incoming)
    return answer._replace(n_evaluations=answer.n_evaluations + spent)


def _around(sampler: Sampler, incoming: Mapping[str, Any], found: Answer) -> dict[str, Family]:
    """Proposals for the unknown inputs: what was found, and somewhat broader."""
    proposal: dict[str, Family] = {}
    for port in sampler.inputs:
        message = incoming[port]
        if isinstance(message, Family) and not message.is_point.any():
            axis: Any = axis_of(type(message), message)
            if not axis.discrete:
                proposal[port] = axis.broaden(found.beliefs[port], _BROADER)
    return proposal


def _rows(incoming: Mapping[str, Any], rows: np.ndarray) -> dict[str, Any]:
    return {k: m[rows] if isinstance(m, Family) or np.ndim(m) else m for k, m in incoming.items()}
