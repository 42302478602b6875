"""The operator that always asks: what every learned one is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from heliograph.operators.protocol import NOTHING_MORE, Ask, Incoming, Reply, Setting, State

__all__ = ["AlwaysAsk"]


class AlwaysAsk:
    """Hands every message to the oracle and learns nothing."""

    name: ClassVar[str] = "ask"

    @property
    def settings(self) -> dict[str, Any]:
        """No settings."""
        return {}

    @property
    def key(self) -> str:
        """Under which a factor keeps it."""
        return self.name

    @property
    def empty(self) -> bool:
        """It never learns."""
        return True

    def fresh(self) -> AlwaysAsk:
        """Another one like it."""
        return AlwaysAsk()

    def send(
        self, rng: np.random.Generator, to: str, incoming: Incoming, ask: Ask, setting: Setting = NOTHING_MORE
    ) -> Reply:
        """The oracle's belief divided by what came in, eq. (1)."""
        answer = ask(incoming)
        message = answer.beliefs[to] / incoming[to]
        failed = np.array(answer.failed_at(to))
        kl = np.where(failed, np.inf, answer.expected_kl[to])
        return Reply(message, failed, np.ones(len(message), dtype=bool), expected_kl=kl)

    def state(self) -> State:
        """Nothing."""
        return {}, {}

    def restore(self, arrays: Mapping[str, np.ndarray], header: Mapping[str, Any]) -> None:
        """Nothing to restore."""
