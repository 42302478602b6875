"""Noise other than Gaussian: Student's t, Laplace, and a uniform one."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from heliograph.errors import ModelError
from heliograph.factors import LaplaceFactor, StudentT, Uniform
from heliograph.families import Gaussian
from heliograph.graph.check import check_number, check_positive
from heliograph.graph.draft import Draft
from heliograph.graph.language.children import Entries, Kind, child, fitted_size, want
from heliograph.graph.language.keywords import EntryKeywords
from heliograph.graph.quantity import Argument, Quantity

__all__ = ["laplace", "student_t", "uniform"]


def student_t(
    draft: Draft,
    name: str,
    mean: Argument = 0.0,
    scale: Any = 1.0,
    dof: Any = 4.0,
    **keywords: Unpack[EntryKeywords],
) -> Quantity:
    """A variable with Student's t noise around `mean`: the farther an outlier, the less it pulls.

    Parameters
    ----------
    mean
        The centre: a number, an array or a Gaussian variable.
    scale, dof
        The scale and the degrees of freedom: numbers or hyper-parameters. A Gamma variable is taken for a
        hyper-parameter.

    Examples
    --------
    >>> import heliograph as hg
    >>> model = hg.Model()
    >>> mean = model.gaussian("mean", 0.0, sd=10.0)
    >>> y = model.student_t("y", mean, scale=1.0, dof=4.0, observed=[0.1, -0.2, 0.3, 25.0])
    >>> bool(model.infer()[mean].mean < 1.0)
    True
    """
    data = {"scale": check_positive(name, "scale", scale), "dof": check_positive(name, "dof", dof)}
    entries = Entries(**keywords)
    return child(draft, name, StudentT(), {"mean": _mean(name, mean)}, data, Kind(Gaussian), entries)


def laplace(
    draft: Draft,
    name: str,
    mean: Argument = 0.0,
    scale: Any = 1.0,
    **keywords: Unpack[EntryKeywords],
) -> Quantity:
    """A variable with Laplace noise ``exp(-|x - mean| / scale) / (2 scale)``; its variance is ``2 scale^2``.

    The arguments are those of `student_t`.

    Examples
    --------
    >>> import heliograph as hg
    >>> model = hg.Model()
    >>> x = model.laplace("x", 1.0, scale=2.0)
    >>> float(model.infer()[x].variance.round(9))
    8.0
    """
    data = {"scale": check_positive(name, "scale", scale)}
    entries = Entries(**keywords)
    return child(draft, name, LaplaceFactor(), {"mean": _mean(name, mean)}, data, Kind(Gaussian), entries)


def _mean(name: str, mean: Any) -> Quantity | np.ndarray:
    return want(name, "mean", mean, Gaussian) if isinstance(mean, Quantity) else check_number(name, "mean", mean)


def uniform(draft: Draft, name: str, lower: Any, upper: Any, **keywords: Unpack[EntryKeywords]) -> Quantity:
    """A variable with a uniform distribution between two known bounds, and Gaussian messages.

    For a uniform hyper-parameter, use `flat`.

    Parameters
    ----------
    lower, upper
        The bounds, numbers or arrays.

    Examples
    --------
    >>> import heliograph as hg
    >>> model = hg.Model()
    >>> x = model.uniform("x", 0.0, 6.0)
    >>> round(float(model.infer()[x].variance), 9)
    3.0
    """
    entries = Entries(**keywords)
    low, high = check_number(name, "lower", lower), check_number(name, "upper", upper)
    shape = fitted_size(name, np.broadcast_shapes(low.shape, high.shape), entries.size)
    if not np.all(low < high):
        raise ModelError(f"variable {name!r}: every lower bound must be below its upper bound")
    data = {"lower": np.broadcast_to(low, shape), "upper": np.broadcast_to(high, shape)}
    return child(draft, name, Uniform(), {}, data, Kind(Gaussian), entries)
