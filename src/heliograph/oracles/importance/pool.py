"""Draws kept for later: inputs, outputs and the density they were drawn from, re-weighted while enough of them count.

This is the recycling of Barthelme and Chopin's EP-ABC. Between two sweeps a cavity moves little, so the draws made
for it in the last sweep still serve; no call of the user's function is needed. Two answers from the same draws have
errors in common, which neither of their standard errors shows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from heliograph.oracles.importance.weighing import Draws
from heliograph.oracles.problem import Problem

__all__ = ["Batch", "Pool"]


class Batch(NamedTuple):
    """The draws of one message."""

    inputs: tuple[str, ...]  # the ports that were random
    constants: dict[str, np.ndarray]  # the values of the others
    draws: Draws  # every array with a first axis of length 1
    n_replicates: int

    def fits(self, problem: Problem) -> np.ndarray:
        """The rows for which these draws are of the right kind: the same constants."""
        same = np.ones(problem.n, dtype=bool)
        for port, value in self.constants.items():
            given = problem.constants[port]
            same &= (given == value).reshape(problem.n, -1).all(axis=1)
        return np.flatnonzero(same)


class Pool:
    """Recent draws of any number of factors, at most `max_draws` in all; the oldest go first.

    `min_ess` is the effective sample size below which new draws are made; `n_tried` batches are tried for a message.
    """

    def __init__(self, min_ess: float = 500.0, max_draws: int = 4_000_000, n_tried: int = 16) -> None:
        self.min_ess, self.max_draws, self.n_tried = min_ess, max_draws, n_tried
        self._batches: deque[tuple[object, Batch]] = deque()
        self.n_draws = 0

    def __len__(self) -> int:
        return len(self._batches)

    def candidates(self, problem: Problem) -> Iterator[Batch]:
        """Batches of the same factor with the same random ports, the newest first."""
        names = tuple(p.name for p in problem.inputs)
        tried = 0
        for function, batch in reversed(tuple(self._batches)):
            if function is not problem.sampler.function or batch.inputs != names:
                continue
            if len(batch.fits(problem)):
                tried += 1
                yield batch
            if tried == self.n_tried:
                return

    def keep(self, problem: Problem, chunks: list[Draws], n_replicates: int) -> None:
        """Store the chunks of a run (replicate after replicate) as one batch for each row."""
        names_of = ("u", "v", "log_q", "log_weights", "edge")
        whole = {k: np.concatenate([getattr(c, k) for c in chunks], axis=1) for k in names_of}
        bad = np.any([c.bad for c in chunks], axis=0)
        names = tuple(p.name for p in problem.inputs)
        for i in np.flatnonzero(~bad):
            draws = Draws(**{k: a[i : i + 1].copy() for k, a in whole.items()}, bad=bad[i : i + 1])  # type: ignore[arg-type]
            constants = {k: a[i : i + 1] for k, a in problem.constants.items()}
            self._batches.append((problem.sampler.function, Batch(names, constants, draws, n_replicates)))
            self.n_draws += draws.log_q.size
        while self.n_draws > self.max_draws and self._batches:
            _, oldest = self._batches.popleft()
            self.n_draws -= oldest.draws.log_q.size
