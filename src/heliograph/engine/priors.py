"""Beliefs that are to be the priors of the next batch, which say so where they leave out how unknowns hang together.

A prior is the belief of one variable. The posterior of ``a`` and ``b`` after ``y = a + b + noise`` is narrow in one direction; two
priors of their own know nothing of it, and the next posterior would be too narrow, without a word.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, ItemsView, Mapping, ValuesView
from typing import NamedTuple

import numpy as np

from heliograph.errors import AccuracyWarning
from heliograph.families import Family

__all__ = ["DRAWS", "Correlation", "Priors", "correlation_of", "correlation_of_draws", "lengths_of"]

_OFF = 0.1  # of a correlation: with less, a standard deviation is off by half a per cent
_DRAWN = 0.2  # of one that is estimated from draws
DRAWS = 1000  # that a correlation is estimated from


class Correlation(NamedTuple):
    """The correlations of scalars, and to which belief each of them belongs: the components of a vector to one."""

    matrix: np.ndarray  # (n, n)
    names: tuple[str, ...]  # (n,) of the variables
    beliefs: np.ndarray  # (n,) a number for each belief
    least: float = _OFF  # what counts


class Priors(dict[str, Family]):
    """Beliefs by name. Taking two that are correlated in the posterior, or a plate whose entries are, warns once."""

    def __init__(self, beliefs: Mapping[str, Family], correlation: Callable[[], Correlation | None]) -> None:
        super().__init__(beliefs)
        self._correlation = correlation
        self._taken: set[str] = set()
        self._warned = False

    def __getitem__(self, name: str) -> Family:
        belief = super().__getitem__(name)
        self._take({name})
        return belief

    def items(self) -> ItemsView[str, Family]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """All of them, which are then taken."""
        self._take(set(self))
        return super().items()

    def values(self) -> ValuesView[Family]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """All of them, which are then taken."""
        self._take(set(self))
        return super().values()

    def _take(self, names: set[str]) -> None:
        if self._warned or names <= self._taken:
            return
        self._taken |= names
        if len(self._taken) == 1 and max((b.size for k, b in super().items() if k in self._taken), default=1) == 1:
            return
        found = self._correlation()
        if found is None:
            return
        mine = np.array([k in self._taken for k in found.names])
        apart = mine[:, None] & mine & (found.beliefs[:, None] != found.beliefs)
        size = np.where(apart, np.abs(found.matrix), 0.0)
        if not size.size or size.max() <= found.least:
            return
        self._warned = True
        i, j = np.unravel_index(size.argmax(), size.shape)
        pair = f"{found.names[i]!r} and {found.names[j]!r}"
        pair = f"entries of {found.names[i]!r}" if found.names[i] == found.names[j] else pair
        warnings.warn(
            f"as priors, {pair} would be independent, and in this posterior their correlation is {found.matrix[i, j]:.2g}: the "
            "next posterior would be wrong, and its evidence too. Write them as one vector (its belief is joint), or infer from "
            "all data at once",
            AccuracyWarning,
            stacklevel=3,
        )


def correlation_of(covariance: np.ndarray, sizes: Mapping[str, tuple[int, int]]) -> Correlation:
    """From a joint covariance of variables, of each of which `sizes` has the number of scalars and how many make one belief."""
    names: list[str] = []
    beliefs: list[np.ndarray] = []
    for name, (n, d) in sizes.items():
        beliefs.append(len(names) + np.arange(n) // d)
        names += [name] * n
    sd = np.sqrt(np.diagonal(covariance))
    safe = np.where(sd > 0, sd, 1.0)
    return Correlation(covariance / safe[:, None] / safe, tuple(names), np.concatenate(beliefs))


def correlation_of_draws(draws: Mapping[str, np.ndarray], vectors: Mapping[str, int]) -> Correlation | None:
    """The correlations of draws (S, ...) by name; `vectors` holds the length of a belief's last axes where it is joint."""
    parts: list[np.ndarray] = []
    names: list[str] = []
    beliefs: list[np.ndarray] = []
    count = 0
    for name, values in draws.items():
        flat = np.asarray(values, dtype=float).reshape(len(values), -1)
        parts.append(flat)
        names += [name] * flat.shape[1]
        beliefs.append(count + np.arange(flat.shape[1]) // vectors.get(name, 1))
        count += flat.shape[1]
    if not parts:
        return None
    whole = np.concatenate(parts, axis=1)
    moving = np.nanstd(whole, axis=0) > 0
    fine = moving & np.isfinite(whole).all(axis=0)
    if not fine.any():
        return None
    matrix = np.atleast_2d(np.corrcoef(whole[:, fine].T))
    kept = np.flatnonzero(fine)
    return Correlation(matrix, tuple(names[k] for k in kept), np.concatenate(beliefs)[kept], _DRAWN)


def lengths_of(beliefs: Mapping[str, Family]) -> dict[str, int]:
    """How many scalars make one value of each belief."""
    return {k: int(np.prod(np.shape(b.mean)[b.ndim :], dtype=int)) for k, b in beliefs.items() if not b.discrete}
