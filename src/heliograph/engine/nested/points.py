"""The model at given values of its hyper-parameters: EP run to its end there, and the gradient of the evidence without a sweep."""

from __future__ import annotations

import time
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from threading import Lock
from typing import NamedTuple

import numpy as np

from heliograph.engine.compiled import compile_model, with_joint_parts
from heliograph.engine.curved import Curved
from heliograph.engine.nested.correcting import Corrected, corrected_log_evidence
from heliograph.engine.nested.frozen import Frozen
from heliograph.engine.nested.sizes import Sizes
from heliograph.engine.nested.starting import carried_on, shares_at
from heliograph.engine.options import InferOptions
from heliograph.engine.posterior import Posterior
from heliograph.engine.run import Run
from heliograph.engine.stopping import after, changed_less_than
from heliograph.engine.tables import Snapshot
from heliograph.engine.weighed import FinishedRun, bent_beliefs
from heliograph.errors import HeliographError, ModelError
from heliograph.graph.builder import Builder
from heliograph.graph.check import check_graph
from heliograph.graph.hyper import Hyper, HyperPrior
from heliograph.graph.records import Graph
from heliograph.graph.replay import Replay
from heliograph.graph.symbols import Values
from heliograph.numerics.remembering import Memory, remembering

__all__ = ["Effort", "Evaluator", "Point", "log_prior", "values_of"]

_STEP = 2e-3  # of a prior's width, for central differences at fixed messages
# times the change of a last sweep in a single run: the evidence is of second order in what is left of it
_LOOSER = 10.0
_BESIDE = 2  # times the points that determine a plane: so many of the nearest predict the messages
_SMALL_STEP = 1e-4  # and for differences to one side: the error is half of it times the curvature, per width


@dataclass(frozen=True, eq=False)
class Point:
    """What EP found at one value of the hyper-parameters."""

    u: np.ndarray  # (d,) on the unconstrained scale
    log_density: float  # log evidence + log prior of u; -inf where EP gave nothing
    gradient: np.ndarray  # (d,) of the log density; NaN where it was not wanted
    bend: np.ndarray | None = None  # (d,) second derivatives at fixed messages
    model: Replay | None = None
    posterior: Posterior | None = None
    graph: Graph | None = None  # of the run
    corrected: Callable[[bool], Corrected] | None = None  # the log evidence by importance sampling, by few draws if so
    bent: Callable[[], list[Curved]] | None = None  # the unknowns whose belief weighted draws do not confirm

    @property
    def good(self) -> bool:
        """Return whether EP gave an answer."""
        return bool(np.isfinite(self.log_density))


def _bent(run: Run, posterior: Posterior) -> Callable[[], list[Curved]]:
    return lambda: bent_beliefs(
        FinishedRun(run.compiled, run.tables, posterior.messages, lambda: posterior.log_evidence)
    )


def values_of(hypers: Sequence[Hyper], u: np.ndarray) -> dict[str, np.ndarray]:
    """The values of hyper-parameters by name; the last axis of u holds their unconstrained numbers one after the other."""
    found: dict[str, np.ndarray] = {}
    start = 0
    for h in hypers:
        found[h.name] = h.prior.value(u[..., start : start + h.prior.n])
        start += h.prior.n
    return found


def _either(prior: HyperPrior) -> bool:
    """Whether values may have either sign, each with a number of its own: one between 0 and 1 has no mirror image."""
    low, high = (prior.value(prior.centre + far * prior.width) for far in (-20.0, 20.0))
    return prior.signed and bool((low * high < 0).all())


def log_prior(hypers: Sequence[Hyper], u: np.ndarray) -> float:
    """The log density of the prior on the unconstrained scale."""
    total, start = 0.0, 0
    for h in hypers:
        total += float(h.prior.log_density(u[start : start + h.prior.n]))
        start += h.prior.n
    return total


class Effort(NamedTuple):
    """What evaluations have cost so far."""

    n_evaluations: int = 0  # EP run to its end
    n_failed: int = 0  # of these, without an answer
    n_sweeps: int = 0
    n_frozen: int = 0  # evidences at fixed messages


