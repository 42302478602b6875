"""`infer` for models with hyper-parameters: which of them are integrated over, the integration, and its warnings."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from heliograph.engine.doubts import warn_of_doubts
from heliograph.engine.nested.bias import bias_of
from heliograph.engine.nested.estimating import estimated_error
from heliograph.engine.nested.integrating import Whole, corrected, explore, single
from heliograph.engine.nested.modes import best_point
from heliograph.engine.nested.points import Evaluator, Point, log_prior, values_of
from heliograph.engine.nested.posterior import IntegratedPosterior
from heliograph.engine.nested.precisions import poorly_messaged
from heliograph.engine.nested.records import Error, Integration
from heliograph.engine.nested.remarks import doubts_of, of_bias, of_long_tails, of_rough_widths, remarks_of
from heliograph.engine.options import InferOptions
from heliograph.engine.predicting.script import script_of
from heliograph.errors import AccuracyWarning, ModelError, UnsupportedError
from heliograph.graph.builder import Builder
from heliograph.graph.hyper import Hyper, hyper_of
from heliograph.graph.symbols import Symbol
from heliograph.graph.variable import Variable
from heliograph.numerics.checks import in_words

__all__ = ["asks_for_more", "chosen_hypers", "infer_integrated"]

_MOST = 6  # numbers that are integrated over: a lattice in more dimensions has too many points


def asks_for_more(integrate: object) -> bool:
    """Whether a setting names anything to be integrated over."""
    return not (integrate is False or (isinstance(integrate, str) and integrate == "auto"))


def chosen_hypers(model: Builder, integrate: Any) -> tuple[list[Hyper], list[Hyper]]:
    """The hyper-parameters to be integrated over, and those that take their best value.

    Parameters
    ----------
    model
        The model.
    integrate
        "auto", False, or a list of hyper-parameters, variables or their names.
    """
    every = model.draft.hypers
    if integrate is False:
        return [], list(every)
    if isinstance(integrate, str) and integrate == "auto":
        _check_number(every)
        precisions = poorly_messaged(model.graph)
        room = _MOST - sum(h.prior.n for h in every)
        return [*every, *(precisions if len(precisions) <= room else [])], []
    if isinstance(integrate, str) or not isinstance(integrate, Sequence):
        raise ModelError(
            f"integrate must be 'auto', False, or a list of hyper-parameters or their names, not {in_words(integrate)}"
        )
    named = [_named(model, x) for x in cast("Sequence[Any]", integrate)]
    chosen = list({h.name: h for h in named}.values())
    _check_number(chosen)
    return chosen, [h for h in every if h.name not in {c.name for c in chosen}]


def _named(model: Builder, x: Any) -> Hyper:
    name = x if isinstance(x, str) else getattr(x, "name", None)
    if isinstance(x, (Symbol, Variable)) and x.model is not model:
        raise ModelError(f"integrate: {x.name!r} belongs to another model")
    if isinstance(x, Symbol) and x.hyper is None:
        raise ModelError(f"integrate: give the hyper-parameters {x.name!r} themselves, not what is computed from them")
    known = next((h for h in model.draft.hypers if h.name == name), None)
    if known is not None:
        return known
    node = next((n for n in model.graph.nodes if n.name == name and n.given), None)
    if node is None:
        there = [h.name for h in model.draft.hypers]
        raise ModelError(f"integrate: no hyper-parameter or variable is called {in_words(name)}; there are {there}")
    return hyper_of(node)


def _check_number(hypers: Sequence[Hyper]) -> None:
    n = sum(h.prior.n for h in hypers)
    if n > _MOST:
        names = ", ".join(f"{h.name} ({h.prior.n})" if h.prior.n > 1 else h.name for h in hypers)
        raise UnsupportedError(
            f"{n} hyper-parameters ({names}) are more than the {_MOST} that can be integrated over; name the most important in "
            "infer(integrate=[...]) (the others take their best value), or make scales Gamma variables given as precision=, "
            "which have messages"
        )


def infer_integrated(model: Builder, options: InferOptions) -> IntegratedPosterior:
    """The posterior of a model with hyper-parameters."""
    chosen, fixed = chosen_hypers(model, options.integrate)
    evaluator, pinned, effort = Evaluator(model, [*chosen, *fixed], options), {}, None
    if fixed:
        best = best_point(evaluator)
        if not chosen:
            return _at_best(model, evaluator, best, options)
        pinned = {h.name: v for h in fixed for v in [values_of([*chosen, *fixed], best.u)[h.name]]}
        effort = evaluator.effort
        evaluator = Evaluator(model, chosen, options, pinned, centre=best.u[: sum(h.prior.n for h in chosen)])
    whole = explore(evaluator)
    always = not isinstance(options.correct, str) and bool(options.correct)
    bias = bias_of(whole) if isinstance(options.correct, str) and not evaluator.late() else None
    mended = always or (bias is not None and bias.matters and bias.known)
    if mended:
        whole = corrected(whole)
    if effort is not None:
        evaluator.effort = type(effort)(*(a + b for a, b in zip(effort, evaluator.effort, strict=True)))
    error = estimated_error(whole)
    remarks = (*remarks_of(whole, chosen, tuple(pinned)), *of_bias(bias, mended))
    integration = _integration(whole, chosen, pinned, evaluator, error, remarks)
    values = values_of(chosen, whole.u)
    values |= {k: np.broadcast_to(v, (len(whole.u), *np.shape(v))) for k, v in pinned.items()}
    doubts = _with_time(doubts_of(whole, integration, evaluator.failed), evaluator, options)
    posterior = IntegratedPosterior(script_of(model), whole, values, integration, whole.log_mass, doubts)
    rough = "" if doubts else of_rough_widths(error, whole.u.shape[1])
    _warn(whole, (doubts, of_long_tails(whole, chosen), rough), options)
    return posterior


def _with_time(doubts: str, evaluator: Evaluator, options: InferOptions) -> str:
    """The doubts, and before them that the time ran out, if it did."""
    if not evaluator.late():
        return doubts
    n = evaluator.effort.n_evaluations
    return "; ".join(
        [
            f"the {options.seconds:g} seconds were over after {n} values of the hyper-parameters",
            *([doubts] if doubts else []),
        ]
    )


def _at_best(model: Builder, evaluator: Evaluator, best: Point, options: InferOptions) -> IntegratedPosterior:
    """The posterior at the best value alone."""
    hypers = evaluator.hypers
    whole = single(best)
    pinned = values_of(hypers, best.u)
    remark = "hyper-parameters are at their best value, so that standard deviations are too small"
    integration = _integration(whole, [], pinned, evaluator, Error(0.0, 0.0, 0.0), (remark,))
    values = {k: np.asarray(v)[None] for k, v in pinned.items()}
    log_evidence = best.log_density - log_prior(hypers, best.u)
    doubts = _with_time(doubts_of(whole, integration, evaluator.failed), evaluator, options)
    return IntegratedPosterior(script_of(model), whole, values, integration, log_evidence, doubts)


def _integration(
    whole: Whole,
    chosen: Sequence[Hyper],
    pinned: dict[str, np.ndarray],
    evaluator: Evaluator,
    error: Error,
    remarks: tuple[str, ...],
) -> Integration:
    u = np.array([p.u for p in whole.points])
    return Integration(
        names=tuple(h.name for h in chosen),
        fixed=pinned,
        points=values_of(chosen, u),
        u=u,
        log_density=np.array([p.log_density for p in whole.points]),
        weights=whole.weights @ whole.spread,
        error=error,
        n_modes=len(whole.regions),
        remarks=remarks,
        **evaluator.effort._asdict(),
    )


def _warn(whole: Whole, doubts: Sequence[str], options: InferOptions) -> None:
    """Warn of everything that a user should know before trusting the posterior."""
    for doubt in filter(None, doubts):
        warnings.warn(doubt, AccuracyWarning, stacklevel=5)
    best = max(whole.points, key=lambda p: p.log_density)
    if best.posterior is not None and best.graph is not None and best.posterior.converged:
        curved = () if best.bent is None or (not isinstance(options.correct, str) and options.correct) else best.bent()
        warn_of_doubts(best.graph, best.posterior, options.tolerance, curved)
