"""One run: sweep, measure, damp, undo sweeps that diverged, and decide after every sweep whether it was the last."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from time import perf_counter

import numpy as np

from heliograph.engine.acceleration import Jumps
from heliograph.engine.array_start import Early
from heliograph.engine.breaking_ties import break_ties
from heliograph.engine.compiled import CompiledModel
from heliograph.engine.convergence import Motion, drifting, motion, still_to_go
from heliograph.engine.evidence import log_evidence
from heliograph.engine.for_boxes import for_boxes
from heliograph.engine.heading import Heading
from heliograph.engine.merging import copied
from heliograph.engine.options import StepOptions
from heliograph.engine.pace import Pace, Retreat
from heliograph.engine.plates import Counts, Exchange
from heliograph.engine.posterior import Posterior
from heliograph.engine.properness import allowed_step
from heliograph.engine.schedule import tied_plates, visits_of
from heliograph.engine.starting import start as start_messages
from heliograph.engine.status import judged_by_audits, status
from heliograph.engine.stopping import InVain
from heliograph.engine.sweep_info import AHEAD, SweepInfo
from heliograph.engine.tables import Snapshot, Tables
from heliograph.engine.trace import Trace
from heliograph.families import Family
from heliograph.numerics.blas_threads import one_blas_thread

__all__ = ["Run"]

_AT_REST = 5  # sweeps without change in which some messages could not be computed: they never will be
_VISITS = 50  # groups of elements, at the least, after each of which blocks are solved in the sequential schedule
_VISITS_COST = 1e9  # operations that may be spent on them in a sweep before elements are visited in groups
_HIDDEN = 6  # sweeps without progress whose changes fresh draws explain, after which more sweeps would show nothing


class Run:
    """The state of one run of the loop: `sweeps` goes through it, `posterior` reads it at any time."""

    def __init__(
        self, compiled: CompiledModel, options: StepOptions, warm: Snapshot | None = None, compared: bool = False
    ) -> None:
        """`warm` holds messages to begin with, of a run of the same structure.

        `compared` says that the evidence will be compared with that of runs at other numbers next to these.
        """
        self.compiled = compiled
        self.options = options
        self.trace = Trace()
        self.tables = Tables(compiled.graph)
        self._warm = warm is not None
        if warm is not None:
            self.tables.restore(warm, copy=True)
        self._rng = options.generator()
        self._exchange = Exchange(
            self.tables, options.improper, options.power, for_boxes(options, compiled, self._rng, compared)
        )
        self._sequential = options.schedule == "sequential"
        self._tied = tied_plates(compiled.graph, compiled.schedule.sweep) if self._sequential else ()
        self._pace = Pace(options.damping)
        # fresh draws are no moves that could be extrapolated, and single elements are changed in place
        jumps = options.damping is None and not self._sequential and not compiled.learning_plates
        self._jumps = Jumps(jumps)
        self._heading = Heading()
        self._retreat = Retreat()
        self._in_vain = InVain(options.operator == "ask")
        self._rule = options.rule
        self._limit = options.settled if self._rule.limit is None else self._rule.limit
        self._watched = compiled.watched()
        joint = {k for kind in compiled.blocks for k in kind.factor.block.nodes}
        cost = sum(kind.factor.cost for kind in compiled.blocks)
        self._most_visits = max(_VISITS, int(_VISITS_COST / max(cost, 1.0)))
        self._jointly = [n.position in joint for n in self._watched]
        self._before: list[Family] = []  # beliefs after the last sweep that was not undone
        self._older: list[Family] | None = None  # and after the one before it
        self._last: Motion | None = None  # between these two
        self._judged: list[Family] = []  # and after the last one by which the step was judged
        self._clock = 0.0  # when the sweep began
        self._enough = False  # the stopping rule held after a sweep of the start
        self._at_rest = 0  # sweeps in a row that moved nothing and could not send everything

    # ---- the loop -----------------------------------------------------------------------------------------------
    def sweeps(self, every: bool = False) -> Iterator[tuple[SweepInfo, bool]]:
        """Yield the record of a sweep, and whether the beliefs have settled when it is the last.

        The first sweeps may be made on arrays by the start: these are counted and traced, and not yielded. With `every` there
        are none.
        """
        start = self._clock = perf_counter()
        for task in self.compiled.schedule.once:
            self.compiled.send(self._exchange, task)
        for plate in self.compiled.plates:
            plate.start(self._rng, self.tables)
        if not self._warm:
            break_ties(self._rng, self.compiled, self._exchange)
        if not self.compiled.schedule.sweep:
            self.trace.single_pass = info = self._info(1, Motion(0.0, "", False), 0.0, 0.0, start)
            yield info, info.settled(self._limit)
            return
        if self._sequential:
            self.tables.own()
        if not self._warm:
            plain = self._pace.adaptive and not self._sequential and self._exchange.policy == "auto" and not every
            start_messages(self.compiled, self._exchange, Early(self._limit, self._note_early) if plain else None)
        self._before = self._judged = self._beliefs()
        self._heading.note(self._before)
        if self._enough:
            yield self.trace.sweeps[-1], False
            return
        for sweep in count(1 + len(self.trace.sweeps)):
            info, last = self._sweep(sweep, self._clock)
            yield info, last and info.settled(self._limit)
            if last:
                return
            self._clock = perf_counter()

    def _note_early(self, before: list[Family], after: list[Family], moved: Motion) -> bool:
        """Count a sweep that the start made on arrays; return whether the run is to end with it."""
        self._older, self._last = before, moved
        self._heading.note(before)
        self._exchange.counts.n_messages = sum(self.tables.sent[task].size for task in self.compiled.schedule.sweep)
        info = self._info(1 + len(self.trace.sweeps), moved, moved.change, np.inf, self._clock)
        self._jumps.note(before, after, self.tables, self._pace.step, info, moved.nats)
        self.trace.sweeps.append(info)
        self._clock = perf_counter()
        self._enough = self._rule(info)
        return self._enough

    def _sweep(self, sweep: int, start: float) -> tuple[SweepInfo, bool]:
        """Send every message of the loop once, undo it if a belief broke, and decide whether to stop."""
        pace = self._pace
        kept = self.tables.snapshot(copy=self._sequential)
        jumped = self._jump()
        self._exchange.sweep, self._exchange.replies, self._exchange.began = sweep, {}, {}
        with one_blas_thread():  # entered once here, it costs nothing in every message
            self._send(sweep)
        beliefs = self._beliefs()
        moved = motion(self._watched, beliefs, self._before)
        moved = moved._replace(broken=moved.broken and pace.adaptive)
        change, to_go = pace.undamped(moved.change), np.inf
        missed = jumped and self._jumps.missed(change, moved.broken)
        if missed or moved.broken:
            self.tables.restore(kept, copy=self._sequential)
            moved = moved._replace(broken=True)
        elif self._older is not None and change <= max(self._limit, 4.0 * self._exchange.counts.noise):
            to_go = self._to_go(beliefs, self._before, self._older, moved)
            if pace.damping:  # the beliefs have settled with damping; would they without?
                change = max(change, self._undamped_change(beliefs))
        info = self._info(sweep, moved, change, to_go, start)
        self.trace.sweeps.append(info)
        if missed:
            self._before = self._beliefs()
            self._heading.restart(self._before)
        elif moved.broken:
            self._undo()
        else:
            self._retreat.note(kept, self._before, pace.step, change)
            self._jumps.note(self._before, beliefs, self.tables, pace.step, info, moved.nats)
            if not jumped and pace.note(change, lambda n: drifting(beliefs, self._before, self._judged, n)):
                self._judged = beliefs
            self._older, self._before, self._last = self._before, beliefs, moved
            self._heading.note(beliefs)
        return info, self._is_last(info)

    def _undo(self) -> None:
        """Shorten the step after a sweep that broke a belief, and go back further if the state before it was already far out."""
        rest = self._retreat.back() if self._pace.adaptive else None
        if rest is None:
            self._pace.failed()
            return
        self._pace.back_to(rest.step)
        self.tables.restore(rest.sent, copy=self._sequential)
        self._before, self._older, self._judged = rest.beliefs, None, rest.beliefs
        self._heading.restart(rest.beliefs)

    def _jump(self) -> bool:
        """Go to the state that the last sweeps are heading for, if it is time and every belief is a distribution there."""
        there = self._jumps.suggested(self._limit)
        if there is None:
            return False
        kept = self.tables.snapshot(copy=False)
        self.tables.restore(there, copy=False)
        for task in self.compiled.joint_tasks:
            self.compiled.send(self._exchange, task)
        beliefs = self._beliefs()
        lost = any(allowed_step(b, b, a) is not None for a, b in zip(beliefs, self._before, strict=True))
        if lost or not np.isfinite(motion(self._watched, beliefs, self._before).change):
            self.tables.restore(kept, copy=False)
            self._jumps.forget()
            return False
        self._before, self._older, self._judged = beliefs, None, beliefs
        self._heading.restart(beliefs)
        return True

    def _is_last(self, info: SweepInfo) -> bool:
        """Return whether to stop: by the rule, or because no further sweep could change anything."""
        self._at_rest = self._at_rest + 1 if info.n_unsent and info.change <= self._limit else 0
        stuck = self._rule.limit is not None and self._at_rest >= _AT_REST
        return stuck or (self._rule(info) and not (info.rolled_back and np.isfinite(info.change)))

    def _send(self, sweep: int) -> None:
        damping, compiled, exchange = self._pace.damping, self.compiled, self._exchange
        if not self._sequential:
            for task in compiled.schedule.sweep:
                compiled.send(exchange, task, damping)
            return
        forwards = sweep % 2 == 1  # forwards, then backwards: two sweeps are exact on a chain
        blocks = compiled.joint_tasks
        for group in self._tied if forwards else self._tied[::-1]:
            visits = visits_of(group.size, self._most_visits)
            for rows in visits if forwards else visits[::-1]:
                for task in group.tasks:
                    compiled.send(exchange, task, damping, rows)
                for task in blocks:
                    compiled.send(exchange, task)
        self.tables.refresh()

    # ---- measuring ----------------------------------------------------------------------------------------------
    def _beliefs(self) -> list[Family]:
        beliefs = [self.tables.belief(node) for node in self._watched]
        return [copied(b) for b in beliefs] if self._sequential else beliefs  # rows are changed in place

    def _to_go(self, new: list[Family], old: list[Family], older: list[Family], moved: Motion) -> float:
        """Nats that the beliefs may still move; where fresh draws never stop moving them, those of the last two sweeps."""
        if self._exchange.counts.noise:
            return motion(self._watched, new, older).change
        assert self._last is not None
        near = still_to_go(new, old, older, self._jointly, (moved.nats, self._last.nats))
        return near if near > AHEAD * self._limit else max(near, self._heading.ahead(new))

    def _undamped_change(self, beliefs: list[Family]) -> float:
        """The change of one more sweep without damping; black boxes repeat their messages of this sweep."""
        tables = self.tables.view(copy=self._sequential)
        exchange = self._exchange.over(tables)
        with one_blas_thread():
            for task in self.compiled.schedule.sweep:
                self.compiled.plates[task.plate].repeat(exchange, task, self._exchange)
        return motion(self._watched, [tables.belief(node) for node in self._watched], beliefs).change

    def _info(self, sweep: int, moved: Motion, change: float, to_go: float, start: float) -> SweepInfo:
        self._exchange.learning.error_estimate()  # closes the sweep: the estimate is of the latest messages only
        c, self._exchange.counts = self._exchange.counts, Counts()
        self.trace.invocations.extend(c.invocations)
        info = SweepInfo(
            sweep, change, moved.moving, self._pace.damping, moved.broken, c.n_messages, c.n_improper, c.n_skipped,
            c.n_failed, c.n_asked, c.n_evaluations, c.noise, perf_counter() - start, c.seconds_oracle, c.seconds_learning,
            c.seconds_prediction, to_go, len(self._exchange.unsent), self.options.tolerance,
            n_shortened=c.n_shortened, in_vain=self._in_vain.note(change, c.n_asked),
        )  # fmt: skip
        if c.noise and self._pace.stalled >= _HIDDEN and change <= info.noise_floor:
            info = info._replace(hidden=not info.settled(self._limit))
        return info

    # ---- reading ------------------------------------------------------------------------------------------------
    def log_evidence(self) -> float:
        """The log evidence at the messages as they stand."""
        return log_evidence(self.compiled.graph, self.compiled.plates, self._exchange)

    def posterior(self, info: SweepInfo, converged: bool, audited: bool = False) -> Posterior:
        """The beliefs after a sweep, over a view of the messages that later sweeps leave alone.

        Messages that were predicted without a stated error are checked, if that is wanted; unchecked, nothing is converged.
        """
        unsent = self._exchange.unsent.copy()
        exchange = self._exchange.over(self.tables.view(copy=self._sequential), unsent)
        single_pass = not self.compiled.schedule.sweep
        words = status(self.compiled.graph, info, converged, unsent, single_pass=single_pass)
        estimate = self._exchange.learning.error_estimate()
        if converged and np.isnan(estimate):
            audits = self._exchange.learning.audits() if audited else []
            estimate = self._exchange.learning.error_estimate()
            converged, words = judged_by_audits(audits, estimate, self.options.tolerance)
        return Posterior(self.compiled, exchange, self.trace, converged, words, estimate)
