"""A cheap reference belief for every port of a deterministic factor, from a few evaluations at each message.

It is not an answer, because its error is not guaranteed. It is where the default operator starts from, since the correction that is
left is small and smooth and so quickly learned. One unknown number, or two: moments on even nodes of their charts
(`line_reference.py`, `plane_reference.py`); several: iterated posterior linearisation (`linearisation.py`). A stochastic,
discrete or expensive factor has none, and the cavity takes its place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from heliograph.families import Family
from heliograph.families.charts import density_chart_of
from heliograph.oracles.forms import DensityForm, together
from heliograph.oracles.references.known_values import KnownValues
from heliograph.oracles.references.line_reference import one_unknown
from heliograph.oracles.references.linearisation import blocks_of, charts_of, several_unknown
from heliograph.oracles.references.output import serves_output
from heliograph.oracles.references.plane_reference import two_unknown
from heliograph.oracles.references.record import Question, Reference
from heliograph.oracles.sampler import Sampler

__all__ = ["reference_of"]

Refer = Callable[..., Reference | None]  # of rng, incoming and the port in question; None asks for log Z


def reference_of(sampler: Sampler, known: KnownValues | None = None) -> Refer | None:
    """The way to refer messages of this factor; None if it can have no reference.

    What it gives takes rows that are alike: at each port all point masses, all uniform or all proper. The last argument
    names the port in question; None asks for log Z.

    Parameters
    ----------
    sampler : the factor
    known : what is remembered of its function from call to call; None: nothing
    """
    if sampler.expensive:
        return None
    if sampler.more:
        return None if sampler.stochastic else _refer_several(sampler)
    if sampler.log_density is not None:
        return _refer_by_density(sampler, known)
    if sampler.stochastic or not serves_output(sampler.output):
        return None

    def refer(rng: np.random.Generator, incoming: Mapping[str, Any], to: str | None) -> Reference | None:
        found = _refer(rng, sampler, incoming, to, known)
        if found is None or known is None:
            return found
        return found._replace(n_evaluations=found.n_evaluations + known.lay())

    return refer


def _refer_by_density(sampler: Sampler, known: KnownValues | None) -> Refer:
    """The way to refer messages of a factor whose output has a log density where it is observed."""
    plain = reference_of(sampler._replace(log_density=None), known)

    def refer(rng: np.random.Generator, incoming: Mapping[str, Any], to: str | None) -> Reference | None:
        if incoming[sampler.child].point is None or not incoming[sampler.child].is_point.all():
            return None if plain is None else plain(rng, incoming, to)
        return _refer_form(rng, DensityForm(sampler, incoming), to)

    return refer


def _refer_several(sampler: Sampler) -> Refer:
    """The way to refer messages of a factor of several outputs: those to its inputs."""

    def refer(rng: np.random.Generator, incoming: Mapping[str, Any], to: str | None) -> Reference | None:
        return None if to in sampler.children else _refer_form(rng, DensityForm(*together(sampler, incoming)), to)

    return refer


def _refer_form(rng: np.random.Generator, form: DensityForm, to: str | None) -> Reference | None:
    """A reference by log weights in place of an output's message."""
    found = _refer(rng, form.sampler, form.incoming, to)
    if found is not None and len(form.raise_ceiling()):  # evaluated once more, with a higher ceiling
        found = _refer(rng, form.sampler, form.incoming, to)
    if found is None or found.log_z is None:
        return found
    return found._replace(log_z=found.log_z + form.ceiling + 0.5 * np.log(2 * np.pi))


def _refer(
    rng: np.random.Generator,
    sampler: Sampler,
    incoming: Mapping[str, Any],
    to: str | None,
    known: KnownValues | None = None,
) -> Reference | None:
    constants, unknown = {}, {}
    for port in sampler.inputs:
        message = incoming[port]
        if not isinstance(message, Family):
            constants[port] = np.asarray(message)
        elif message.point is not None:
            constants[port] = message.point
        elif density_chart_of(message) is not None:
            unknown[port] = message
        else:
            return None
    out = incoming[sampler.child]
    if not unknown or type(out) is not sampler.output or out.point is not None:
        return None
    if not all(m.proper.all() for m in unknown.values()):
        return None
    question = Question(rng, sampler, unknown, constants, out, to, known)
    charts = charts_of(unknown)
    if len(unknown) == 1 and next(iter(charts.values())).scalar:
        return one_unknown(question)
    refer = two_unknown if blocks_of(unknown)[1] == 2 else several_unknown
    return refer(question)
