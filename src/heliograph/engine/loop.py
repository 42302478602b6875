"""The loop, as a generator over sweeps. Printing, plotting and checkpointing are a `for` loop over it."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from heliograph.engine.compiled import compile_model
from heliograph.engine.contradictions import check_possible
from heliograph.engine.doubts import warn_of_doubts
from heliograph.engine.gated.inference import infer_gated
from heliograph.engine.gated.posterior import GatedPosterior
from heliograph.engine.nested.inference import asks_for_more, infer_integrated
from heliograph.engine.nested.posterior import IntegratedPosterior
from heliograph.engine.options import InferOptions, StepOptions, with_options
from heliograph.engine.options_check import check_options
from heliograph.engine.overlap import overlapping
from heliograph.engine.posterior import Posterior
from heliograph.engine.predicting.script import script_of
from heliograph.engine.run import Run
from heliograph.engine.starting import warm_messages
from heliograph.engine.sweep_info import SweepInfo
from heliograph.engine.trace import Trace
from heliograph.engine.weighed import FinishedRun, bent_beliefs
from heliograph.errors import ModelError
from heliograph.graph.builder import Builder
from heliograph.graph.check import check_graph
from heliograph.graph.gates import has_gates
from heliograph.graph.replay import Replay
from heliograph.numerics.blas_threads import one_blas_thread

__all__ = ["Step", "infer", "run_to_the_end", "shown", "steps"]


class Step(NamedTuple):
    """The state after a sweep: the posterior so far, and the record of the sweep."""

    posterior: Posterior
    info: SweepInfo


@with_options(StepOptions)
def steps(model: Builder, options: StepOptions) -> Iterator[Step]:
    """Yield a `Step` after every sweep until the stopping rule holds; `StepOptions` lists the settings.

    >>> from heliograph.engine import Model
    >>> model = Model()
    >>> x = model.gaussian("x", 0.0, variance=1.0)
    >>> model.constrain(x > 1.0)
    >>> for posterior, info in steps(model):
    ...     pass
    >>> posterior[x]
    Gaussian(mean 1.5251, variance 0.1991)
    """
    if model.draft.hypers:
        names = ", ".join(repr(h.name) for h in model.draft.hypers)
        raise ModelError(
            f"steps shows one run, and this model has hyper-parameters ({names}) to be integrated over: use infer"
        )
    if has_gates(model):
        raise ModelError("steps shows one run, and this model has gates, with a run for every branch: use infer")
    run = _checked_run(model, options)
    return (Step(run.posterior(info, converged), info) for info, converged in run.sweeps(every=True))


@with_options(InferOptions)
def infer(model: Builder, options: InferOptions) -> Posterior | IntegratedPosterior | GatedPosterior:
    """Run `steps` to the end and return the last posterior, with progress on a terminal.

    It warns when the run has not converged, when messages could not be computed, when variables are factorised in a
    loop, and when learned messages may have added more than `tolerance` to the error. `InferOptions` lists the
    settings.
    """
    return run_to_the_end(model, options)


def run_to_the_end(model: Builder, options: InferOptions) -> Posterior | IntegratedPosterior | GatedPosterior:
    """`infer` with its settings in a record."""
    if has_gates(model):
        check_options(options)
        return infer_gated(model, options, _one_run)
    if model.draft.hypers or asks_for_more(options.integrate):
        check_options(options)
        if options.start is not None:
            raise ModelError(
                "start= is for one run; integrating over hyper-parameters starts each run from its neighbour"
            )
        with one_blas_thread():
            return infer_integrated(model, options)
    return _one_run(model, options)


def _one_run(model: Builder | Replay, options: InferOptions) -> Posterior:
    """One run of EP, until its stopping rule holds, with its warnings."""
    with one_blas_thread():  # entered once for the whole run, because entering costs as much as a message of 300 rows
        run = _checked_run(model, options)
        info, converged = deque(shown(run.sweeps(), run.trace, options.progress), maxlen=1).pop()
        check_possible(run.compiled.graph, run.compiled.plates, run.tables)
        posterior = run.posterior(info, converged, options.audit)
        asked = run.trace.n_asked > 0  # functions that were known before are not evaluated again
        finished = FinishedRun(run.compiled, run.tables, posterior.messages, lambda: posterior.log_evidence)
        curved = bent_beliefs(finished, asked) if converged else ()
        overlaps = overlapping(run.compiled.graph, run.tables)
    warn_of_doubts(run.compiled.graph, posterior, options.tolerance, curved, overlaps)
    return posterior


def _checked_run(model: Builder | Replay, options: StepOptions) -> Run:
    """Make a run whose settings have been checked; it has not begun."""
    check_options(options)
    graph = model.graph.snapshot()  # the run, and its posterior, are of the model as it is now
    if not isinstance(model, Replay):  # a branch was not written by calls of its own
        graph.script = script_of(model)
    check_graph(graph)
    compiled = compile_model(graph, options.structure, options.budget)
    if options.start is None:
        return Run(compiled, options)
    if {n.name for n in graph.nodes if n.given}.isdisjoint(n.name for n in options.start.graph.nodes):
        raise ModelError("start must be a posterior of an earlier run of this model, and it has none of its variables")
    run = Run(compiled, options, warm_messages(compiled.graph, options.start.graph, options.start.messages()))
    if any(block.joint(run.tables) is None for block in compiled.blocks):
        return Run(compiled, options)  # with the new data, the old messages leave no proper beliefs to begin with
    return run


def shown(
    run: Iterator[tuple[SweepInfo, bool]], trace: Trace, progress: bool | None
) -> Iterator[tuple[SweepInfo, bool]]:
    """The same sweeps, with a line on the terminal that says what is being done (None: only if there is a terminal)."""
    if progress is None:
        progress = sys.stderr.isatty()
    if not progress:
        yield from run
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("first messages", total=None)
        for info, converged in run:
            asked = f", asked {trace.n_asked}" if trace.n_asked else ""
            damped = f", damping {info.damping:.2g}" if info.damping else ""
            what = f"sweep {info.sweep}: {info.moving} moved {info.change:.1e} nats{asked}{damped}"
            bar.update(task, description=what)
            yield info, converged
