"""The settings of a run as black boxes need them."""

from __future__ import annotations

from time import monotonic

import numpy as np

from heliograph.engine.compiled import CompiledModel
from heliograph.engine.options import StepOptions
from heliograph.factors.black_box import RunOptions
from heliograph.graph.shared import shared_by_factor

__all__ = ["for_boxes"]

_ASKING = 0.8  # of the time of a run, during which oracles are asked: the rest is for sweeps that converge


def for_boxes(options: StepOptions, compiled: CompiledModel, rng: np.random.Generator, compared: bool) -> RunOptions:
    """The settings of a run as black boxes need them; `compared` is as in `Run`."""
    return RunOptions(
        rng=rng,
        operator=options.operator,
        oracle=options.oracle,
        tolerance=options.tolerance,
        executor=options.executor,
        deadline=np.inf if options.seconds is None else monotonic() + _ASKING * options.seconds,
        n_factors=compiled.n_learned,
        compared=compared,
        shared=shared_by_factor(compiled.graph, compiled.learning_plates),
    )
