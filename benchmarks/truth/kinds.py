"""Every kind of model by name."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.truth import discrete, linear
from benchmarks.truth.world import World, rng_of

__all__ = ["KINDS", "make"]

KINDS: dict[str, Callable[[np.random.Generator, str, int], World]] = {
    "gaussian chain": linear.chain,
    "gaussian regression": linear.regression,
    "gaussian repeated": linear.repeated,
    "gaussian loop": linear.loop,
    "gaussian graph": linear.graph,
    "discrete tree": discrete.discrete_tree,
    "discrete loop": discrete.discrete_loop,
}


def make(kind: str, seed: int) -> World:
    """The model of that kind and seed."""
    return KINDS[kind](rng_of(kind, seed), kind, seed)
