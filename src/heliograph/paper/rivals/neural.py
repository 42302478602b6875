"""Heess, Tarlow and Winn's operator (2013): a network trained before inference, which never asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from heliograph.errors import ModelError
from heliograph.families import Family
from heliograph.operators.kjit.targets import target_named
from heliograph.operators.protocol import NOTHING_MORE, Ask, Incoming, Reply, Setting, State, signature
from heliograph.paper.rivals.heess2013 import HeessNetwork
from heliograph.paper.rivals.summaries import summarise
from heliograph.storage import below

__all__ = ["Neural"]


class Neural:
    """One network a direction, from (location, log spread) of every message to the logarithms of the belief.

    Train it with `train`, or through a factor: ``factor.train(rng, incoming, "neural")`` asks an oracle about many
    tuples like those to come. Its predictions are always beliefs, but their errors are unknown.
    """

    name = "neural"

    def __init__(self, hidden: Sequence[int] = (40, 40, 40), weight_decay: float = 1e-7, max_iter: int = 1000) -> None:
        self.hidden, self.weight_decay, self.max_iter = tuple(hidden), weight_decay, max_iter
        self.target = target_named("log")
        self.networks: dict[str, HeessNetwork] = {}  # direction -> network

    @property
    def settings(self) -> dict[str, Any]:
        """What makes another one like it, where it is not the default."""
        default = Neural.__init__.__defaults__
        assert default is not None
        given = {"hidden": self.hidden, "weight_decay": self.weight_decay, "max_iter": self.max_iter}
        return {k: v for (k, v), d in zip(given.items(), default, strict=True) if v != d}

    @property
    def key(self) -> str:
        """Under which a factor keeps it."""
        chosen = ", ".join(f"{k}={v!r}" for k, v in self.settings.items())
        return f"neural({chosen})" if chosen else "neural"

    @property
    def empty(self) -> bool:
        """Whether it has not been trained."""
        return not self.networks

    def fresh(self) -> Neural:
        """One with the same settings, untrained."""
        return Neural(self.hidden, self.weight_decay, self.max_iter)

    def train(self, incoming: Incoming, answer: Any, seed: int = 0) -> Neural:
        """Fit a network for every direction that the answer speaks of; rows that failed are left out."""
        rows = summarise(incoming)
        x = rows.values[:, rows.essential]
        for to, belief in answer.beliefs.items():
            cavity = incoming.get(to)
            if not isinstance(cavity, Family):
                continue
            y, valid = self.target.forward(belief, cavity)
            good = valid & ~answer.failed_at(to)
            if good.sum() < 2:
                raise ModelError(
                    f"there are {int(good.sum())} answered tuples to learn messages to {to!r} from: ask more"
                )
            network = HeessNetwork(self.hidden, self.weight_decay, self.max_iter, random_state=seed)
            self.networks[f"{to} | {signature(incoming)}"] = network.fit(x[good], y[good])
        return self

    def send(
        self, rng: np.random.Generator, to: str, incoming: Incoming, ask: Ask, setting: Setting = NOTHING_MORE
    ) -> Reply:
        """The predicted messages; a row whose numbers are those of no belief counts as failed."""
        network = self.networks.get(f"{to} | {signature(incoming)}")
        if network is None:
            raise ModelError(
                f"the neural operator was not trained for messages to {to!r} from ({signature(incoming)}); train it before "
                "inference with factor.train(rng, incoming, 'neural'), incoming being tuples like those to come"
            )
        rows = summarise(incoming)
        mean, _ = network.predict(rows.values[:, rows.essential])
        message, valid = self.target.inverse(mean, incoming[to])
        return Reply(message, ~valid, np.zeros(len(valid), dtype=bool))

    def state(self) -> State:
        """The networks."""
        arrays: dict[str, np.ndarray] = {}
        header: dict[str, Any] = {"networks": []}
        for k, (key, network) in enumerate(self.networks.items()):
            inside, entry = network.state()
            arrays |= {f"{k}/{name}": a for name, a in inside.items()}
            header["networks"].append({"key": key, "network": entry})
        return arrays, header

    def restore(self, arrays: Mapping[str, np.ndarray], header: Mapping[str, Any]) -> None:
        """The reverse of `state`."""
        networks = {}
        for k, entry in enumerate(header["networks"]):
            network = HeessNetwork(self.hidden, self.weight_decay, self.max_iter)
            networks[str(entry["key"])] = network.restore(below(arrays, f"{k}/"), entry["network"])
        self.networks = networks