class Evaluator:
    """Runs EP at values of the hyper-parameters, each from the messages of the nearest value before."""

    def __init__(
        self,
        model: Builder,
        hypers: Sequence[Hyper],
        options: InferOptions,
        pinned: Values | None = None,
        centre: np.ndarray | None = None,
    ) -> None:
        """`pinned` holds values of further hyper-parameters; `centre` is where to begin, the middle of the prior by default."""
        self.hypers = tuple(hypers)
        self._pinned = dict(pinned or {})
        self.points: list[Point] = []
        self.failed: list[np.ndarray] = []  # where EP gave no answer
        self.effort = Effort()
        self._model = model
        pinned_variables = {h.name for h in model.draft.hypers if h.variable and h.name in self._pinned}
        self._fixed = frozenset({h.name for h in hypers if h.variable} | pinned_variables)
        seed = options.seed
        if isinstance(seed, np.random.Generator):  # one draw, so that every value meets the same randomness
            options = replace(options, seed=int(seed.integers(2**63)))
        self._end = np.inf if options.seconds is None else time.monotonic() + options.seconds
        if options.stop is None:
            stop = changed_less_than(_LOOSER * options.settled) | after(options.max_sweeps)
            options = replace(options, stop=stop)
        self._options = options
        self.width = np.concatenate([h.prior.width for h in hypers])
        self.centre = np.concatenate([h.prior.reference for h in hypers]) if centre is None else centre
        self.middle = np.concatenate([h.prior.centre for h in hypers])
        self.signed = np.concatenate([np.full(h.prior.n, h.prior.signed) for h in hypers])
        self.mirrored = np.concatenate([np.full(h.prior.n, _either(h.prior)) for h in hypers])
        self._structure: tuple[object, ...] | None = None  # of the model at the first value
        self._learns = False  # whether black boxes learn in a run
        self._writing = Lock()
        self._sizes = Sizes(self.hypers)
        self._memory: Memory = {}  # of patterns, which are the same at every value
        self.metric = np.diag(1.0 / self.width)  # in which nearness is measured

    def late(self) -> bool:
        """Return whether the time is over; no evaluation begins then."""
        return time.monotonic() >= self._end

    def at(self, u: np.ndarray, gradient: bool) -> Point:
        """Run EP at u."""
        return self.many([u], gradient)[0]

    def many(self, places: Sequence[np.ndarray], gradient: bool) -> list[Point]:
        """Run EP at several values, each from the nearest of those before all of them: in any order it gives the same.

        Threads of an executor run them side by side, unless black boxes learn from value to value.
        """
        before, executor = tuple(self.points), self._options.executor
        work = [(np.asarray(u, dtype=float), gradient, before) for u in places]
        with warnings.catch_warnings():
            if before:
                warnings.simplefilter("ignore")  # the first point has warned of it
            if isinstance(executor, ThreadPoolExecutor) and before and not self._learns and len(work) > 1:
                found = [f.result() for f in [executor.submit(self._evaluated, *w) for w in work]]
            else:
                found = [self._evaluated(*w) for w in work]
        for point in found:
            self._count(point, not before, gradient)
        return found

    def _count(self, point: Point, first: bool, gradient: bool) -> None:
        effort, d = self.effort, len(point.u)
        self.effort = effort._replace(
            n_evaluations=effort.n_evaluations + 1,
            n_failed=effort.n_failed + (not point.good),
            n_sweeps=effort.n_sweeps + (0 if point.posterior is None else point.posterior.n_sweeps),
            n_frozen=effort.n_frozen + (d * (1 + first) if gradient and point.good else 0),
        )
        self.points += [point] * point.good
        self.failed += [point.u] * (not point.good)

    def log_prior(self, u: np.ndarray) -> np.ndarray:
        """The log density of the prior at points ``(K, d)``."""
        starts = np.cumsum([0, *(h.prior.n for h in self.hypers)])
        parts = [h.prior.log_density(u[:, k : k + h.prior.n]) for h, k in zip(self.hypers, starts, strict=False)]
        return np.sum(parts, axis=0)

    def log_size(self, u: np.ndarray) -> np.ndarray:
        """``log`` of how much more than at the best value so far a point ``(..., d)`` counts in a mean, 0 or more."""
        return self._sizes.at(self.points, self.metric, u)

    def _evaluated(self, u: np.ndarray, gradient: bool, before: tuple[Point, ...]) -> Point:
        with remembering(self._memory):
            return self._point(u, gradient, before)

    def _point(self, u: np.ndarray, gradient: bool, before: tuple[Point, ...]) -> Point:
        nothing = Point(u, -np.inf, np.full(len(u), np.nan))
        first = not before
        try:
            model = self._replay(u)
            written = model.graph.snapshot()
            posterior, run = self._run(written, self._starts(u, before))
            log_evidence = posterior.log_evidence
        except (HeliographError, np.linalg.LinAlgError, FloatingPointError):
            if first:  # no value has worked yet: raise what is wrong
                raise
            return nothing
        if not np.isfinite(log_evidence):
            return nothing
        point = Point(u, log_evidence + log_prior(self.hypers, u), nothing.gradient, None, model, posterior)
        point = replace(point, graph=run.compiled.graph, corrected=self._corrected(run), bent=_bent(run, posterior))
        if not gradient:
            return point
        frozen = Frozen(written, run.compiled, posterior.messages(), self._options.power)
        derivatives = self._derivatives if first or not frozen.holds() else self._slope
        slope, bend = derivatives(u, frozen, point.log_density)
        return replace(point, gradient=slope, bend=bend)

    def _replay(self, u: np.ndarray) -> Replay:
        """The model at u; next to it where the structure is another there (a variable times 0 or 1 needs no factor)."""
        for nudge in (0.0, 1e-7, -1e-6):
            values = values_of(self.hypers, u + nudge * self.width)
            with self._writing:  # the user's variables stand for those of the replay while it is written
                model = Replay(self._model, {**self._pinned, **values}, self._fixed)
            found = tuple((n.name, n.shape) for n in model.graph.nodes), tuple(p.name for p in model.graph.plates)
            if self._structure in (None, found):
                self._structure = found
                return model
        raise ModelError(
            "the model has other variables or factors at some values of its hyper-parameters than at others; its structure "
            "must not depend on them"
        )

    def _run(self, graph: Graph, starts: Sequence[Snapshot]) -> tuple[Posterior, Run]:
        check_graph(graph)
        compiled = compile_model(graph, self._options.structure, self._options.budget)
        self._learns = bool(compiled.learning_plates)
        options = self._options
        if np.isfinite(self._end):  # the time that remains is for this run
            options = replace(options, seconds=max(self._end - time.monotonic(), 1e-3))
        for warm in starts:
            run = Run(compiled, options, warm, compared=True)
            if all(block.joint(run.tables) is not None for block in compiled.blocks):
                break
        else:  # there are no earlier messages, or none that this value can begin with
            run = Run(compiled, options, compared=True)
        info, converged = deque(run.sweeps(), maxlen=1).pop()
        return run.posterior(info, converged), run

    def _corrected(self, run: Run) -> Callable[[bool], Corrected]:
        seed = self._options.seed if isinstance(self._options.seed, int) else 0
        return lambda few: corrected_log_evidence(run.compiled, run.tables, seed, few)

    def _starts(self, u: np.ndarray, points: tuple[Point, ...]) -> list[Snapshot]:
        """Messages to begin with, the most promising first: carried on from several points, those of the nearest."""
        if not points:
            return []
        gaps = np.array([self.metric @ (p.u - u) for p in points])
        order = np.argsort((gaps**2).sum(axis=1), kind="stable")[: _BESIDE * (1 + len(u))]
        found = [p.posterior.messages() for p in (points[int(k)] for k in order) if p.posterior is not None]
        if self._learns or len(found) <= len(u):
            return found[:1]
        return [carried_on(found[0], found, shares_at(gaps[order])), found[0]]

    # ---- the gradient at fixed messages ---------------------------------------------------------------------
    def _derivatives(self, u: np.ndarray, frozen: Frozen, middle: float) -> tuple[np.ndarray, np.ndarray]:
        """Central differences of EP's log evidence at fixed messages: at a fixed point it does not change with them.

        The first are those of the whole evidence; the second leave out that the messages would follow, and are a first guess.
        """
        step = _STEP * self.width
        ends = np.array(
            [[self._frozen(u + sign * s, frozen, middle, u) for sign in (1.0, -1.0)] for s in np.diag(step)]
        )
        return (ends[:, 0] - ends[:, 1]) / (2.0 * step), (ends.sum(axis=1) - 2.0 * middle) / step**2

    def _slope(self, u: np.ndarray, frozen: Frozen, middle: float) -> tuple[np.ndarray, None]:
        """The same first derivatives by differences to one side, at half the cost."""
        step = _SMALL_STEP * self.width
        ends = np.array([self._frozen(u + s, frozen, middle, u, linear=True) for s in np.diag(step)])
        return (ends - middle) / step, None

    def _frozen(self, u: np.ndarray, frozen: Frozen, middle: float, beside: np.ndarray, linear: bool = False) -> float:
        """The log density at u, at the messages that were found beside it."""
        options = self._options
        graph = self._replay(u).graph.snapshot()
        if not frozen.holds(graph):
            return self._run(graph, [frozen.messages])[0].log_evidence + log_prior(self.hypers, u)
        change = frozen.change(graph, lambda g: with_joint_parts(g, options.structure, options.budget), linear)
        if change is not None:
            return middle + change + log_prior(self.hypers, u) - log_prior(self.hypers, beside)
        compiled = compile_model(graph, options.structure, options.budget)
        run = Run(compiled, options, frozen.messages, compared=True)
        return run.log_evidence() + log_prior(self.hypers, u)
