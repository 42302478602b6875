"""Calling an oracle: in parts that other workers may do, timed and counted, with nothing lost on the way.

A plate is cut into parts of a fixed number of rows, each with its own random stream, so that the answer is the same
bits whatever the number of workers, none included.
"""

from __future__ import annotations

import dataclasses
import pickle
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from heliograph.errors import ModelError
from heliograph.families import Family
from heliograph.oracles import Answer, AutomaticOracle, make_oracle
from heliograph.oracles.answer import gather
from heliograph.oracles.forms import ask_in_form, route_in_form

__all__ = ["Latest", "OracleCalls", "oracle_named", "same_plates"]

_ROWS = 32  # in a part: enough for a vectorised function to be fast, few enough to share among workers


def oracle_named(choice: Any = None) -> Any:
    """The oracle that a word selects, one that chooses by itself if none is said; an object that can be asked is itself.

    >>> oracle_named("importance").n_samples
    16384
    """
    return make_oracle("auto" if choice is None else choice)


class Latest(NamedTuple):
    """An answer, what it was about, and the directions that have had it."""

    incoming: dict[str, Any]
    precision: float | None
    answer: Answer
    served: set[str]


class OracleCalls:
    """The function `ask` that an operator is given, and the account of what it cost.

    `latest` is a run's memory of each factor's last answer: one run of an oracle answers every direction, so another
    direction that asks about the same messages gets what was paid for already. The same direction asks anew.
    """

    def __init__(
        self,
        factor: Any,
        oracle: Any,
        rng: np.random.Generator,
        executor: Any = None,
        to: str = "",
        latest: dict[int, Latest] | None = None,
    ) -> None:
        self.factor, self.oracle, self.rng, self.executor = factor, oracle, rng, executor
        self.to, self.latest = to, latest
        self.n_asked, self.n_evaluations, self.seconds = 0, 0, 0.0

    def __call__(self, incoming: Mapping[str, Any], precision: float | None = None) -> Answer:
        """The oracle's answer for all rows; `precision` is the relative standard error wished for, where it can be had.

        An exception carries away what was answered before it, as its attribute ``answered``.
        """
        known = None if self.latest is None else self.latest.get(id(self.factor))
        new = known is None or self.to in known.served or known.precision != precision
        if known is not None and not new and same_plates(known.incoming, incoming):
            known.served.add(self.to)
            return known.answer
        answer = self._ask(incoming, precision)
        if self.latest is not None:
            self.latest[id(self.factor)] = Latest(dict(incoming), precision, answer, {self.to})
        return answer

    def _ask(self, incoming: Mapping[str, Any], precision: float | None) -> Answer:
        start = time.perf_counter()
        n = len(next(iter(incoming.values())))
        size = 1 if self.factor.sampler.expensive else _ROWS
        parts = [np.arange(k, min(k + size, n)) for k in range(0, n, size)]
        seeds = [int(s) for s in self.rng.integers(2**63, size=len(parts))]
        oracle, n_tried = self._oracle(precision, incoming)
        self.n_evaluations += n_tried
        work = [
            (self.factor, oracle, seed, {p: m[rows] for p, m in incoming.items()})
            for rows, seed in zip(parts, seeds, strict=True)
        ]
        done: list[tuple[np.ndarray, Answer]] = []
        try:
            if self.executor is None or len(work) == 1:
                for rows, item in zip(parts, work, strict=True):
                    done.append((rows, _answer(*item)))
            else:
                self._share_out(parts, work, done)
        except BaseException as error:
            error.answered = _gathered(done)  # type: ignore[attr-defined]
            raise
        finally:
            self.n_asked += sum(len(rows) for rows, _ in done)
            self.n_evaluations += sum(a.n_evaluations for _, a in done)
            self.seconds += time.perf_counter() - start
        return gather(done, n)

    def _oracle(self, precision: float | None, incoming: Mapping[str, Any]) -> tuple[Any, int]:
        """The oracle for a plate, chosen here and not by workers, and the calls that the choice took."""
        oracle = self.oracle
        if precision is not None and dataclasses.is_dataclass(oracle) and hasattr(oracle, "precision"):
            oracle = dataclasses.replace(oracle, precision=precision)  # type: ignore[type-var]
        if not isinstance(oracle, AutomaticOracle):
            return oracle, 0
        return route_in_form(oracle, self.factor.sampler, incoming)

    def _share_out(
        self, parts: list[np.ndarray], work: list[tuple[Any, ...]], done: list[tuple[np.ndarray, Answer]]
    ) -> None:
        futures = [self.executor.submit(_answer, *item) for item in work]
        first: BaseException | None = None
        try:
            for rows, future in zip(parts, futures, strict=True):
                try:
                    done.append((rows, future.result()))
                except Exception as error:
                    first = (
                        first or error
                    )  # the other parts have been computed: collect them before the error is raised
        except BaseException:  # on an interruption finished parts are kept, the rest are cancelled
            taken = {int(rows[0]) for rows, _ in done}
            for rows, future in zip(parts, futures, strict=True):
                if future.cancel() or not future.done() or int(rows[0]) in taken:
                    continue
                if future.exception() is None:
                    done.append((rows, future.result()))
            raise
        if first is not None:
            if isinstance(first, (pickle.PicklingError, AttributeError, TypeError)) and "pickle" in str(first).lower():
                raise ModelError(
                    f"factor {self.factor.name!r} cannot be sent to another process: define it at the top of a module "
                    "that the workers can import, or use a ThreadPoolExecutor"
                ) from first
            raise first


def same_plates(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Whether two plates of tuples are equal number by number."""
    for port, m in a.items():
        pairs: list[tuple[Any, Any]] = [(m, b[port])]
        if isinstance(m, Family):
            pairs = [*zip(m.naturals, b[port].naturals, strict=True), (m.point, b[port].point)]
        for x, y in pairs:
            if (x is None) != (y is None) or (x is not None and not np.array_equal(x, y, equal_nan=True)):
                return False
    return True


def _answer(factor: Any, oracle: Any, seed: int, incoming: Mapping[str, Any]) -> Answer:
    return ask_in_form(oracle, np.random.default_rng(seed), factor.sampler, incoming)


def _gathered(done: list[tuple[np.ndarray, Answer]]) -> tuple[np.ndarray, Answer] | None:
    """What was answered, rows in order."""
    if not done:
        return None
    rows = np.concatenate([r for r, _ in done])
    place = np.argsort(np.argsort(rows, kind="stable"), kind="stable")
    at, parts = 0, []
    for r, answer in done:
        parts.append((place[at : at + len(r)], answer))
        at += len(r)
    return np.sort(rows), gather(parts, len(rows))
