"""Cheap reference beliefs (docs/decisions/0014): whether a plate gets them, from whom, and whether that is fast enough."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from heliograph.operators.learned.decide import slow_reference
from heliograph.operators.protocol import Incoming, ReferenceLike, Setting, rows_of

__all__ = ["References"]

_TRIES = 3
# Seconds by the clock count a twentieth of those of the processor: a function may wait for another program, but the clock runs on
# while other processes have the processor, and the same seed must give the same answer then
_WAITING = 20.0
Refer = Callable[..., ReferenceLike | None]  # of rng, incoming and the port in question


class References:
    """References by `choice`: "auto" (what the factor can have, unless it is too slow), "none", or a user's own function."""

    def __init__(self, choice: Any) -> None:
        self.choice = choice
        self.expensive: bool | None = None  # whether the function is too slow for references; None: not yet measured
        self.n_tried = 0  # evaluations that it took to find that out

    def refer(
        self, rng: np.random.Generator, incoming: Incoming, setting: Setting, to: str | None
    ) -> ReferenceLike | None:
        """The reference of one port of rows of one kind (None: of log Z); None where the cavity has to do."""
        if self.choice == "none":
            return None
        if callable(self.choice):
            return self.choice(rng, incoming, to)  # type: ignore[return-value]
        if setting.reference is None or self.expensive:
            return None
        if self.expensive is None:
            self.expensive = self._too_slow(rng, incoming, setting.reference, to)
            if self.expensive:
                return None
        return setting.reference(rng, incoming, to)

    def _too_slow(self, rng: np.random.Generator, incoming: Incoming, refer: Refer, to: str | None) -> bool:
        """Whether a reference at every message would cost more than it saves: one row first, then a handful."""
        for rows in (1, 32):
            some = rows_of(incoming, slice(0, rows))
            for _ in range(_TRIES):  # the first call of a function may load or compile something; the fastest counts
                worked, waited = time.thread_time(), time.perf_counter()
                reference = refer(rng, some, to)
                worked, waited = time.thread_time() - worked, time.perf_counter() - waited
                if reference is None:
                    return False
                n = reference.n_evaluations
                self.n_tried += n
                if not slow_reference(worked, n) and not slow_reference(waited / _WAITING, n):
                    break
            else:
                return True
        return False
