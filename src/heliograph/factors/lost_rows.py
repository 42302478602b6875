"""Bad rows stay alone: the methods of factors give NaN in rows that overflow, and are right in all others.

Overflow, 0 / 0 and the like raise no warning here: they make a row infinite or NaN, and such a row is no answer. It leaves
the factor as NaN in all of its natural parameters, which the engine skips, counts and names.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from math import isfinite
from typing import Any

import numpy as np

from heliograph.families import Family

__all__ = ["isolated", "settled"]


def isolated(method: Callable) -> Callable:
    """The method of a factor, silent about overflow, whose result is NaN in the rows that have no finite one.

    A row of which an incoming message is NaN has none. Infinite values of `log_z` are answers (an integral that
    diverges, or is 0) and stay. A port that the factor sends nothing to is refused.
    """
    asks_log_z = method.__name__ == "log_z"

    @wraps(method)
    @np.errstate(all="ignore")
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not asks_log_z:
            self.check_port(args[0] if args else kwargs["to"])
        result = method(self, *args, **kwargs)
        lost = _lost(args[0] if asks_log_z else args[1]) if len(args) > (not asks_log_z) else None
        if asks_log_z:
            return result if lost is None else np.where(lost, np.nan, result)
        return result if lost is None and _finite(result) else settled(result, lost)

    return guarded


def _finite(m: Family) -> bool:
    """Whether all natural parameters are numbers, and not so large that a sum of their products overflows."""
    first, last = m.naturals[0], m.naturals[-1]
    if first.ndim == 1 and first.shape == last.shape:
        return isfinite(first.dot(last))  # 0 times infinity is NaN, so no infinity is lost
    return all(isfinite(np.vdot(a, a)) for a in m.naturals)


def _lost(incoming: Any) -> np.ndarray | None:
    """The rows of which an incoming message is NaN; None if there are none."""
    lost = None
    for m in incoming.values():
        if isinstance(m, Family) and not _finite(m):
            bad = ~m.finite
            if bad.any():
                lost = bad if lost is None else lost | bad
    return lost


def settled(message: Family, lost: np.ndarray | None = None) -> Family:
    """The same message with all natural parameters NaN in the rows where one is not finite, and in the `lost` ones.

    >>> from heliograph.families import Gaussian
    >>> settled(Gaussian.from_naturals((np.array([1.0, np.inf]), np.array([1.0, 2.0])))).naturals
    (array([ 1., nan]), array([ 1., nan]))
    """
    bad = ~message.finite if lost is None else ~message.finite | lost
    if not bad.any():
        return message
    return message.without(bad)
