"""The state of the just-in-time operator for each direction, and how it is saved."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from heliograph.errors import FileFormatError
from heliograph.families.packing import join_plates, pack, unpack
from heliograph.operators.protocol import Incoming, Learner, State
from heliograph.storage import below

__all__ = ["Direction", "directions_from", "state_of"]


@dataclass
class Direction:
    """What is known about the messages to one port, given messages of certain families."""

    to: str
    learner: Learner | None = None  # None until the minibatch is full
    waiting: list[tuple[Incoming, np.ndarray]] = field(default_factory=list)  # answered, not yet learned
    n_learned: int = 0
    n_asked: int = 0

    @property
    def n_waiting(self) -> int:
        """Rows that wait for the minibatch to be full, or were left by an interruption."""
        return sum(len(y) for _, y in self.waiting)


def state_of(directions: Mapping[str, Direction]) -> State:
    """Every direction's learner and waiting rows."""
    arrays: dict[str, np.ndarray] = {}
    header: dict[str, Any] = {"directions": []}
    for k, (key, d) in enumerate(directions.items()):
        entry: dict[str, Any] = {"key": key, "to": d.to, "n_learned": d.n_learned, "n_asked": d.n_asked}
        if d.learner is not None:
            inside, entry["learner"] = d.learner.state()
            arrays |= {f"{k}/learner/{name}": a for name, a in inside.items()}
        if d.waiting:
            rows, entry["waiting"] = pack(join_plates([r for r, _ in d.waiting]))
            arrays |= {f"{k}/waiting/{name}": a for name, a in rows.items()}
            arrays[f"{k}/y"] = np.concatenate([y for _, y in d.waiting])
        header["directions"].append(entry)
    return arrays, header


def directions_from(
    arrays: Mapping[str, np.ndarray], header: Mapping[str, Any], learner: Learner
) -> dict[str, Direction]:
    """The reverse of `state_of`; each direction that has learned gets a copy of `learner` with its own state."""
    directions: dict[str, Direction] = {}
    for k, entry in enumerate(header["directions"]):
        d = Direction(str(entry["to"]), n_learned=int(entry["n_learned"]), n_asked=int(entry["n_asked"]))
        if "learner" in entry:
            d.learner = copy.deepcopy(learner)
            d.learner.restore(below(arrays, f"{k}/learner/"), entry["learner"])
        if "waiting" in entry:
            rows, y = unpack(below(arrays, f"{k}/waiting/"), entry["waiting"]), arrays[f"{k}/y"]
            if y.ndim != 2 or any(len(m) != len(y) for m in rows.values()):
                raise FileFormatError("the rows that wait to be learned do not fit together")
            d.waiting = [(rows, y)]
        directions[str(entry["key"])] = d
    return directions
