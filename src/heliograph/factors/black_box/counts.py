"""Outputs that are counts: whole numbers without a bound, which no family of messages holds.

A count is always observed, so the factor that messages need is the event that the function gave the number that was seen: a
Bernoulli output, with the number as data. Its probability is the share of draws that hit the number, or comes from
the user's log density.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from heliograph.errors import FactorError, ModelError
from heliograph.families import Bernoulli
from heliograph.oracles import Sampler

__all__ = ["COUNT", "counted", "event_of"]

COUNT = "count"  # name of the port of the observed number


def counted(sampler: Sampler) -> Sampler:
    """The event that a function of counts gives the number at port "count"."""
    if COUNT in sampler.inputs:
        raise ModelError(
            f"factor {sampler.name!r}: an input called {COUNT!r} is where the observed count goes; rename it"
        )
    function = _Hits(sampler.name, sampler.function)
    return sampler._replace(function=function, inputs=(*sampler.inputs, COUNT), output=Bernoulli, counted=COUNT)


def event_of(name: str, observed: Any) -> tuple[np.ndarray, np.ndarray]:
    """Observed counts (0 where missing), and 1 where there is one; NaN where there is none."""
    values = np.asarray(observed, dtype=float)
    seen = ~np.isnan(values)
    if ((values[seen] < 0) | (values[seen] != np.floor(values[seen]))).any():
        bad = values[seen][(values[seen] < 0) | (values[seen] != np.floor(values[seen]))][0]
        raise ModelError(f"factor {name!r} gives counts, 0, 1, 2 and so on, and {bad:g} was observed; NaN says missing")
    return np.where(seen, values, 0.0), np.where(seen, 1.0, np.nan)


class _Hits:
    """Whether a function gives the number that was seen; it can be sent to a worker if the function can."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name, self.function = name, function
        self.__name__ = getattr(function, "__name__", "factor")
        self.__qualname__ = getattr(function, "__qualname__", "factor")
        self.__doc__ = function.__doc__
        parameters = list(inspect.signature(function).parameters.values())
        count = inspect.Parameter(COUNT, inspect.Parameter.KEYWORD_ONLY)
        self.__signature__ = inspect.Signature([*parameters, count])

    def __call__(self, *, count: Any, **given: Any) -> np.ndarray:
        drawn = np.asarray(self.function(**given))
        if drawn.dtype.kind not in "fiub":
            raise FactorError(f"factor {self.name!r} returned {drawn.dtype} where counts are needed")
        if drawn.dtype.kind == "f":
            whole = np.isfinite(drawn)
            if (drawn[whole] != np.floor(drawn[whole])).any():
                bad = drawn[whole][drawn[whole] != np.floor(drawn[whole])].ravel()[0]
                raise FactorError(f"factor {self.name!r} says output=int and returned {bad:g}, which is no count")
        return drawn == count
