"""A user's forward function as data: what it takes, what it gives, and the one place where it is called.

Everything a black box can do wrong is caught here, once, and said in a sentence that names the factor and shows an
input that made it fail.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from heliograph.errors import FactorError, ModelError
from heliograph.families import Family

__all__ = ["Impossible", "Sampler", "Values", "call", "evaluate", "sampler_of", "try_values"]


@dataclass
class Impossible:
    """How often a function of a partial domain gave NaN."""

    count: int = 0


class Sampler(NamedTuple):
    """A forward function and what is known about it."""

    name: str
    function: Callable[..., Any]
    inputs: tuple[str, ...]  # the function's parameters in order, `rng` and `size` left out
    output: type[Family]
    stochastic: bool = False  # it has a parameter named `rng`
    sized: bool = False  # it has a parameter named `size`: the number of samples wanted
    vectorized: bool = True  # it takes arrays with the samples along the first axis
    expensive: bool = False  # too expensive to be evaluated at every message
    impossible: Impossible | None = None  # where it gives NaN nothing can be: how often that was; None: NaN is an error
    log_density: Callable[..., Any] | None = None  # of a value of the output, given first, and of the inputs by name
    derivative: Callable[..., Any] | None = None  # of a function of one unknown number, by that number
    counted: str | None = None  # the input that holds an observed count, where the output is whether the two are equal
    more: tuple[type[Family], ...] = ()  # families of further outputs, where the function gives a tuple

    @property
    def child(self) -> str:
        """The port of the output: "out", or "output" where an input already has that name."""
        return "output" if "out" in self.inputs else "out"

    @property
    def children(self) -> tuple[str, ...]:
        """The ports of all outputs in the order of the function's tuple: "out", "out_2" and so on."""
        return (self.child, *(f"{self.child}_{k + 2}" for k in range(len(self.more))))

    @property
    def ports(self) -> tuple[str, ...]:
        """The inputs, then further outputs, and last the (first) output."""
        return (*self.inputs, *self.children[1:], self.child)


def sampler_of(
    function: Callable[..., Any],
    output: type[Family],
    *,
    name: str | None = None,
    vectorized: bool = True,
    expensive: bool = False,
    partial: bool = False,
    log_density: Callable[..., Any] | None = None,
    derivative: Callable[..., Any] | None = None,
) -> Sampler:
    """Describe `function` by its signature.

    A parameter named ``rng`` makes it stochastic, one named ``size`` receives the number of samples; neither is a port. With
    `partial`, NaN says that nothing can be there. `log_density` and `derivative` are what else the user knows of it.

    >>> from heliograph.families import Gaussian
    >>> def step(x, drift, rng):
    ...     return x + drift + rng.standard_normal(x.shape)
    >>> s = sampler_of(step, Gaussian)
    >>> s.ports, s.stochastic
    (('x', 'drift', 'out'), True)
    """
    name = str(name or getattr(function, "__name__", None) or getattr(_inner(function), "__name__", "factor"))
    function = _by_name(function)
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError) as error:
        raise ModelError(f"factor {name!r} needs a function whose parameters can be read") from error
    loose = [p.name for p in parameters if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD, p.POSITIONAL_ONLY)]
    if loose:
        raise ModelError(f"factor {name!r} needs named parameters, one per port; {loose} cannot be ports")
    names = [p.name for p in parameters]
    inputs = tuple(n for n in names if n not in ("rng", "size"))
    stochastic, sized = "rng" in names, "size" in names
    if not inputs and not sized:
        raise ModelError(f"factor {name!r} has no inputs; give it a parameter named 'size', the number of samples")
    impossible = Impossible() if partial else None
    made = Sampler(name, function, inputs, output, stochastic, sized, vectorized, expensive, impossible)
    return made._replace(log_density=log_density, derivative=derivative)


