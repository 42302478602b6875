"""``@factor(output=Family)``: a factor of a forward sampler."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from heliograph.errors import ModelError
from heliograph.factors.black_box.box import BlackBox
from heliograph.families import Family
from heliograph.oracles import sampler_of

__all__ = ["factor"]


def factor(
    function: Callable[..., Any] | None = None,
    *,
    output: type[Family] | None = None,
    vectorized: bool = True,
    expensive: bool = False,
    partial: bool = False,
    name: str | None = None,
    dimension: int | None = None,
    data_ranks: Mapping[str, int] | None = None,
    oracle: Any = None,
) -> Any:
    """Make a factor of a forward sampler: a function of samples along the first axis of its arguments.

    A parameter named ``rng`` makes it stochastic. `output` is the family of its result (with `dimension`, if that is a
    vector or a category). A function of one sample at a time is right, and slow, with ``vectorized=False``; one that
    is too expensive to be called at every message says ``expensive=True``. Plain arrays given as arguments are data, one
    value per message; `data_ranks` says how many axes a value has where that cannot be seen (1 for a vector). `oracle`
    is what answers for it unless a run says otherwise. With ``partial=True`` the function gives NaN where nothing can be (the
    square root of a negative number): such inputs are impossible, and counted in ``sampler.impossible``.

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
    if output is None or not (isinstance(output, type) and issubclass(output, Family)):
        raise ModelError("@factor needs the family of the function's result, for example @factor(output=Gaussian)")

    def wrap(f: Callable[..., Any]) -> BlackBox:
        sampler = sampler_of(f, output, name=name, vectorized=vectorized, expensive=expensive, partial=partial)
        return BlackBox(sampler, dimension=dimension, data_ranks=data_ranks, oracle=oracle)

    return wrap if function is None else wrap(function)
