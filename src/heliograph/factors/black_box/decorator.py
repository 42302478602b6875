"""``@factor(output=Family)``: a factor of a forward sampler."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from heliograph.errors import FileFormatError, ModelError
from heliograph.factors.black_box.box import BlackBox
from heliograph.factors.black_box.counts import counted
from heliograph.factors.black_box.oracle_calls import oracle_named
from heliograph.factors.black_box.saving import WHAT, take
from heliograph.families import Bernoulli, Family
from heliograph.families.packing import family_named
from heliograph.numerics.checks import in_words
from heliograph.oracles import sampler_of
from heliograph.storage import read_archive, understanding

__all__ = ["factor", "load_factor"]


def factor(
    function: Callable[..., Any] | None = None,
    *,
    output: type[Family] | type[int] | tuple[type[Family], ...] | None = None,
    vectorized: bool = True,
    expensive: bool = False,
    partial: bool = False,
    name: str | None = None,
    dimension: int | tuple[int | None, ...] | None = None,
    data_ranks: Mapping[str, int] | None = None,
    oracle: Any = None,
    log_density: Callable[..., Any] | None = None,
    derivative: Callable[..., Any] | None = None,
) -> Any:
    """Make a factor from a function that maps samples to samples, along the first axis of its arguments.

    Plain arrays given as arguments of the function are data, one value per message. A parameter named ``rng`` makes
    it stochastic. A tuple of families in `output` is for a function that returns a tuple: ``a, b = f(z)`` are then
    its outputs in a model, and `dimension` is a tuple too.

    ``f(z, observed=y)`` observes the output (NaN: missing), as ``model.observe(f(z), y)`` does.

    Parameters
    ----------
    output
        The family of the result. ``int`` is for a function that returns counts, which are always observed.
    dimension
        The length of the result if it is a vector, or the number of its categories.
    vectorized
        False if the function takes one sample at a time, which is slower.
    expensive
        True if the function is too slow to be called at every message.
    data_ranks
        How many axes one value of a data argument has, if that cannot be seen (1 for a vector).
    oracle
        The oracle for this factor, unless a run names another.
    partial
        True if the function gives NaN for impossible inputs (such as the square root of a negative number). They
        are counted in ``sampler.impossible``; otherwise NaN is an error.
    log_density
        The log density of the output as a function of its value and of the inputs by name. It replaces draws where
        the output is observed, for any number of inputs, and is compared with draws once. A deterministic function
        of one unknown number needs none.
    derivative
        The derivative of such a function by its unknown number, a function of the same arguments.

    Examples
    --------
    >>> import numpy as np
    >>> from heliograph.families import Beta, Gaussian
    >>> @factor(output=Beta)
    ... def logistic(z):
    ...     return 1 / (1 + np.exp(-z))
    >>> logistic.ports
    ('z', 'out')
    >>> logistic(np.zeros(2))
    array([0.5, 0.5])
    >>> logistic.belief("z", {"z": Gaussian([0.0], 1.0), "out": Beta([2.0], 1.0)}, oracle="quadrature").mean.round(4)
    array([0.4132])
    """
    if function is not None and not callable(function):
        raise ModelError("@factor needs the family of the function's result: @factor(output=Beta)")
    several: list[Any] = list(output) if isinstance(output, tuple) else [output]
    if not several or not all(_is_output(f) for f in several) or (len(several) > 1 and int in several):
        raise ModelError(
            "@factor needs the family of the function's result, for example @factor(output=Gaussian), or a tuple of families"
        )
    if len(several) > 1 and not (vectorized and log_density is None and derivative is None):
        raise ModelError("a factor of several outputs takes arrays (vectorized=True), and no log_density or derivative")

    _check_settings(vectorized, expensive, dimension, oracle, log_density, derivative)

    def wrap(f: Callable[..., Any]) -> BlackBox:
        known = {"partial": partial, "log_density": log_density, "derivative": derivative}
        family: Any = Bernoulli if output is int else several[0]
        sampler = sampler_of(f, family, name=name, vectorized=vectorized, expensive=expensive, **known)
        sampler = counted(sampler) if output is int else sampler._replace(more=tuple(several[1:]))
        return BlackBox(sampler, dimension=dimension, data_ranks=data_ranks, oracle=oracle)

    return wrap if function is None else wrap(function)


def _check_settings(
    vectorized: Any, expensive: Any, dimension: Any, oracle: Any, log_density: Any, derivative: Any
) -> None:
    for name, value in (("vectorized", vectorized), ("expensive", expensive)):
        if not isinstance(value, (bool, np.bool_)):
            raise ModelError(f"@factor: {name} must be True or False, not {in_words(value)}")
    for name, value in (("log_density", log_density), ("derivative", derivative)):
        if value is not None and not callable(value):
            raise ModelError(f"@factor: {name} must be a function, not {in_words(value)}")
    for n in dimension if isinstance(dimension, tuple) else (dimension,):
        if n is not None and not (isinstance(n, (int, np.integer)) and not isinstance(n, bool) and n > 0):
            raise ModelError(f"@factor: dimension must be a positive whole number, not {in_words(n)}")
    oracle_named(oracle)


def _is_output(family: Any) -> bool:
    return isinstance(family, type) and (family is int or issubclass(family, Family))


def load_factor(path: str | os.PathLike[str], function: Callable[..., Any] | BlackBox) -> BlackBox:
    """Make a factor of `function` with the knowledge stored in a file.

    `function` is the plain function, or a factor made from it, which is left unchanged.
    """
    arrays, header = read_archive(path, WHAT)
    with understanding(path):
        if "factor" not in header:
            raise FileFormatError(f"{os.path.basename(path)} is a file of Heliograph, but no {WHAT}")
        described = header["factor"]
        if isinstance(function, BlackBox):
            old, sampler = function, function.sampler
            new = BlackBox(sampler, dimension=old.dimension, data_ranks=old.data_ranks, oracle=old.oracle)
        else:
            output = family_named(described["output"])
            sampler = sampler_of(
                function,
                output,
                name=str(described["name"]),
                vectorized=bool(described["vectorized"]),
                expensive=bool(described["expensive"]),
                partial=bool(described.get("partial", False)),  # older files have none
            )
            ranks = {str(k): int(v) for k, v in described["data_ranks"].items() if k in sampler.inputs}
            new = BlackBox(sampler, dimension=described["dimension"], data_ranks=ranks)
        take(new, arrays, header)
    return new