def _inner(function: Callable[..., Any]) -> Any:
    """What a partial function is part of."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


class _Ufunc:
    """A NumPy function of one or two arrays, whose arguments have no names, with the names x, or x1 and x2."""

    def __init__(self, ufunc: np.ufunc) -> None:
        self.ufunc, self.__name__, self.__doc__ = ufunc, ufunc.__name__, ufunc.__doc__
        names = ["x"] if ufunc.nin == 1 else [f"x{k + 1}" for k in range(ufunc.nin)]
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        self.__signature__ = inspect.Signature([inspect.Parameter(n, kind) for n in names])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        bound = self.__signature__.bind(*args, **kwargs)
        return self.ufunc(*bound.args)


def _by_name(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose arguments can be given by name."""
    return _Ufunc(function) if isinstance(function, np.ufunc) and function.nout == 1 else function


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
    arrays = {k: _locked(inputs[k]) for k in sampler.inputs}
    n = len(next(iter(arrays.values()))) if arrays else size
    if n is None:
        raise ModelError(f"factor {sampler.name!r} has no inputs: say how many samples to draw")
    return _check(sampler, arrays, call(rng, sampler, arrays, n), n)


def call(rng: np.random.Generator, sampler: Sampler, arrays: Mapping[str, np.ndarray], n: int) -> Any:
    """Whatever the function gives for n samples, unchecked; raises `FactorError` if it raises."""
    # who asks checks the result, so what NumPy warns of on the way (exp of a large number) is not news
    with np.errstate(all="ignore"):
        return _call(rng, sampler, arrays, n) if sampler.vectorized else _call_each(rng, sampler, arrays, n)


def _locked(values: Any) -> np.ndarray:
    """A view that the user's function cannot write to: a change in place would change the draws under everyone's feet."""
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
        return sampler.function(**arrays, **_extra(rng, sampler, n))
    except Exception as error:
        raise _changes_its_input(sampler, error) or FactorError(
            f"factor {sampler.name!r} raised {type(error).__name__}: {error}; it was given {n} samples, "
            f"the first of them {_show(arrays, 0)}{_ranges(arrays)} (is it written for one sample at a time? say vectorized=False)"
        ) from error


def _call_each(rng: np.random.Generator, sampler: Sampler, arrays: Mapping[str, np.ndarray], n: int) -> Any:
    results = []
    for i in range(n):
        one = {k: a[i] if a.ndim > 1 else a[i].item() for k, a in arrays.items()}
        try:
            results.append(sampler.function(**one, **_extra(rng, sampler, 1)))
        except Exception as error:
            raise _changes_its_input(sampler, error) or FactorError(
                f"factor {sampler.name!r} raised {type(error).__name__}: {error}, at {_show(arrays, i)}"
            ) from error
    try:
        return np.asarray(results)
    except ValueError as error:
        raise FactorError(
            f"factor {sampler.name!r} returned values of different shapes for different samples"
        ) from error


def _check(sampler: Sampler, arrays: dict[str, np.ndarray], out: Any, n: int) -> Values:
    out = np.asarray(out)
    rank = sampler.output.point_rank
    if out.ndim != 1 + rank or out.shape[0] != n:
        wanted = f"({n},)" if rank == 0 else f"({n}, d)"
        raise FactorError(
            f"factor {sampler.name!r} returned shape {out.shape} for {n} samples where {sampler.output.__name__} "
            f"needs {wanted}; the first sample was {_show(arrays, 0)}"
        )
    if out.dtype.kind not in "fiub":
        raise FactorError(f"factor {sampler.name!r} returned {out.dtype} where numbers are needed")
    out = out.astype(float, copy=False)

    def complain(i: int) -> FactorError:
        return FactorError(
            f"factor {sampler.name!r} returned {np.array2string(out[i], precision=6)} at {_show(arrays, i)}, "
            f"which is outside the support of {sampler.output.__name__}"
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


def _show(arrays: Mapping[str, np.ndarray], i: int) -> str:
    if not arrays:
        return "(no inputs)"
    return ", ".join(f"{k}={np.array2string(a[i], precision=6, threshold=8)}" for k, a in arrays.items())
