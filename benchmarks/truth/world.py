"""A random model as a record: its source, what is asked of it, and the answer found by other means.

The model is a piece of Python source, so that a failing one can be read, pasted and run. Every number in it is written
so that reading it gives the same bits, and the answer is computed from the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import numpy as np

__all__ = ["Truth", "World", "literal", "rng_of", "rounded"]


@dataclass(frozen=True)
class Truth:
    """The answer: of each asked variable the mean and sd (continuous) or the probabilities (discrete)."""

    mean: dict[str, Any] = field(default_factory=dict)
    sd: dict[str, Any] = field(default_factory=dict)
    probability: dict[str, Any] = field(default_factory=dict)  # last axis: categories; Bernoulli: P(1)
    covariance: dict[str, Any] = field(default_factory=dict)  # of vectors, where it is known
    log_evidence: float | None = None


@dataclass(frozen=True)
class World:
    """One model of a kind; `make(kind, seed)` gives the same one every time."""

    kind: str
    seed: int
    source: str  # uses hg and np, and defines `m` and every asked variable
    claim: str  # which limits of `claims.py` hold for it
    truth: Callable[[], Truth] | None  # None: the model is impossible, and the only right answer is to say so
    settings: dict[str, Any] = field(default_factory=dict)  # of `infer`
    after: str = ""  # source that goes on with `posterior`, and names what else is asked

    @property
    def description(self) -> str:
        """The model as it can be pasted, with the call that infers it."""
        settings = ", ".join(f"{k}={v!r}" for k, v in self.settings.items())
        return f"# {self.kind}, seed {self.seed}\n{self.source}\nposterior = m.infer({settings})\n{self.after}".rstrip()


def rng_of(kind: str, seed: int) -> np.random.Generator:
    """The generator of one model: other kinds and seeds draw other numbers."""
    return np.random.default_rng([seed, crc32(kind.encode())])


def rounded(values: Any, digits: int = 4) -> Any:
    """The same numbers with a few significant digits, so that the source stays readable."""
    array = np.asarray(values, dtype=float)
    result = np.array([float(f"{x:.{digits - 1}e}") for x in array.ravel()]).reshape(array.shape)
    return float(result) if result.ndim == 0 else result


def literal(values: Any) -> str:
    """Source text that gives these numbers back, bit by bit.

    >>> literal(np.array([1.0, np.nan]))
    'np.array([1.0, np.nan])'
    """
    array = np.asarray(values)
    if array.ndim == 0:
        return _number(array[()])
    return f"np.array({_nested(array)})"


def _nested(array: np.ndarray) -> str:
    if array.ndim == 0:
        return _number(array[()])
    return "[" + ", ".join(_nested(a) for a in array) + "]"


def _number(x: Any) -> str:
    if isinstance(x, (bool, np.bool_)):
        return str(bool(x))
    if isinstance(x, (int, np.integer)):
        return str(int(x))
    if np.isnan(x):
        return "np.nan"
    if np.isinf(x):
        return "np.inf" if x > 0 else "-np.inf"
    return repr(float(x))
