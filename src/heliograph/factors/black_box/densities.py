"""Whether a given `log_density` is that of the function's own draws.

A draw knows which inputs it came from. By Bayes' rule a density at two places says how likely each was for every draw, and these
chances must be honest; terms that depend on the value alone (a factorial) cancel there, as they do in beliefs. Whether such
terms are missing, which only the evidence depends on, shows in the shares of draws between two values compared with the integral.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping

import numpy as np
from scipy import special

from heliograph.errors import AccuracyWarning, FactorError
from heliograph.oracles import Sampler
from heliograph.oracles.calling import as_array, call, show

__all__ = ["check_log_density"]

_DRAWS = 2048  # at each place
# places between the first and the one farthest from it, each half as far: at one of them draws overlap in part
_CLOSER = 6
_SLOW = 16  # times fewer of a function that takes one sample at a time
_FAR = 5.5  # standard errors: a false alarm in a million factors
_LOOSE = 0.002  # of the draws: smaller differences do not matter
_DEEP = 30.0  # nats between two places: smaller probabilities count as 0
_BINS = 7  # of equal shares, for the evidence
_NODES = 129  # of the sum over one bin
_OFTEN = 0.02  # share of draws, above which a count is a bin of its own
_SUM = 0.02  # relative error of sums over bins

Places = Mapping[str, np.ndarray]  # input -> (k, ...)


def check_log_density(sampler: Sampler, places: Places, unknown: Collection[str]) -> int:
    """Raise `FactorError` where beliefs by a log density are not those of the draws, warn if only evidence is; the samples taken.

    Parameters
    ----------
    sampler : of draws, and with a log density; nothing is done about deterministic or expensive ones
    places : where to look
    unknown : inputs that are no data
    """
    if sampler.log_density is None or not sampler.stochastic or sampler.expensive or not places:
        return 0
    if sampler.counted is not None:
        function = sampler.function.function  # type: ignore[attr-defined]
        inputs = tuple(p for p in sampler.inputs if p != sampler.counted)
        sampler = sampler._replace(function=function, inputs=inputs)
    places = {p: _with_closer(a, p in unknown) for p, a in places.items() if p in sampler.inputs}
    k = len(next(iter(places.values())))
    n = _DRAWS if sampler.vectorized else _DRAWS // _SLOW
    rows = np.repeat(np.arange(k), n)
    given = {p: a[rows] for p, a in places.items()}
    drawn = as_array(sampler.name, call(np.random.default_rng(0), sampler, given, len(rows)))
    if drawn.shape[:1] != (len(rows),) or drawn.dtype.kind not in "fiub" or not np.isfinite(drawn).all():
        return len(rows)  # the oracle reports values that it cannot take; NaN means that the value is impossible
    drawn = drawn.astype(float).reshape(k, n, *drawn.shape[1:])
    _check_chances(sampler, places, drawn)
    if drawn.ndim == 2:
        _check_evidence(sampler, places, drawn)
    return len(rows)


def _with_closer(a: np.ndarray, unknown: bool) -> np.ndarray:
    """Values at all places and at some between the first and the farthest; whole numbers such as labels are not interpolated."""
    between = np.repeat(a[:1], _CLOSER, axis=0)
    if unknown and len(a) > 1 and a.dtype.kind == "f" and (a != np.round(a)).any():
        gap = a - a[0]
        farthest = int(np.argmax((gap**2).reshape(len(a), -1).sum(axis=1)))
        between = a[0] + np.multiply.outer(0.5 ** np.arange(1, _CLOSER + 1), gap[farthest])
    return np.concatenate([a, between])


def _log_density(sampler: Sampler, places: Places, k: int, values: np.ndarray) -> np.ndarray:
    """Of some values at one place; -inf where it says nothing."""
    density, value = sampler.log_density, " value"
    assert density is not None
    given = {p: np.repeat(a[k : k + 1], len(values), axis=0) for p, a in places.items()} | {value: values}
    of_value = Sampler(
        sampler.name,
        lambda **a: density(a.pop(value), **a),
        tuple(given),
        sampler.output,
        vectorized=sampler.vectorized,
    )
    said = as_array(sampler.name, call(np.random.default_rng(0), of_value, given, len(values)))
    if said.shape != (len(values),) or said.dtype.kind not in "fiu":
        raise FactorError(
            f"log_density of factor {sampler.name!r} returned shape {said.shape} for {len(values)} samples; give one number for "
            "each sample"
        )
    return np.where(np.isnan(said), -np.inf, said.astype(float))


def _check_chances(sampler: Sampler, places: Places, drawn: np.ndarray) -> None:
    """Chances that a draw came from the first place or from another one must be honest, in the mean and by how sure they are."""
    first = _log_density(sampler, places, 0, drawn[0])
    for k in range(1, len(drawn)):
        both = np.concatenate([drawn[0], drawn[k]])
        mine = np.arange(len(both)) < len(first)
        here = np.concatenate([first, _log_density(sampler, places, 0, drawn[k])])
        there = _log_density(sampler, places, k, both)
        nothing = np.isneginf(np.where(mine, here, there))
        if nothing.any():
            i = int(np.argmax(nothing))
            what = f"{np.array2string(both[i], precision=4)} was drawn, where it says that nothing can be"
            _refuse(sampler.name, places, 0 if mine[i] else k, what)
        poles = np.isposinf(here) | np.isposinf(
            there
        )  # leave out values where neither density is known; a choice by value alone keeps the chances honest
        mine, here, there = mine[~poles], here[~poles], there[~poles]
        sure = np.clip(here - there, -_DEEP, _DEEP)
        chance = special.expit(sure)
        for weight in (np.ones(len(sure)), sure):
            off, error = weight @ (mine - chance), np.sqrt(weight**2 @ (chance * (1 - chance)))
            if np.abs(off) > _FAR * error + _LOOSE * np.abs(weight).sum():
                what = (
                    f"it is too sure, or not sure enough, which draws came from there and which from {show(places, k)}: another "
                    "size or shape of noise"
                )
                if weight is not sure:
                    what = (
                        f"it takes {100 * chance.mean():.3g} % of all draws from there and from {show(places, k)} for draws from "
                        "there, which half of them were"
                    )
                _refuse(sampler.name, places, 0, what)


def _refuse(name: str, places: Places, k: int, what: str) -> None:
    raise FactorError(
        f"log_density of factor {name!r} is not that of the function's own draws: at {show(places, k)} {what}; mend it, or leave "
        "it out"
    )


def _check_evidence(sampler: Sampler, places: Places, drawn: np.ndarray) -> None:
    """Warn where the share of draws differs from the probability that the density gives."""
    logs: list[float] = []
    for k, mine in enumerate(drawn):
        half = len(mine) // 2
        first, fresh = np.sort(mine[:half]), mine[half:]
        if sampler.counted is not None:
            low, times = np.unique(first, return_counts=True)
            low = low[times > _OFTEN * half]
            mass = np.exp(_log_density(sampler, places, k, low))
            seen = (fresh[:, None] == low).sum(axis=0)
        elif len(np.unique(first)) < half:
            return  # values that come twice have a probability, and no density
        else:
            edges = np.quantile(first, np.linspace(0.5, _BINS + 0.5, _BINS + 1) / (_BINS + 1))
            at = np.linspace(edges[:-1], edges[1:], _NODES, axis=1)
            with np.errstate(over="ignore"):
                p = np.exp(_log_density(sampler, places, k, at.ravel()).reshape(at.shape))
            mass, coarse = (np.trapezoid(p[:, ::j], at[:, ::j], axis=1) for j in (1, 2))
            with np.errstate(invalid="ignore"):
                resolved = np.abs(mass - coarse) <= 0.5 * _SUM * mass
            mass, seen = mass[resolved], np.histogram(fresh, edges)[0][resolved]
        expected = len(fresh) * mass
        off = np.abs(seen - expected) > _FAR * np.sqrt(np.maximum(expected, seen)) + _SUM * expected + 1
        logs += np.log(np.maximum(expected[off], 1e-300) / np.maximum(seen[off], 1)).tolist()
    if logs:
        warnings.warn(
            f"log_density of factor {sampler.name!r} says up to {np.exp(max(logs, key=abs)):.3g} times as much as the function's "
            "own draws. Beliefs are right if what it lacks depends on the value alone, as a factorial does, and log_evidence is "
            "off by that for each observation",
            AccuracyWarning,
            stacklevel=2,
        )
