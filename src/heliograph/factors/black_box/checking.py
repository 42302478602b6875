"""Checks of a user's function: it is called at a few places before its first message.

Each sample must have its own value, whatever the others are; a function without an ``rng`` must not draw, and one with an
``rng`` must draw from that alone, a number of its own for each sample. Mistakes of this kind leave every shape right and every
message wrong.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from heliograph.errors import AccuracyWarning, FactorError
from heliograph.factors.black_box.densities import check_log_density
from heliograph.factors.black_box.reading import changed, numbers_read
from heliograph.families import Family
from heliograph.oracles import Sampler
from heliograph.oracles.calling import as_array, call, show

__all__ = ["FunctionRecord", "Witness"]

_PLACES = 4  # a function that draws shows it at the first of them
_COPIES = 8  # of one sample: the chance that all are equal in each of `_CALLS` calls is below 1e-7
_CALLS = 4
_DRAWS = 128  # of one place, beside as many of another
_FAR = 7.0  # standard errors between two means
_NOISE = 1e-6  # of the spread of values: sums in another order, by other threads, are no noise
# of the spread: a solver that adapts its steps to all samples errs by less, a mean of the samples by more
_SOLVER = 1e-2
_ULPS = 16  # times the rounding of the values in their own precision


class Witness(NamedTuple):
    """What a function gave at a few places."""

    places: dict[str, np.ndarray]  # input -> (n, ...)
    values: np.ndarray  # (n, any number): all outputs, one after the other
    stochastic: bool  # drawn with a fixed seed


@dataclass
class FunctionRecord:
    """What is known of one function: its values at a few places when messages were learned, and the numbers that it reads."""

    witness: Witness | None = None
    # numbers besides its arguments (`numbers_read`); None: not seen in this process
    read: dict[str, bytes] | None = None

    def check(self, sampler: Sampler, incoming: Mapping[str, Any], learned: bool) -> int:
        """Raise `FactorError` where the function has changed, or is none of its arguments; return the number of samples used.

        A function that was seen is called again only if numbers that it reads have changed. `learned` says whether anything
        has been learned that could be wrong now.
        """
        if self.witness is not None and self.read is not None:
            names = changed(self.read, numbers_read(sampler.function))
            if not names:
                return 0
            if learned:
                return self._compare(sampler, self.witness, names)
            self.witness = None
        before = numbers_read(sampler.function)
        loaded = self.witness
        places = _places(sampler, incoming) if loaded is None else loaded.places
        if places is None:
            return 0
        one, rounding, spent = _values(sampler, places, 0)
        if loaded is not None:
            _refuse_other(sampler.name, loaded, one, learned)
        spent += (_check_draws if sampler.stochastic else _check_samples)(sampler, places, one, rounding)
        unknown = [p for p in sampler.inputs if isinstance(incoming[p], Family)]
        spent += check_log_density(sampler, places, unknown) if loaded is None else 0
        self.witness = loaded or Witness(places, one, sampler.stochastic)
        own = changed(before, numbers_read(sampler.function))  # it reads a count of its own calls, for example
        self.read = {name: digest for name, digest in before.items() if name not in own}
        return spent

    def _compare(self, sampler: Sampler, witness: Witness, names: list[str]) -> int:
        """Call a function again because numbers that it reads have changed; return the number of samples."""
        now, _, spent = _values(sampler, witness.places, 0)
        _refuse_other(sampler.name, witness, now, True, f" ({', '.join(names[:3])} changed)")
        self.read = numbers_read(sampler.function)
        return spent


def _refuse_other(name: str, witness: Witness, now: np.ndarray, learned: bool, why: str = "") -> None:
    """Raise, or warn of draws, where a function gives other values than when its messages were learned."""
    if not learned:
        return
    if now.shape != witness.values.shape:
        gap = np.full((len(now), 1), np.inf)
    else:
        gap = _gap(now, witness.values)
    if gap.max(initial=0.0) <= _NOISE:
        return
    k = int(np.argmax(gap.max(axis=1)))
    was, given = (np.array2string(a[k].squeeze(), precision=6, threshold=8) for a in (witness.values, now))
    what = f"factor {name!r} is not the function whose messages were learned{why}: at {show(witness.places, k)} it gave {was}"
    if witness.stochastic:  # the same distribution may be drawn from in another way
        warnings.warn(
            f"{what} by one seed, and gives {given}; unless only the way of drawing changed, its messages are wrong: "
            "call .forget()",
            AccuracyWarning,
            stacklevel=2,
        )
        return
    raise FactorError(
        f"{what}, and gives {given}; call .forget() to learn it anew, or make what changes an argument (data)"
    )


# ---- private ------------------------------------------------------------------------------------------------------
def _places(sampler: Sampler, incoming: Mapping[str, Any]) -> dict[str, np.ndarray] | None:
    """Samples of the inputs, from the first rows of a plate; None where a message has none."""
    rng, plate = np.random.default_rng(0), len(incoming[sampler.child])
    if not plate:
        return None
    rows = np.arange(1 if sampler.expensive else _PLACES) % plate
    places: dict[str, np.ndarray] = {}
    for port in sampler.inputs:
        message = incoming[port]
        if not isinstance(message, Family):
            a = np.asarray(message)
            places[port] = np.broadcast_to(a, rows.shape).copy() if a.ndim == 0 else a[rows]
        elif message.point is not None and message.is_point[rows].all():
            places[port] = np.asarray(message.point)[rows]
        elif message[rows].proper.all():
            places[port] = np.asarray(message[rows].sample(rng))
        else:
            return None
    return places


def _values(sampler: Sampler, places: Mapping[str, np.ndarray], seed: int) -> tuple[np.ndarray, float, int]:
    """What the function gives (n, any number), the relative rounding of its numbers, and n."""
    n = len(next(iter(places.values()))) if places else _COPIES
    given = call(np.random.default_rng(seed), sampler, places, n)
    several = given if sampler.more and isinstance(given, tuple | list) else (given,)
    outputs = [as_array(sampler.name, a) for a in several]
    if any(a.dtype.kind not in "fiub" or a.shape[:1] != (n,) for a in outputs):
        return np.zeros((n, 0)), 0.0, n  # there are no values; the oracle reports the reason
    rounding = max((float(np.finfo(a.dtype).eps) for a in outputs if a.dtype.kind == "f"), default=0.0)
    return np.concatenate([a.reshape(n, -1).astype(float) for a in outputs], axis=1), rounding, n


def _gap(
    a: np.ndarray, b: np.ndarray, rounding: float = float(np.finfo(float).eps), of: np.ndarray | None = None
) -> np.ndarray:
    """The distance of two sets of values in units of their spread (or that of more samples), less what rounding explains."""
    both = np.concatenate([a, b] if of is None else [a, b, of])
    finite = np.where(np.isfinite(both), both, 0.0)
    spread = np.maximum(np.ptp(finite, axis=0), 0.0)
    size = np.abs(finite).max(axis=0, initial=0.0)
    spread = np.where(spread > 1e3 * _ULPS * rounding * size, spread, np.maximum(size, np.finfo(float).tiny))
    with np.errstate(invalid="ignore", over="ignore"):
        off = np.maximum(np.abs(a - b) - _ULPS * rounding * size, 0.0) / spread
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    return np.where(same, 0.0, np.where(np.isnan(off), np.inf, off))


def _check_samples(sampler: Sampler, places: Mapping[str, np.ndarray], one: np.ndarray, rounding: float) -> int:
    """The same values must come in halves and in another order; gives the number of samples taken."""
    n, spent, gap = len(one), 0, 0.0
    for some in np.array_split(np.arange(n), 2 if n > 1 else 1):
        backwards = some[::-1]
        two, _, m = _values(sampler, {p: a[backwards] for p, a in places.items()}, 0)
        spent += m
        if one.shape[1:] == two.shape[1:]:  # the oracle reports values of a wrong shape
            gap = max(gap, float(_gap(one[backwards], two, rounding, one).max(initial=0.0)))
    if gap <= _NOISE:
        return spent
    three, _, m3 = _values(sampler, places, 0)
    if one.shape != three.shape or _gap(one, three, rounding).max(initial=0.0) > _NOISE:
        raise FactorError(
            f"factor {sampler.name!r} gave two different values at the same inputs, so it draws random numbers of its own, or "
            "remembers its calls: give it a parameter named rng, and draw from that "
            "(def f(z, rng): return z + rng.standard_normal(z.shape))"
        )
    what = (
        f"factor {sampler.name!r}: the value of a sample depends on the samples that are given beside it, or on its place among "
        "them (a mean, a sum, a sort over the first axis, numbers drawn from a generator of its own?)"
    )
    if gap > _SOLVER:
        raise FactorError(
            f"{what}; each sample must have its own value: work along the other axes, or say vectorized=False"
        )
    warnings.warn(
        f"{what}, by {gap:.1g} of its spread, as solvers do that adapt their steps to all samples: its messages cannot be "
        "more accurate",
        AccuracyWarning,
        stacklevel=2,
    )
    return spent + m3


def _check_draws(sampler: Sampler, places: Mapping[str, np.ndarray], one: np.ndarray, rounding: float) -> int:
    """The same generator must give the same values, and each sample a number of its own; gives the number of samples."""
    two, _, spent = _values(sampler, places, 0)
    if one.shape != two.shape or _gap(one, two, rounding).max(initial=0.0) > _NOISE:
        raise FactorError(
            f"factor {sampler.name!r} gave two different values with one generator: it draws from another than its rng, or "
            "remembers its calls; draw from rng alone, or no run can be repeated"
        )
    if not sampler.vectorized or sampler.expensive:
        return spent
    alike = {p: np.repeat(a[:1], _COPIES, axis=0) for p, a in places.items()}
    calls = []
    for seed in range(1, _CALLS + 1):
        values, _, m = _values(sampler, alike, seed)
        calls.append(values)
        spent += m
    if all((v == v[:1]).all() for v in calls) and any((v != calls[0]).any() for v in calls):
        raise FactorError(
            f"factor {sampler.name!r} draws one number for all samples: {_COPIES} equal samples got equal values, and others in "
            "the next call; draw one for each sample (rng.normal(size=z.shape) in place of rng.normal())"
        )
    return spent + _check_companions(sampler, places)


def _check_companions(sampler: Sampler, places: Mapping[str, np.ndarray]) -> int:
    """Draws of one place must have one law whatever is drawn beside them; gives the number of samples."""
    if not places or all((a[:1] == a[1:2]).all() for a in places.values()):
        return 0
    first = np.zeros(2 * _DRAWS, dtype=int)
    rows = np.where(np.arange(2 * _DRAWS) < _DRAWS, 0, 1)
    alone, _, n = _values(sampler, {p: a[first] for p, a in places.items()}, _CALLS + 1)
    beside, _, m = _values(sampler, {p: a[rows] for p, a in places.items()}, _CALLS + 2)
    alone, beside = alone[:_DRAWS], beside[:_DRAWS]
    if alone.shape == beside.shape and np.isfinite(alone).all() and np.isfinite(beside).all():
        error = np.sqrt((alone.var(axis=0) + beside.var(axis=0)) / _DRAWS)
        size = np.maximum(np.abs(alone).max(axis=0, initial=0.0), np.finfo(float).tiny)
        if (np.abs(alone.mean(axis=0) - beside.mean(axis=0)) > _FAR * error + _NOISE * size).any():
            raise FactorError(
                f"factor {sampler.name!r}: draws at one input have another mean beside others (a mean or a sort over the first "
                "axis?); each sample must have its own value: work along the other axes, or say vectorized=False"
            )
    return n + m
