"""The loop, as a generator: sweep, measure, damp, stop. Printing, plotting and checkpointing are a `for` over it."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from heliograph.engine.posterior import Posterior
from heliograph.engine.schedule import Schedule, plan, strands
from heliograph.engine.sending import Counts, Sender, clock
from heliograph.engine.settings_check import check_progress, check_settings
from heliograph.engine.stopping import StopRule, after, changed_less_than
from heliograph.engine.tables import Tables, copied
from heliograph.engine.trace import SweepInfo, Trace
from heliograph.errors import ConvergenceWarning, OracleWarning
from heliograph.factors.black_box import Conduct
from heliograph.families import Family
from heliograph.graph.builder import Builder
from heliograph.graph.check import check_graph
from heliograph.graph.records import Graph
from heliograph.kernels.blas import one_blas_thread

__all__ = ["Step", "infer", "steps"]

_MOST_DAMPING = 0.97  # beyond this a sweep moves nothing worth waiting for
_PATIENCE = 12  # sweeps without a new smallest change before the damping is raised


class Step(NamedTuple):
    """The state after a sweep: the posterior so far, and the record of the sweep."""

    posterior: Posterior
    info: SweepInfo


def steps(
    model: Builder,
    *,
    operator: Any = "learned",
    oracle: Any = None,
    schedule: str = "parallel",
    damping: float | None = None,
    power: float = 1.0,
    improper: str = "auto",
    tolerance: float = 1e-3,
    max_sweeps: int = 200,
    stop: StopRule | None = None,
    seed: int | np.random.Generator = 0,
    executor: Any = None,
) -> Iterator[Step]:
    """Yield a `Step` after every sweep until the stopping rule holds.

    `tolerance` is the posterior error in nats that is tolerated: of learned messages, and (a thousandth of it) of the
    change in the last sweep. `damping` None adapts: none at first, more when a sweep diverges or stalls.

    >>> from heliograph.engine import Model
    >>> model = Model()
    >>> x = model.gaussian("x", 0.0, variance=1.0)
    >>> model.constrain(x > 1.0)
    >>> for posterior, info in steps(model):
    ...     pass
    >>> posterior[x]
    Gaussian(mean 1.5251, variance 0.1991)
    """
    run = _start(
        model, operator, oracle, schedule, damping, power, improper, tolerance, max_sweeps, stop, seed, executor
    )
    return (run.step(info, converged) for info, converged in run.go())


def _start(
    model: Builder,
    operator: Any = "learned",
    oracle: Any = None,
    schedule: str = "parallel",
    damping: float | None = None,
    power: float = 1.0,
    improper: str = "auto",
    tolerance: float = 1e-3,
    max_sweeps: int = 200,
    stop: StopRule | None = None,
    seed: int | np.random.Generator = 0,
    executor: Any = None,
) -> _Run:
    """A run that has been checked and not begun."""
    check_settings(operator, oracle, schedule, damping, power, improper, tolerance, max_sweeps, stop, seed, executor)
    graph = model.graph.snapshot()  # the run, and its posterior, are of the model as it is now
    check_graph(graph)
    rng = np.random.default_rng(seed) if not isinstance(seed, np.random.Generator) else seed
    rule = stop if stop is not None else changed_less_than(tolerance * 1e-3) | after(max_sweeps)
    run = _Run(graph, plan(graph), rng, schedule, damping, power, improper, rule)
    run.sender.conduct = Conduct(
        rng=rng, operator=operator, oracle=oracle, tolerance=tolerance, executor=executor, n_factors=_n_learned(graph)
    )
    return run


def infer(model: Builder, *, progress: bool | None = None, **settings: Any) -> Posterior:
    """Run `steps` to their end and return the last posterior, with progress on a terminal.

    Warns, and returns ``converged=False``, when the stopping rule ended the run before the beliefs settled.
    """
    from heliograph.engine.progress import shown

    check_progress(progress)
    with one_blas_thread():  # for the whole run: to enter it costs as much as a message of 300 rows
        run = _start(model, **settings)
        info, converged = deque(shown(run.go(), run.trace, progress), maxlen=1).pop()
        posterior = run.step(info, converged).posterior
    if not posterior.converged and settings.get("stop") is None and settings.get("tolerance", 1e-3) > 0:
        warnings.warn(
            f"not converged after {posterior.n_sweeps} sweeps: variable {info.moving!r} still moves by {info.change:.2g} nats "
            "a sweep; raise max_sweeps=, or set damping= between 0.5 and 0.9",
            ConvergenceWarning,
            stacklevel=3,
        )
    failed = int(posterior.trace.total("n_failed"))
    if failed:
        warnings.warn(
            f"the oracle could not answer {failed} messages (no weight, or too heavy tails); the old ones were kept",
            OracleWarning,
            stacklevel=3,
        )
    return posterior


def _n_learned(graph: Graph) -> int:
    return sum(plate.size for plate in graph.plates if plate.factor.learns)


class _Run:
    """The state of one run of the loop."""

    def __init__(
        self,
        graph: Graph,
        schedule: Schedule,
        rng: np.random.Generator,
        order: str,
        damping: float | None,
        power: float,
        improper: str,
        rule: StopRule,
    ) -> None:
        self.graph = graph
        self.schedule = schedule
        self.rng = rng
        self.sequential = order == "sequential"
        self.strands = strands(graph, schedule.sweep) if self.sequential else ()
        self.adaptive = damping is None
        self.damping = damping or 0.0
        self.rule = rule
        self.tables = Tables(graph)
        self.sender = Sender(graph, self.tables, improper, power, None)
        self.trace = Trace()
        looped = {(t.plate, t.to) for t in (*schedule.once, *schedule.sweep)}
        every = {(p.position, port) for p in graph.plates for port in p.edges}
        late = self.late = frozenset(graph.plates[p].edges[port].node for p, port in every - looped)
        self.watched = [n for n in graph.nodes if n.given and not n.fully_observed and n.position not in late]
        if not self.watched:
            self.watched = [n for n in graph.nodes if not n.fully_observed and n.position not in late]

    def go(self) -> Iterator[tuple[SweepInfo, bool]]:
        """Yield the record of every sweep, and whether it was the last because the beliefs have settled."""
        start = clock()
        for task in self.schedule.once:
            self.sender.send(task, 0.0)
        self._break_symmetry()
        if not self.schedule.sweep:
            self.trace.single_pass = info = self._info(1, 0.0, "", False, start)
            yield info, True
            return
        if self.sequential:
            self.tables.own()
        before = self._beliefs()
        sweep, best, stalled = 0, np.inf, 0
        while True:
            sweep += 1
            if sweep > 1:
                start = clock()
            kept = self.tables.snapshot(copy=self.sequential)
            self.sender.sweep = sweep
            with one_blas_thread():  # entered once here, it costs nothing in every message
                self._sweep(sweep)
            beliefs = self._beliefs()
            change, moving, broken = self._change(beliefs, before)
            if broken:
                self.tables.restore(kept, copy=self.sequential)
                self._damp_more()
                beliefs = before
            elif change < 0.95 * best:
                best, stalled = change, 0
            else:
                stalled += 1
                if stalled >= _PATIENCE:
                    self._damp_more()
                    best, stalled = change, 0
            before = beliefs
            info = self._info(sweep, change, moving, broken, start)
            self.trace.sweeps.append(info)
            done = self.rule(info) and not (broken and np.isfinite(change))
            if done or (broken and self.damping >= _MOST_DAMPING):
                yield info, self.rule.converged(info) and not broken
                return
            yield info, False

    def _break_symmetry(self) -> None:
        """Messages start uniform, but where a factor needs chance to tell its components apart."""
        for plate in self.graph.plates:
            initial = getattr(plate.factor, "initial", None)
            if initial is None:
                continue
            incoming = dict(plate.data)
            incoming.update({port: self.tables.incoming(plate, port, None) for port in plate.edges})
            for port, message in initial(self.rng, incoming).items():
                if port in plate.edges and not self.graph.nodes[plate.edges[port].node].fully_observed:
                    self.tables.store(plate, port, message, None)

    def _sweep(self, sweep: int) -> None:
        if not self.sequential:
            for task in self.schedule.sweep:
                self.sender.send(task, self.damping)
            return
        forth = sweep % 2 == 1  # forth, then back: two sweeps are exact on a chain
        for strand in self.strands if forth else self.strands[::-1]:
            elements = range(strand.size) if forth else range(strand.size - 1, -1, -1)
            for i in elements:
                for task in strand.tasks:
                    self.sender.send(task, self.damping, slice(i, i + 1))
        self.tables.refresh()

    def _beliefs(self) -> list[Family]:
        beliefs = [self.tables.belief(node) for node in self.watched]
        return [copied(b) for b in beliefs] if self.sequential else beliefs  # rows are changed in place

    def _change(self, new: list[Family], old: list[Family]) -> tuple[float, str, bool]:
        """The largest KL between successive beliefs, whose it is, and whether the sweep went wrong."""
        change, moving, broken = 0.0, "", False
        for node, a, b in zip(self.watched, new, old, strict=True):
            if a is b:
                continue
            proper = a.proper
            if not proper.all():
                broken |= bool((b.proper & ~proper).any())
                change, moving = np.inf, node.name
                continue
            largest = float(np.max(a.kl(b), initial=0.0))  # type: ignore[attr-defined]
            if np.isnan(largest):
                broken, largest = True, np.inf
            if largest > change or not moving:
                change, moving = max(largest, change), node.name
        return change, moving, broken and self.adaptive

    def _damp_more(self) -> None:
        if self.adaptive:
            self.damping = min(max(0.5, 1 - (1 - self.damping) / 2), _MOST_DAMPING)

    def _info(self, sweep: int, change: float, moving: str, broken: bool, start: float) -> SweepInfo:
        if self.sender.conduct is not None:
            self.sender.conduct.error_estimate()  # closes the sweep: the estimate is of the latest messages only
        c = self.sender.counts
        self.sender.counts = Counts()
        self.trace.invocations.extend(c.invocations)
        return SweepInfo(
            sweep, change, moving, self.damping, broken, c.n_messages, c.n_improper, c.n_skipped, c.n_failed, c.n_asked,
            c.n_evaluations, c.noise, clock() - start, c.seconds_oracle, c.seconds_learning, c.seconds_prediction,
        )  # fmt: skip

    def step(self, info: SweepInfo, converged: bool) -> Step:
        """A posterior with its own view of the messages; those that nothing in the loop reads are sent when it is read."""
        tables = self.tables.view(copy=self.sequential)
        estimate = 0.0 if self.sender.conduct is None else self.sender.conduct.error_estimate()
        sender = Sender(self.graph, tables, self.sender.policy, self.sender.power, self.sender.conduct)

        def complete() -> None:
            for task in self.schedule.final:
                sender.send(task, 0.0)
            self.trace.late = sender.counts

        settings = self.sender.power, self.sender.conduct
        posterior = Posterior(self.graph, tables, self.trace, converged, estimate, complete, self.late, *settings)
        return Step(posterior, info)
