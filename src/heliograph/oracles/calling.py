"""The one place where a user's function is called, and where what it gives is checked.

Everything a black box can do wrong is caught here, once, and said in a sentence that names the factor and shows an
input that made it fail.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from heliograph.errors import FactorError, ModelError
from heliograph.families import Family
from heliograph.oracles.sampler import Sampler

__all__ = ["Values", "as_array", "call", "evaluate", "show", "try_values"]


class Values(NamedTuple):
    """What a factor gave for S samples, with what its output family does not hold marked and replaced."""

    out: np.ndarray  # (S, ...), inside the support everywhere
    wrong: (
        np.ndarray | None
    )  # (S,) 0 where all is well, 1 where there is no such value, 2 where it is infinite, 3 where nothing can be; None: nowhere
    complain: Callable[[int], FactorError]  # the error that names what was wrong with a sample


def evaluate(
    rng: np.random.Generator, sampler: Sampler, inputs: Mapping[str, Any], size: int | None = None
) -> np.ndarray:
    """The outputs of the factor at ``S`` samples: every input has them along its first axis, and so has the result.

    Raises `FactorError` where the function raises or gives something that its output family does not hold.
    """
    found = try_values(rng, sampler, inputs, size)
    if found.wrong is not None and ((found.wrong == 1) | (found.wrong == 2)).any():
        raise found.complain(int(np.argmax((found.wrong == 1) | (found.wrong == 2))))
    return found.out


def try_values(
    rng: np.random.Generator, sampler: Sampler, inputs: Mapping[str, Any], size: int | None = None
) -> Values:
    """The same, but values that the output family does not hold are only marked: there may be no mass where they are."""
    arrays = {k: np.asarray(inputs[k]) for k in sampler.inputs}
    n = len(next(iter(arrays.values()))) if arrays else size
    if n is None:
        raise ModelError(f"factor {sampler.name!r} has no inputs: say how many samples to draw")
    return _check(sampler, arrays, call(rng, sampler, arrays, n), n)


def call(rng: np.random.Generator, sampler: Sampler, arrays: Mapping[str, np.ndarray], n: int) -> Any:
    """Whatever the function gives for n samples, unchecked; raises `FactorError` if it raises."""
    # the caller checks the result, so NumPy's warnings (exp of a large number) are not needed
    arrays = {k: _locked(a) for k, a in arrays.items()}
    with np.errstate(all="ignore"):
        return _call(rng, sampler, arrays, n) if sampler.vectorized else _call_each(rng, sampler, arrays, n)


def _locked(values: Any) -> np.ndarray:
    """A read-only view for the user's function: a change in place would change the draws for all other uses."""
    view = np.asarray(values).view()
    view.flags.writeable = False
    return view


def _changes_its_input(sampler: Sampler, error: Exception) -> FactorError | None:
    """The sentence for a function that tried to write to its input, if that is what the error says."""
    if isinstance(error, ValueError) and "read-only" in str(error):
        return FactorError(
            f"factor {sampler.name!r} changes its input in place ({error}); let it make a new array, for example z = z + 1 "
            "in place of z += 1, or copy first with z = z.copy()"
        )
    return None


def _extra(rng: np.random.Generator, sampler: Sampler, n: int) -> dict[str, Any]:
    extra: dict[str, Any] = {"rng": rng} if sampler.stochastic else {}
    if sampler.sized:
        extra["size"] = n
    return extra


def _call(rng: np.random.Generator, sampler: Sampler, arrays: Mapping[str, np.ndarray], n: int) -> Any:
    try:
        given = sampler.function(**arrays, **_extra(rng, sampler, n))
    except FactorError:
        raise
    except Exception as error:
        k = _culprit(sampler, arrays, n)
        where = (
            f"at {show(arrays, k)}"
            if k is not None
            else f"it was given {n} samples, the first of them {show(arrays, 0)}"
        )
        if k is None:
            where += f"{_ranges(arrays)} (is it written for one sample at a time? say vectorized=False)"
        raise _changes_its_input(sampler, error) or FactorError(
            f"factor {sampler.name!r} raised {type(error).__name__}: {error}; {where}"
        ) from error
    if sampler.more:
        return (
            tuple(np.array(a) if isinstance(a, np.ndarray) else a for a in given)
            if isinstance(given, tuple | list)
            else given
        )
    # a copy: a function may return its argument, or a buffer that it fills again at its next call
    return np.array(as_array(sampler.name, given))


