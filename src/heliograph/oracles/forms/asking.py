"""Ask an oracle about rows in the form in which it can answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from heliograph.families import Categorical, Family
from heliograph.oracles.answer import Answer, Oracle, gather
from heliograph.oracles.automatic import AutomaticOracle
from heliograph.oracles.forms.density import DensityForm, ask_density
from heliograph.oracles.forms.exact import answer_exactly
from heliograph.oracles.forms.several import ask_several, together
from heliograph.oracles.importance.abc_oracle import AbcOracle
from heliograph.oracles.problem import take_incoming
from heliograph.oracles.sampler import Sampler

__all__ = ["ask_in_form", "found_by_roots", "route_in_form"]


def ask_in_form(oracle: Oracle, rng: np.random.Generator, sampler: Sampler, incoming: Mapping[str, Any]) -> Answer:
    """The beliefs of every direction, one row for each incoming tuple.

    Rows whose output was observed are asked about in another form, and the others as they are.
    """
    if sampler.more:
        return ask_several(oracle, rng, sampler, incoming)
    incoming = _with_messages(sampler, incoming)
    seen = _seen(sampler, incoming)
    if seen is None or isinstance(oracle, AbcOracle):  # which compares draws with what was observed
        return oracle.ask(rng, sampler, incoming)
    parts = []
    for some in (seen, ~seen):
        rows = np.flatnonzero(some)
        if len(rows):
            here = take_incoming(incoming, rows)
            answer = _ask_seen(oracle, rng, sampler, here) if some is seen else oracle.ask(rng, sampler, here)
            parts.append((rows, answer))
    return gather(parts, len(seen))


def _ask_seen(oracle: Oracle, rng: np.random.Generator, sampler: Sampler, incoming: Mapping[str, Any]) -> Answer:
    if sampler.log_density is None:
        return answer_exactly(rng, sampler, incoming)
    return ask_density(oracle, rng, sampler, incoming)


def route_in_form(oracle: AutomaticOracle, sampler: Sampler, incoming: Mapping[str, Any]) -> tuple[Any, int]:
    """The way of an automatic oracle for a plate, and the calls of the function that it took to find it."""
    if sampler.more:
        form = DensityForm(*together(sampler, incoming))
        return oracle.route(form.sampler, form.incoming)
    incoming = _with_messages(sampler, incoming)
    seen = _seen(sampler, incoming)
    if seen is None:
        return oracle.route(sampler, incoming)
    if sampler.log_density is None:
        rows = np.flatnonzero(~seen)
        return oracle.route(sampler, take_incoming(incoming, rows)) if len(rows) else (oracle, 0)
    form = DensityForm(sampler, take_incoming(incoming, np.flatnonzero(seen)))
    return oracle.route(form.sampler, form.incoming)


def found_by_roots(sampler: Sampler, incoming: Mapping[str, Any]) -> bool:
    """Return whether some rows have an observed output, so that roots must be found, which cannot be learned."""
    return sampler.log_density is None and not sampler.more and _seen(sampler, incoming) is not None


def _seen(sampler: Sampler, incoming: Mapping[str, Any]) -> np.ndarray | None:
    """The rows (n,) bool whose output is a value of a density; None: none of them."""
    message = incoming.get(sampler.child)
    if not isinstance(message, Family) or message.point is None:
        return None
    if sampler.output.discrete and (sampler.counted is None or sampler.log_density is None):
        return None
    seen = np.asarray(message.is_point)
    return seen if seen.any() else None


def _with_messages(sampler: Sampler, incoming: Mapping[str, Any]) -> Mapping[str, Any]:
    """Plain values of the output as point masses; not of categories, whose number is unknown."""
    message = incoming.get(sampler.child)
    if message is None or isinstance(message, Family) or sampler.output is Categorical:
        return incoming
    return {**incoming, sampler.child: sampler.output.point_mass(np.asarray(message))}
