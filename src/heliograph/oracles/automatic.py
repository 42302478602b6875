"""The right oracle for each row: quadrature where the integral is small, importance sampling for the rest.

A deterministic function of one unknown number is integrated by quadrature: its labels are exact, and cost a quarter of
what sampling does. With two unknown numbers, or a table of categories beside one, the two are measured once on a few
rows of a factor and the cheaper one is kept. Noise, or more unknown numbers, leave importance sampling.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from heliograph.errors import ModelError
from heliograph.families import Family
from heliograph.oracles.answer import Answer, Oracle, gather, replace_rows, take_answer
from heliograph.oracles.axes import axis_of
from heliograph.oracles.importance.abc_oracle import AbcOracle
from heliograph.oracles.importance.importance_oracle import ImportanceOracle
from heliograph.oracles.problem import take_incoming
from heliograph.oracles.quadrature.quadrature_oracle import QuadratureOracle
from heliograph.oracles.sampler import Sampler

__all__ = ["AutomaticOracle", "Route", "make_oracle"]


_SHARPER = 0.01  # of the required precision: the errors of some hundred cells add up
_FINEST, _COARSEST = 1e-10, 1e-4  # relative accuracy of quadrature: more accuracy gains nothing, less saves nothing
_PLANE_CELLS = 2_000  # of a row with two unknown numbers: beyond some 0.4 million calls sampling is cheaper
# relative standard error that sampling seldom reaches: rows that quadrature left below it are not sampled
_SAMPLED = 3e-4
_FEW_CHOICES = 4  # combinations of discrete inputs for which quadrature is always affordable
_MOST_CHOICES = 4_096
_TRIED = 2  # rows on which the two are compared
# calls by quadrature that are worth one draw: exact labels are asked for 1.2 to 2 times less often, and besides the function
# a node costs a third of a draw (uniforms, weights, replicates); chosen on three factors (docs/decisions/0041)
_WORTH = {"fast": 12.0, "slow": 1.5}
_SLOW_CALL = 5e-6  # seconds of processor time for one value: then the function is the price
_SLOW_WAIT = 1e-4  # seconds by the clock: it may wait for others; far above what a busy machine makes of a fast one


@dataclass(frozen=True)
class Route:
    """An oracle for rows of any kind: by quadrature where that is small, else by importance sampling."""

    precision: float | None
    importance: ImportanceOracle
    planes: bool  # whether quadrature serves two unknown numbers too

    def ask(self, rng: np.random.Generator, sampler: Sampler, incoming: Mapping[str, Any]) -> Answer:
        """The beliefs of every direction, one row for each incoming tuple."""
        unknown, choices = unknowns_of(sampler, incoming)
        line = (unknown <= 1) & (choices <= _FEW_CHOICES) & (not sampler.stochastic)
        plane = (unknown <= 2) & (choices <= _MOST_CHOICES) & ~line & (self.planes and not sampler.stochastic)
        ways = ((line, self._by_nodes), (plane, self._by_few_nodes), (~line & ~plane, self._by_draws))
        parts = []
        for some, ask in ways:
            rows = np.flatnonzero(some)
            if len(rows):
                parts.append((rows, ask(rng, sampler, take_incoming(incoming, rows))))
        return gather(parts, len(unknown))

    def _by_draws(self, rng: np.random.Generator, sampler: Sampler, incoming: Mapping[str, Any]) -> Answer:
        return replace(self.importance, precision=self.precision).ask(rng, sampler, incoming)

    def _by_few_nodes(self, rng: np.random.Generator, sampler: Sampler, incoming: Mapping[str, Any]) -> Answer:
        return self._by_nodes(rng, sampler, incoming, _PLANE_CELLS)

    def _by_nodes(
        self, rng: np.random.Generator, sampler: Sampler, incoming: Mapping[str, Any], cells: int | None = None
    ) -> Answer:
        """By quadrature; rows left worse than wished are sampled too if that can help, and the better answer counts."""
        oracle = quadrature_for(self.precision)
        answer = (oracle if cells is None else replace(oracle, max_cells=cells)).ask(rng, sampler, incoming)
        wished = np.inf if self.precision is None else max(self.precision, _SAMPLED)
        left = np.flatnonzero(answer.failed | (answer.label_noise > wished))
        if not len(left):
            return answer
        other = self._by_draws(rng, sampler, take_incoming(incoming, left))
        better = np.flatnonzero(other.label_noise < answer.label_noise[left])
        spent = answer.n_evaluations + other.n_evaluations
        if len(better):
            answer = replace_rows(answer, left[better], take_answer(other, better))
        return answer._replace(n_evaluations=spent)


@dataclass(frozen=True)
class AutomaticOracle:
    """The oracle that serves where none is named: it looks at how many numbers are unknown, and at what each way costs.

    What it measured is remembered by the object, so a factor keeps one for itself.
    """

    precision: float | None = None  # the required relative standard error
    importance: ImportanceOracle = field(default_factory=ImportanceOracle)
    measured: dict[str, bool] = field(default_factory=dict, compare=False, repr=False)  # kind of rows -> by quadrature

    def ask(self, rng: np.random.Generator, sampler: Sampler, incoming: Mapping[str, Any]) -> Answer:
        """The beliefs of every direction, one row for each incoming tuple."""
        route, spent = self.route(sampler, incoming)
        answer = route.ask(rng, sampler, incoming)
        return answer._replace(n_evaluations=answer.n_evaluations + spent)

    def route(self, sampler: Sampler, incoming: Mapping[str, Any]) -> tuple[Route, int]:
        """The way for a plate, and the calls of the function that it took to find it."""
        unknown, choices = unknowns_of(sampler, incoming)
        close = (unknown <= 2) & (choices <= _MOST_CHOICES) & ((unknown == 2) | (choices > _FEW_CHOICES))
        rows = np.flatnonzero(close)
        if sampler.stochastic or sampler.expensive or not len(rows):
            return Route(self.precision, self.importance, planes=False), 0
        key = _key(int(unknown[rows[0]]), int(choices[rows[0]]), self.precision)
        spent = 0
        if key not in self.measured:
            self.measured[key], spent = self._measure(sampler, take_incoming(incoming, rows[:_TRIED]))
        return Route(self.precision, self.importance, self.measured[key]), spent

    def _measure(self, sampler: Sampler, incoming: Mapping[str, Any]) -> tuple[bool, int]:
        """Whether quadrature is worth its price on a few rows, by counts of calls: those are the same on every machine."""
        ways = [Route(self.precision, self.importance, planes=planes).ask for planes in (True, False)]
        started, waited = time.process_time(), time.perf_counter()
        nodes, draws = (ask(np.random.default_rng(0), sampler, incoming).n_evaluations for ask in ways)
        seconds, waiting = time.process_time() - started, time.perf_counter() - waited
        slow = seconds > _SLOW_CALL * (nodes + draws) or waiting > _SLOW_WAIT * (nodes + draws)
        slow |= not sampler.vectorized
        return nodes <= _WORTH["slow" if slow else "fast"] * draws, nodes + draws


def quadrature_for(precision: float | None) -> QuadratureOracle:
    """Quadrature as accurate as labels of that relative standard error need.

    >>> quadrature_for(1e-3).tolerance
    1e-05
    """
    tolerance = _FINEST if precision is None else float(np.clip(_SHARPER * precision, _FINEST, _COARSEST))
    return QuadratureOracle(tolerance)


def unknowns_of(sampler: Sampler, incoming: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """For each row, how many unknown real numbers the function takes, and how many combinations of unknown categories."""
    n = len(incoming[sampler.child])
    unknown, choices = np.zeros(n, dtype=int), np.ones(n)
    for port in sampler.inputs:
        message = incoming.get(port)  # one that is missing is named by the oracle
        if not isinstance(message, Family):
            continue
        axis: Any = axis_of(type(message), message)
        free = ~message.is_point
        if axis.discrete:
            choices = np.where(free, choices * axis.n_values, choices)
        else:
            unknown += np.where(free, axis.n_coordinates, 0)
    return unknown, choices


def _key(unknown: int, choices: int, precision: float | None) -> str:
    decade = "any" if precision is None else str(round(float(np.log10(max(precision, 1e-12)))))
    return f"{unknown} unknown, {choices} choices, precision {decade}"


_NAMES = {"auto": AutomaticOracle, "importance": ImportanceOracle, "quadrature": QuadratureOracle, "abc": AbcOracle}


def make_oracle(oracle: str | Oracle = "auto", **options: Any) -> Oracle:
    """The oracle of that name with these options; an object that can be asked is returned as it is.

    >>> make_oracle("importance", n_samples=1000, draws="random").n_samples
    1000
    """
    if isinstance(oracle, str):
        if oracle not in _NAMES:
            raise ModelError(f"there is no oracle {oracle!r}; there are {sorted(_NAMES)}, or give an object with `ask`")
        return _NAMES[oracle](**options)
    if options:
        raise ModelError(f"options {sorted(options)} go with an oracle's name, not with an object")
    if not callable(getattr(oracle, "ask", None)):
        raise ModelError(f"an oracle needs a method `ask`; {type(oracle).__name__} has none")
    return oracle
