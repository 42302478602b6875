"""Uniform numbers for a plate of messages: pseudo-random, or scrambled Sobol' points randomised anew at every call."""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np

from heliograph.errors import ModelError
from heliograph.numerics.sobol import BITS, scrambled_sobol

__all__ = ["Streams", "Uniforms", "uniforms_for"]

_SEED = 20150701  # of the scrambling; any number does
_FIRST = 10  # the least power of two of points that are made at once


class Streams(NamedTuple):
    """A source of random numbers for each row of a plate, from a key and the row's own content, whatever its place.

    So a plate gives what its rows give one by one, in any order, and no row shares its numbers with another.
    """

    key: int
    identity: np.ndarray  # (n,)

    def generators(self, purpose: int) -> list[np.random.Generator]:
        """One generator for each row; different purposes have nothing in common."""
        return [np.random.default_rng([self.key, purpose, int(i)]) for i in self.identity]


class Uniforms:
    """A supply of points in the open unit cube for n messages, in independent replicates of the same size.

    Pseudo-random points have one replicate. Sobol' points have several, each with its own scrambling and its own random
    digital shift: their spread is the only honest measure of a quasi-Monte-Carlo error. Every message has shifts of its own, so
    that the messages of a plate do not share their errors. The scrambled nets are the same in every question: what makes a point
    uniform, and replicates independent, are the shifts, and to make sixteen nets anew was a fifth of a question.
    """

    def __init__(self, streams: Streams, purpose: int, dimension: int, kind: str, n_replicates: int) -> None:
        self.dimension, self.kind = dimension, kind
        self.n_replicates = n_replicates if kind == "sobol" else 1
        self._own = streams.generators(purpose)
        if kind == "sobol":
            self._taken = [0] * n_replicates  # points of each replicate
            shifts = [g.integers(0, 2**BITS, size=(n_replicates, 1, 1, dimension)) for g in self._own]
            self._shifts = np.concatenate(shifts, axis=1)

    def take(self, replicate: int, size: int, rows: np.ndarray) -> np.ndarray:
        """The next `size` points of a replicate for the messages `rows`, shape (len(rows), size, dimension)."""
        if self.kind == "random":
            # half a step away from 0, which no inverse distribution function can take
            return np.stack([self._own[i].random((size, self.dimension)) for i in rows]) + 2.0**-54
        first = self._taken[replicate]
        self._taken[replicate] = first + size
        moved = _NETS.points(self.dimension, replicate, first + size)[first:] ^ self._shifts[replicate, rows]
        return (moved + 0.5) * 2.0**-BITS


def uniforms_for(streams: Streams, purpose: int, dimension: int, kind: str, n_replicates: int = 16) -> Uniforms:
    """A fresh supply; `kind` is "random" or "sobol"."""
    if kind not in ("random", "sobol"):
        raise ModelError(f"draws are 'random' or 'sobol', not {kind!r}")
    if n_replicates < 4:
        raise ModelError(f"the spread of {n_replicates} replicates is no standard error; 4 is the least")
    return Uniforms(streams, purpose, dimension, kind, n_replicates)


class _Nets:
    """Scrambled Sobol' points as whole numbers, made once and as far as they were wanted."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, int], np.ndarray] = {}
        self._lock = threading.Lock()

    def points(self, dimension: int, replicate: int, n: int) -> np.ndarray:
        """The first n points ``(n, dimension)`` of a replicate's net."""
        made = self._made.get((dimension, replicate))
        if made is None or len(made) < n:
            with self._lock:  # oracles may run in several threads
                rng = np.random.default_rng([_SEED, dimension, replicate])
                made = scrambled_sobol(rng, dimension, max(_FIRST, (n - 1).bit_length()))
                self._made[dimension, replicate] = made
        return made[:n]


_NETS = _Nets()
