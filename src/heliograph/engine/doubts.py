"""The warnings of `infer`: everything that a user should know before trusting a posterior."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from heliograph.engine.curved import Curved
from heliograph.engine.overlap import Overlap
from heliograph.engine.posterior import Posterior
from heliograph.errors import AccuracyWarning, ConvergenceWarning, OracleWarning
from heliograph.graph.loops import variables_in_loops
from heliograph.graph.records import Graph
from heliograph.numerics.checks import listed

__all__ = ["warn_of_doubts"]

_NAMED = 6  # variables that a sentence names
_NATS = 0.1  # of the evidence, from which on a warning names the error
_CALLER = 5  # frames from a warning to the line that called `infer`


def warn_of_doubts(
    graph: Graph,
    posterior: Posterior,
    tolerance: float,
    curved: Sequence[Curved] = (),
    overlaps: Sequence[Overlap] = (),
) -> None:
    """Warn of everything that a user should know before trusting the posterior."""
    if posterior.unsent.n_failed:
        warnings.warn(posterior.status, OracleWarning, stacklevel=_CALLER)
    elif not posterior.converged:
        warnings.warn(f"not converged: {posterior.status}", ConvergenceWarning, stacklevel=_CALLER)
    loops = variables_in_loops(graph)
    if loops:
        warnings.warn(
            f"variables {listed(loops, _NAMED)} are factorised in a loop: correlations are lost, so that their standard "
            "deviations, and those of what depends on them, may be too small and the evidence off; one vector with X @ w "
            "keeps its correlations",
            AccuracyWarning,
            stacklevel=_CALLER,
        )
    for text in (*map(_of_curved, curved), *map(_of_overlap, overlaps)):
        warnings.warn(text, AccuracyWarning, stacklevel=_CALLER)
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


def _of_curved(one: Curved) -> str:
    why = "few strong factors, or products, maxima, mixtures or functions that bend their posterior"
    beginning = f"the belief of {one.names} is not what the model says ({why}, which EP takes for Gaussian): "
    if np.isnan(one.ratio):
        return beginning + "draws of it are too unlike the posterior to say how wrong that is; compare with a sampler"
    evidence = f", and the log evidence {one.evidence:+.2g} nats" if abs(one.evidence) > _NATS else ""
    return beginning + (
        f"by weighted draws a standard deviation is {one.ratio:.2g} times what EP says, and a mean {one.shift:.2g} standard "
        f"deviations off{evidence}"
    )


def _of_overlap(one: Overlap) -> str:
    return (
        f"the components that {one.selector!r} chooses overlap: {one.share:.0%} of the rows are expected to be of another one than "
        f"the most probable. {listed(one.unknown, _NAMED)} are factorised from the rest, so that standard deviations are too "
        "small, by half and more where both weights and precisions are unknown (docs/accuracy.md); compare with a sampler"
    )
