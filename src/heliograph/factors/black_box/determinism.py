"""Whether a function without an ``rng`` is a function of its inputs alone: it is called twice at a few places, once a factor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from heliograph.errors import FactorError
from heliograph.families import Family
from heliograph.oracles import Sampler
from heliograph.oracles.sampler import call

__all__ = ["check_deterministic"]

_PLACES = 4  # a function that draws differs at the first already
_ROUNDING = 1e-6  # relative: sums in another order, by other threads, are no noise


def check_deterministic(sampler: Sampler, incoming: Mapping[str, Any]) -> int:
    """Raise `FactorError` where a function that takes no ``rng`` gives two values at one place; the calls that it took.

    0 means that nothing was learned: the function says that it draws, or no message says where to look.
    """
    if sampler.stochastic:
        return 0
    rng = np.random.default_rng(0)
    n = 1 if sampler.expensive else min(_PLACES, len(incoming[sampler.child]))
    places: dict[str, np.ndarray] = {}
    for port in sampler.inputs:
        message = incoming[port]
        if not isinstance(message, Family):
            a = np.asarray(message)
            places[port] = np.broadcast_to(a, (n,)) if a.ndim == 0 else a[:n]
        elif message.point is not None and message.is_point[:n].all():
            places[port] = np.asarray(message.point)[:n]
        elif message[:n].proper.all():
            places[port] = np.asarray(message[:n].sample(rng))
        else:
            return 0
    if not n:
        return 0
    for a in places.values():
        a.flags.writeable = False
    one, two = (_flat(call(rng, sampler, places, n)) for _ in range(2))
    if (
        one.dtype.kind in "fiub"
        and one.shape == two.shape
        and not np.allclose(one, two, rtol=_ROUNDING, equal_nan=True)
    ):
        raise FactorError(
            f"factor {sampler.name!r} gave two different values at the same inputs, so it draws random numbers of its own: "
            "give it a parameter named rng, and draw from that (def f(z, rng): return z + rng.standard_normal(z.shape))"
        )
    return 2 * n


def _flat(given: Any) -> np.ndarray:
    """What a function gave as one array, the outputs of several one after the other."""
    if isinstance(given, tuple):
        return np.concatenate([np.asarray(a, dtype=float).ravel() for a in given])
    return np.asarray(given)
