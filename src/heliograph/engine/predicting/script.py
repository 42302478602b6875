"""The lines that wrote a model, and the data that it had when a run began."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np

from heliograph.graph.builder import Builder
from heliograph.graph.tape import Call

__all__ = ["Script", "script_of"]


@dataclass(frozen=True, eq=False)
class Script:
    """A model with its calls and data at one moment; None where it could not be kept in a pickle."""

    model: Builder | None
    calls: tuple[Call, ...]
    data: dict[str, np.ndarray]

    def __reduce__(self) -> tuple[Any, ...]:
        """A model whose functions cannot be pickled is left out: what remains can be read, but not used for new data."""
        parts: tuple[Any, ...] = self.model, self.calls, self.data
        try:
            pickle.dumps(parts)
        except (pickle.PicklingError, AttributeError, TypeError):
            return Script, (None, (), self.data)
        return Script, parts


def script_of(model: Builder) -> Script:
    """The script of a model as it is now."""
    return Script(model, tuple(model.draft.tape), {name: data.value for name, data in model.draft.data.items()})