def _culprit(sampler: Sampler, arrays: Mapping[str, np.ndarray], n: int) -> int | None:
    """A sample at which the function raises whatever is beside it, by halves; None where no single sample is at fault."""
    if sampler.expensive or not arrays:
        return None

    def raises(start: int, stop: int) -> bool:
        some = {k: a[start:stop] for k, a in arrays.items()}
        try:
            sampler.function(**some, **_extra(np.random.default_rng(0), sampler, stop - start))
        except Exception:  # the sample itself was checked before
            return True
        return False

    start, stop = 0, n
    while stop - start > 1:
        middle = (start + stop) // 2
        if raises(start, middle):
            stop = middle
        elif raises(middle, stop):
            start = middle
        else:
            return None
    # an error of every sample is one of the function, not of this sample
    return start if n > 1 and not all(raises(k, k + 1) for k in {0, n // 2, n - 1}) else None


def as_array(name: str, given: Any) -> np.ndarray:
    """What a function gave as an array of whatever it holds; what is masked is NaN."""
    if isinstance(given, np.ma.MaskedArray):
        return np.ma.filled(given.astype(float), np.nan)
    try:
        return np.asarray(given)
    except Exception as error:
        raise FactorError(
            f"factor {name!r} returned a {type(given).__name__} that is no array ({type(error).__name__}: {error})"
        ) from error


def _call_each(rng: np.random.Generator, sampler: Sampler, arrays: Mapping[str, np.ndarray], n: int) -> Any:
    results = []
    for i in range(n):
        one = {k: a[i] if a.ndim > 1 else a[i].item() for k, a in arrays.items()}
        try:
            results.append(sampler.function(**one, **_extra(rng, sampler, 1)))
        except Exception as error:
            raise _changes_its_input(sampler, error) or FactorError(
                f"factor {sampler.name!r} raised {type(error).__name__}: {error}, at {show(arrays, i)}"
            ) from error
    try:
        return np.asarray(results)
    except ValueError as error:
        raise FactorError(
            f"factor {sampler.name!r} returned values of different shapes for different samples"
        ) from error


def _check(sampler: Sampler, arrays: dict[str, np.ndarray], out: Any, n: int) -> Values:
    out = as_array(sampler.name, out)
    rank = sampler.output.point_rank
    if out.ndim != 1 + rank or out.shape[0] != n:
        wanted = f"({n},)" if rank == 0 else f"({n}, d)"
        raise FactorError(
            f"factor {sampler.name!r} returned shape {out.shape} for {n} samples where {sampler.output.__name__} "
            f"needs {wanted}; the first sample was {show(arrays, 0)}"
        )
    if out.dtype.kind not in "fiub":
        raise FactorError(f"factor {sampler.name!r} returned {out.dtype} where numbers are needed")
    out = out.astype(float, copy=False)

    def complain(i: int) -> FactorError:
        remedy = "; if nothing can be there, say @factor(..., partial=True)" if np.isnan(out[i]).any() else ""
        return FactorError(
            f"factor {sampler.name!r} returned {np.array2string(out[i], precision=6)} at {show(arrays, i)}, "
            f"which is outside the support of {sampler.output.__name__}{remedy}"
        )

    if sampler.output.chart == "logit" and out.min() >= 0 and out.max() <= 1:
        return Values(
            out, None, complain
        )  # the usual case at a tenth of the cost of looking at each (a NaN is not above 0)
    held = np.asarray(sampler.output.in_support(_inside(sampler.output, out)))  # type: ignore[attr-defined]
    held = held & ~(np.isnan(out).any(axis=-1) if rank else np.isnan(out))
    if held.all():
        return Values(out, None, complain)
    infinite = np.isinf(out).any(axis=-1) & ~np.isnan(out).any(axis=-1) if rank else np.isinf(out)
    wrong = np.where(held, 0, np.where(infinite, 2, 1)).astype(np.int8)
    if sampler.impossible is not None:
        nothing = np.isnan(out).any(axis=-1) if rank else np.isnan(out)
        wrong[nothing] = 3
        sampler.impossible.count += int(nothing.sum())
    # any value of the support does: it is given no weight
    inner = {"log": 0.5, "logit": 0.5, "simplex": 1 / out.shape[1] if rank else 0.0}.get(sampler.output.chart, 0.0)
    safe = out[int(np.argmax(held))] if held.any() else np.full(out.shape[1:], inner)
    return Values(np.where(held.reshape((n,) + (1,) * rank), out, safe), wrong, complain)


def _inside(family: type[Family], out: np.ndarray) -> np.ndarray:
    """A true value next to the edge of an open support rounds onto it (a sigmoid at 40 is 1.0): that is no error."""
    if family.chart == "log":
        return np.where(out == 0, np.finfo(float).tiny, out)
    if family.chart == "logit":
        return np.where(out == 0, np.finfo(float).tiny, np.where(out == 1, np.nextafter(1.0, 0.0), out))
    return out


def _ranges(arrays: Mapping[str, np.ndarray]) -> str:
    """From where to where the inputs went: a simulator may raise at one that is absurd."""
    plain = {k: a for k, a in arrays.items() if a.ndim == 1 and a.size > 1 and a.dtype.kind in "fiu"}
    return "".join(f", {k} from {a.min():.4g} to {a.max():.4g}" for k, a in plain.items())


def show(arrays: Mapping[str, np.ndarray], i: int) -> str:
    """One sample for a sentence: every input with its value."""
    if not arrays:
        return "(no inputs)"
    return ", ".join(f"{k}={np.array2string(a[i], precision=6, threshold=8)}" for k, a in arrays.items())
