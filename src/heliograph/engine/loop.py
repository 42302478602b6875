"""The loop, as a generator: sweep, measure, damp, stop. Printing, plotting and checkpointing are a `for` over it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from heliograph.engine.contradictions import check_possible
from heliograph.engine.convergence import drifting, motion, still_to_go
from heliograph.engine.pace import Pace
from heliograph.engine.posterior import Posterior
from heliograph.engine.schedule import Schedule, plan, strands
from heliograph.engine.sending import Counts, Sender, clock
from heliograph.engine.settings_check import check_progress, check_settings
from heliograph.engine.status import say, status
from heliograph.engine.stopping import StopRule, after, changed_less_than
from heliograph.engine.tables import Tables, copied
from heliograph.engine.trace import SweepInfo, Trace
from heliograph.factors.black_box import RunOptions
from heliograph.families import Family
from heliograph.graph.builder import Builder
from heliograph.graph.check import check_graph
from heliograph.graph.records import Graph
from heliograph.graph.shared import shared_by_factor
from heliograph.numerics.blas_threads import one_blas_thread

__all__ = ["Step", "infer", "steps"]

_SETTLED = 1e-3  # of the tolerated posterior error, that beliefs may move in the last sweep
_AT_REST = 5  # sweeps at rest in which messages could still not be computed: they never will be
_HIDDEN = 6  # sweeps without progress whose changes fresh draws explain, after which going on would show nothing


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
    rule = stop if stop is not None else changed_less_than(tolerance * _SETTLED) | after(max_sweeps)
    run = _Run(graph, plan(graph), rng, schedule, damping, power, improper, rule, tolerance)
    run.sender.conduct = RunOptions(
        rng=rng,
        operator=operator,
        oracle=oracle,
        tolerance=tolerance,
        executor=executor,
        n_factors=_n_learned(graph, run.schedule),
        shared=shared_by_factor(graph),
    )
    return run


def infer(model: Builder, *, progress: bool | None = None, **settings: Any) -> Posterior:
    """Run `steps` to their end and return the last posterior, with progress on a terminal.

    Warns when the run is not converged, when messages could not be computed, when variables are factorised in a loop,
    and when learned messages may have added more than `tolerance` to the error.
    """
    from heliograph.engine.progress import shown

    check_progress(progress)
    with one_blas_thread():  # for the whole run: to enter it costs as much as a message of 300 rows
        run = _start(model, **settings)
        info, converged = deque(shown(run.go(), run.trace, progress), maxlen=1).pop()
        check_possible(run.graph, run.tables)
        posterior = run.step(info, converged).posterior
    say(run.graph, posterior, run.tolerance)
    return posterior


def _n_learned(graph: Graph, schedule: Schedule) -> int:
    """How many messages of black boxes a sweep sends, all directions counted."""
    tasks = (*schedule.once, *schedule.sweep) or schedule.final
    return sum(graph.plates[t.plate].size for t in tasks if graph.plates[t.plate].factor.learns)


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
        tolerance: float,
    ) -> None:
        self.graph = graph
        self.schedule = schedule
        self.rng = rng
        self.sequential = order == "sequential"
        self.strands = strands(graph, schedule.sweep) if self.sequential else ()
        self.pace = Pace(damping)
        self.rule = rule
        self.limit = tolerance * _SETTLED if rule.limit is None else rule.limit
        self.tolerance = tolerance
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
        """Yield the record of every sweep, and whether the beliefs have settled when it is the last."""
        start = clock()
        for task in self.schedule.once:
            self.sender.send(task, 0.0)
        self._break_symmetry()
        if not self.schedule.sweep:
            self.trace.single_pass = info = self._info(1, 0.0, 0.0, "", False, start)
            yield info, info.settled(self.limit)
            return
        if self.sequential:
            self.tables.own()
        older, before = None, self._beliefs()
        sweep, at_rest, pace = 0, 0, self.pace
        while True:
            sweep += 1
            if sweep > 1:
                start = clock()
            kept = self.tables.snapshot(copy=self.sequential)
            self.sender.sweep, self.sender.replies = sweep, {}
            with one_blas_thread():  # entered once here, it costs nothing in every message
                self._sweep(sweep)
            beliefs = self._beliefs()
            moved = motion(self.watched, beliefs, before)
            change, to_go = pace.undamped(moved.change), np.inf
            broken = moved.broken and pace.adaptive
            if broken:
                self.tables.restore(kept, copy=self.sequential)
            elif older is not None and change <= max(self.limit, 4.0 * self.sender.counts.noise):
                to_go = self._to_go(beliefs, before, older)
                if pace.damping:  # seen to be at rest with damping: would it be without?
                    change = max(change, self._undamped_change(beliefs))
            info = self._info(sweep, change, to_go, moved.moving, broken, start)
            self.trace.sweeps.append(info)
            if broken:
                stuck = pace.exhausted
                pace.failed()
            else:
                pace.note(change, lambda a=beliefs, b=before, c=older: c is not None and drifting(a, b, c))
                older, before, stuck = before, beliefs, False
            at_rest = at_rest + 1 if info.n_unsent and change <= self.limit else 0
            stuck |= self.rule.limit is not None and at_rest >= _AT_REST
            if stuck or (self.rule(info) and not (broken and np.isfinite(change))):
                yield info, info.settled(self.limit)
                return
            yield info, False

    def _to_go(self, new: list[Family], old: list[Family], older: list[Family]) -> float:
        """How far the beliefs may still move; where fresh draws move them for ever, how far they moved in two sweeps."""
        if self.sender.counts.noise:
            return motion(self.watched, new, older).change
        return still_to_go(new, old, older)

    def _undamped_change(self, beliefs: list[Family]) -> float:
        """What one more sweep would change if nothing were damped; black boxes are taken at their word of this sweep."""
        tables = self.tables.view(copy=self.sequential)
        sender = Sender(self.graph, tables, self.sender.policy, self.sender.power, self.sender.conduct)
        with one_blas_thread():
            for task in self.schedule.sweep:
                plate = self.graph.plates[task.plate]
                if not plate.factor.learns:
                    sender.send(task, 0.0)
                    continue
                for rows, message in self.sender.replies.get(task, ()):
                    tables.store(plate, task.to, message, rows)
        return motion(self.watched, [tables.belief(node) for node in self.watched], beliefs).change

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
                self.sender.send(task, self.pace.damping)
            return
        forth = sweep % 2 == 1  # forth, then back: two sweeps are exact on a chain
        for strand in self.strands if forth else self.strands[::-1]:
            elements = range(strand.size) if forth else range(strand.size - 1, -1, -1)
            for i in elements:
                for task in strand.tasks:
                    self.sender.send(task, self.pace.damping, slice(i, i + 1))
        self.tables.refresh()

    def _beliefs(self) -> list[Family]:
        beliefs = [self.tables.belief(node) for node in self.watched]
        return [copied(b) for b in beliefs] if self.sequential else beliefs  # rows are changed in place

    def _info(self, sweep: int, change: float, to_go: float, moving: str, broken: bool, start: float) -> SweepInfo:
        if self.sender.conduct is not None:
            self.sender.conduct.error_estimate()  # closes the sweep: the estimate is of the latest messages only
        c = self.sender.counts
        self.sender.counts = Counts()
        self.trace.invocations.extend(c.invocations)
        info = SweepInfo(
            sweep, change, moving, self.pace.damping, broken, c.n_messages, c.n_improper, c.n_skipped, c.n_failed,
            c.n_asked, c.n_evaluations, c.noise, clock() - start, c.seconds_oracle, c.seconds_learning,
            c.seconds_prediction, to_go, len(self.sender.unsent), self.tolerance,
        )  # fmt: skip
        if c.noise and self.pace.stalled >= _HIDDEN and change <= info.noise_floor:
            info = info._replace(hidden=not info.settled(self.limit))
        return info

    def step(self, info: SweepInfo, converged: bool) -> Step:
        """A posterior with its own view of the messages; those that nothing in the loop reads are sent when it is read."""
        tables = self.tables.view(copy=self.sequential)
        unsent = self.sender.unsent.copy()
        estimate = 0.0 if self.sender.conduct is None else self.sender.conduct.error_estimate()
        sender = Sender(self.graph, tables, self.sender.policy, self.sender.power, self.sender.conduct, unsent)

        def complete() -> None:
            for task in self.schedule.final:
                sender.send(task, 0.0)
            self.trace.late = sender.counts

        words = status(self.graph, info, converged, unsent, single_pass=not self.schedule.sweep)
        settings = self.sender.power, self.sender.conduct
        posterior = Posterior(
            self.graph,
            tables,
            self.trace,
            converged,
            estimate,
            complete,
            self.late,
            *settings,
            status=words,
            unsent=unsent,
        )
        return Step(posterior, info)
