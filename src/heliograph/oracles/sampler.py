"""A user's forward function as a record: its inputs, its outputs, and how to call it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from heliograph.errors import ModelError
from heliograph.families import Family

__all__ = ["Impossible", "Sampler", "sampler_of"]


@dataclass
class Impossible:
    """Counts how often a partial function gave NaN."""

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
    impossible: Impossible | None = None  # counts NaN results, which mean impossible inputs; None: NaN is an error
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
    `partial`, NaN means that the inputs are impossible. `log_density` and `derivative` are functions that the user knows besides.

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
