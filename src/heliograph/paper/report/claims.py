"""The paper's claims with our findings and verdicts, one record for each claim."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from heliograph.paper.report.tables import nats, range_of

__all__ = ["IN_PART", "NO", "NOT_TESTED", "YES", "Claim", "Found", "found_in", "judged"]

YES, IN_PART, NO, NOT_TESTED = "reproduced", "in part", "not reproduced", "not tested"


class Claim(NamedTuple):
    """One sentence or number of the paper."""

    line: int  # of the paper's source
    said: str  # in short
    ours: str  # with its range over seeds
    verdict: str
    reason: str = ""  # if it is known


class Found(NamedTuple):
    """The headlines of a result, over all of its seeds."""

    methods: Mapping[str, Mapping[str, Sequence[Any]]]

    def has(self, *methods: str) -> bool:
        """Whether all of these were run."""
        return all(m in self.methods for m in methods)

    def over(self, method: str, key: str) -> np.ndarray:
        """A number at every seed; what JSON has no number for is infinite."""
        return nats(self.methods[method][key])

    def pair(self, one: tuple[str, str], other: tuple[str, str]) -> tuple[np.ndarray, np.ndarray]:
        """Two numbers (method, key) at the seeds that both have; an interrupted run lacks the last ones."""
        a, b = self.over(*one), self.over(*other)
        n = min(len(a), len(b))
        return a[:n], b[:n]

    def middle(self, method: str, key: str) -> float:
        """Its median."""
        return float(np.median(self.over(method, key)))

    def shown(self, method: str, key: str, digits: int = 3) -> str:
        """Median and range."""
        return range_of(list(self.methods[method][key]), digits)

    def each(self, methods: Sequence[str], key: str, digits: int = 3) -> str:
        """Median and range of each of these."""
        return "; ".join(f"{m} {self.shown(m, key, digits)}" for m in methods)


def found_in(json: Mapping[str, Any], headlines: Callable[[Mapping[str, Any]], dict[str, dict[str, Any]]]) -> Found:
    """The headlines over the seeds that a result has; of its one seed if it has no spread."""
    if "spread" in json:
        return Found(json["spread"]["methods"])
    return Found({m: {k: [v] for k, v in row.items()} for m, row in headlines(json).items()})


def judged(good: bool, half: bool = False) -> str:
    """The verdict: reproduced if `good`, else in part if `half`.

    >>> judged(True), judged(False, True), judged(False)
    ('reproduced', 'in part', 'not reproduced')
    """
    return YES if good else IN_PART if half else NO
