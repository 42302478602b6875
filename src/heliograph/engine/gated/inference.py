"""`infer` for models with gates: every branch by itself, then the probability of each from its evidence (decision 0052)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from heliograph.engine.gated.branch import Branch
from heliograph.engine.gated.posterior import GatedPosterior
from heliograph.engine.options import InferOptions
from heliograph.engine.posterior import Posterior
from heliograph.errors import ContradictionError, ModelError
from heliograph.graph.builder import Builder
from heliograph.graph.gates import branches_of, switches_of, write_branch
from heliograph.graph.records import Node
from heliograph.graph.replay import Replay
from heliograph.numerics.special import logsumexp

__all__ = ["infer_gated"]


def infer_gated(
    model: Builder, options: InferOptions, run: Callable[[Replay, InferOptions], Posterior]
) -> GatedPosterior:
    """The posterior of a model with gates; `run` infers the model of one branch.

    The prior of the switches is part of each branch's evidence, for they are observed there.
    """
    if options.start is not None:
        raise ModelError("start= is for one run, and a model with gates has one for every branch")
    if model.draft.hypers or options.integrate not in ("auto", False):
        raise ModelError(
            "a model with gates has no hyper-parameters to be integrated over; make scales Gamma variables given as "
            "precision=, or fix their values"
        )
    if isinstance(options.seed, np.random.Generator):  # one draw, so that every branch meets the same randomness
        options = replace(options, seed=int(options.seed.integers(2**63)))
    branches: list[Branch] = []
    for values in branches_of(model):
        written = write_branch(model, values)
        branches.append(_impossible(values) if written is None else _inferred(values, written, options, run))
    log_evidence = float(logsumexp(np.array([b.log_evidence for b in branches])))
    if log_evidence == -np.inf:
        raise ContradictionError("no branch of this model is possible: each contradicts itself or what was observed")
    weighed = [replace(b, probability=float(np.exp(b.log_evidence - log_evidence))) for b in branches]
    return GatedPosterior(model, list(switches_of(model)), weighed, log_evidence)


def _impossible(values: dict[Node, int]) -> Branch:
    return Branch(values, 0.0, -np.inf, None, None)


def _inferred(
    values: dict[Node, int], written: Replay, options: InferOptions, run: Callable[[Replay, InferOptions], Posterior]
) -> Branch:
    try:
        posterior = run(written, options)
    except ContradictionError:  # the branch contradicts the data: its probability is 0
        return _impossible(values)
    log_evidence = posterior.log_evidence
    branch = Branch(values, 0.0, log_evidence, posterior, written)
    if np.isnan(log_evidence) or log_evidence == np.inf:
        raise ModelError(
            f"EP gave no evidence where {branch.words}, so the branches cannot be weighed; the status there: {posterior.status}"
        )
    return branch
