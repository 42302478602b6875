"""What a black box gives at known inputs, where that is one cheap evaluation for each."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from heliograph.errors import FactorError
from heliograph.factors.base import Incoming
from heliograph.factors.black_box.box import BlackBox
from heliograph.families import Family
from heliograph.oracles.calling import try_values

__all__ = ["BoxValues", "is_computable", "values_of"]


class BoxValues(NamedTuple):
    """Outputs of a function, row by row, and where there is none: those hold anything inside the family's support."""

    out: np.ndarray
    wrong: np.ndarray


def is_computable(box: BlackBox) -> bool:
    """Whether a box is a plain function of its inputs: of one output, without noise, and not said to be expensive or partial."""
    s = box.sampler
    return not (s.stochastic or s.expensive or s.more or s.counted) and s.vectorized and s.impossible is None


def values_of(box: BlackBox, incoming: Incoming, n: int) -> BoxValues | None:
    """The function's values at n rows of known inputs; None where an input is not known, or where the function raises."""
    given: dict[str, Any] = {}
    for port in box.sampler.inputs:
        known = incoming[port]
        if isinstance(known, Family):
            if known.point is None or not known.is_point.all():
                return None
            given[port] = known.point
        else:
            given[port] = np.asarray(known)
    box.root.n_evaluations += n
    try:
        found = try_values(np.random.default_rng(0), box.sampler, given, n)
    except FactorError:  # it raises somewhere: not where a run had to ask, and draws go farther than runs do
        return None
    return BoxValues(found.out, np.zeros(n, dtype=bool) if found.wrong is None else found.wrong != 0)
