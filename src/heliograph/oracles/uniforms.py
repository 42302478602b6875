"""Uniform numbers for a plate of messages: pseudo-random, or scrambled Sobol' points randomised anew at every call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from heliograph.errors import ModelError

if TYPE_CHECKING:
    from scipy.stats import qmc

__all__ = ["Uniforms", "uniforms_for"]

_BITS = 30  # of a Sobol' coordinate: scipy's default, good for 2^30 points


class Uniforms:
    """A supply of points in the open unit cube for n messages, in independent replicates of the same size.

    Pseudo-random points have one replicate. Sobol' points have several, each with its own scrambling: their spread
    is the only honest measure of a quasi-Monte-Carlo error. Within a replicate every message has its own digital
    shift, so that the messages of a plate do not share their errors.
    """

    def __init__(self, rng: np.random.Generator, n: int, dimension: int, kind: str, n_replicates: int) -> None:
        self.rng, self.n, self.dimension, self.kind = rng, n, dimension, kind
        self.n_replicates = n_replicates if kind == "sobol" else 1
        if kind == "sobol":
            self._engines = [_engine(dimension, child) for child in rng.spawn(n_replicates)]
            self._shifts = rng.integers(0, 2**_BITS, size=(n_replicates, n, 1, dimension), dtype=np.int64)

    def take(self, replicate: int, size: int, rows: np.ndarray) -> np.ndarray:
        """The next `size` points of a replicate for the messages `rows`, shape (len(rows), size, dimension)."""
        if self.kind == "random":
            # half a step away from 0, which no inverse distribution function can take
            return self.rng.random((len(rows), size, self.dimension)) + 2.0**-54
        points = np.rint(self._engines[replicate].random(size) * 2.0**_BITS).astype(np.int64)
        moved = (points & (2**_BITS - 1)) ^ self._shifts[replicate, rows]
        return (moved + 0.5) * 2.0**-_BITS


def uniforms_for(rng: np.random.Generator, n: int, dimension: int, kind: str, n_replicates: int = 16) -> Uniforms:
    """A fresh supply; `kind` is "random" or "sobol"."""
    if kind not in ("random", "sobol"):
        raise ModelError(f"draws are 'random' or 'sobol', not {kind!r}")
    if n_replicates < 4:
        raise ModelError(f"the spread of {n_replicates} replicates is no standard error; 4 is the least")
    return Uniforms(rng, n, dimension, kind, n_replicates)


def _engine(dimension: int, rng: np.random.Generator) -> qmc.Sobol:
    from scipy.stats import qmc  # half of what `import heliograph` would take

    try:
        return qmc.Sobol(dimension, scramble=True, bits=_BITS, rng=rng)
    except TypeError:  # before scipy 1.15 the argument had another name
        return qmc.Sobol(dimension, scramble=True, bits=_BITS, seed=rng)  # type: ignore[call-arg]
