"""Every kind of model by name."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.truth import (
    answers,
    boxes,
    discrete,
    effects,
    extreme,
    functions,
    impossible,
    larger,
    linear,
    metamorphic,
    programs,
    shared,
    single,
    stored,
    switches,
    tables,
)
from benchmarks.truth.world import World, rng_of

__all__ = ["KINDS", "SHARES", "make"]

KINDS: dict[str, Callable[[np.random.Generator, str, int], World]] = {
    "gaussian chain": linear.chain,
    "gaussian regression": linear.regression,
    "gaussian repeated": linear.repeated,
    "gaussian loop": linear.loop,
    "gaussian graph": linear.graph,
    "discrete tree": discrete.discrete_tree,
    "discrete loop": discrete.discrete_loop,
    "discrete chain": tables.discrete_chain,
    "unknown tables": tables.unknown_tables,
    "conjugate": single.conjugate,
    "single factor": single.single,
    "regression": shared.generalised_linear,
    "regression fixed point": shared.fixed_point,
    "mean and precision": shared.mean_and_precision,
    "mixture of two": shared.mixture_of_two,
    "shared product": shared.shared_product,
    "random effects": effects.random_effects,
    "extreme": extreme.extreme,
    "impossible": impossible.impossible,
    "box tree": boxes.box_tree,
    "box pair": boxes.box_pair,
    "box loop": boxes.box_loop,
    "noisy box": boxes.noisy_box,
    "program": programs.program,
    "larger program": larger.larger_program,
    "answers": answers.answers,
    "gates": switches.gates,
    "switches": switches.switches,
    "function chain": functions.function_chain,
    "rewritten": metamorphic.rewritten,
    "hierarchical": stored.hierarchical,
}

SHARES = {  # how many of each kind, for those that are not 1: fewer of what takes seconds
    "hierarchical": 0.4, "larger program": 0.6, "box pair": 0.6, "box loop": 0.4, "noisy box": 0.4, "mixture of two": 0.4,
    "rewritten": 0.6, "gaussian chain": 1.5, "gaussian graph": 1.5, "single factor": 1.5, "extreme": 1.5,
}  # fmt: skip


def make(kind: str, seed: int) -> World:
    """The model of that kind and seed."""
    return KINDS[kind](rng_of(kind, seed), kind, seed)
