"""Gaussian processes over given inputs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from heliograph.errors import ModelError
from heliograph.families import MultivariateGaussian
from heliograph.graph.check import check_number, check_positive
from heliograph.graph.draft import Draft
from heliograph.graph.language.arrays import components
from heliograph.graph.language.children import Entries, with_prior
from heliograph.graph.quantity import Quantity
from heliograph.numerics.checks import in_words

__all__ = ["KERNELS", "gp"]

# of the variance, added to it: without it a smooth kernel of near inputs is not positive definite in doubles
_NUGGET = 1e-6


def _rbf(r: np.ndarray) -> np.ndarray:
    return np.exp(-0.5 * r**2)


def _matern32(r: np.ndarray) -> np.ndarray:
    s = np.sqrt(3.0) * r
    return (1.0 + s) * np.exp(-s)


def _matern52(r: np.ndarray) -> np.ndarray:
    s = np.sqrt(5.0) * r
    return (1.0 + s + s**2 / 3.0) * np.exp(-s)


KERNELS = {"rbf": _rbf, "matern32": _matern32, "matern52": _matern52, "periodic": None}


def gp(
    draft: Draft,
    name: str,
    inputs: Any,
    kernel: str = "rbf",
    *,
    length_scale: Any = 1.0,
    amplitude: Any = 1.0,
    period: Any = None,
    mean: Any = 0.0,
) -> Quantity:
    """A Gaussian process at given inputs: n Gaussian variables, kept joint.

    A millionth of the variance is added to every variance, so that inputs close to each other do no harm.

    Parameters
    ----------
    name
        The name of the n variables.
    mean
        Of the values: a number or an array.
    inputs
        ``(n,)`` numbers or ``(n, d)`` points.
    kernel
        "rbf", "matern32", "matern52" or "periodic" (with `period`).
    length_scale, amplitude, period
        Numbers or hyper-parameters; `amplitude` is a standard deviation.

    Examples
    --------
    >>> import heliograph as hg
    >>> model = hg.Model()
    >>> f = model.gp("f", [0.0, 1.0, 2.0], length_scale=1.0, amplitude=2.0)
    >>> y = model.gaussian("y", f, sd=0.1, observed=[0.0, 1.0, 0.5])
    >>> model.infer()[f].mean.round(2)
    array([0.  , 0.99, 0.5 ])
    """
    x = check_number(name, "inputs", inputs)
    x = x[:, None] if x.ndim == 1 else x
    if x.ndim != 2:
        raise ModelError(
            f"process {name!r}: inputs must be (n,) numbers or (n, d) points, not shape {np.shape(inputs)}"
        )
    covariance = _covariance(name, x, _Kernel(kernel, length_scale, amplitude, period))
    centre = np.broadcast_to(check_number(name, "mean", mean), (len(x),))
    vector = with_prior(draft, name, MultivariateGaussian(centre, covariance), len(x), Entries())
    return components(draft, vector)


class _Kernel(NamedTuple):
    """A covariance function with its numbers."""

    name: Any
    length_scale: Any  # one number, or one per column of the inputs
    amplitude: Any  # a standard deviation
    period: Any  # of the periodic kernel


def _covariance(name: str, x: np.ndarray, kernel: _Kernel) -> np.ndarray:
    if not isinstance(kernel.name, str) or kernel.name not in KERNELS:
        raise ModelError(f"process {name!r}: kernel must be one of {sorted(KERNELS)}, not {in_words(kernel.name)}")
    length = check_positive(name, "length_scale", kernel.length_scale)
    amplitude = check_positive(name, "amplitude", kernel.amplitude)
    if length.shape not in ((), (1,), (x.shape[1],)) or amplitude.ndim:
        raise ModelError(
            f"process {name!r}: length_scale is one number or {x.shape[1]} of them, and amplitude one number, not shapes "
            f"{length.shape} and {amplitude.shape}"
        )
    gaps = x[:, None, :] - x[None, :, :]
    shape = KERNELS[kernel.name]
    if shape is not None and kernel.period is not None:
        raise ModelError(f"process {name!r}: period= is of the periodic kernel, and this one is {kernel.name!r}")
    if shape is None:
        if kernel.period is None:
            raise ModelError(f"process {name!r}: the periodic kernel needs period=")
        period = check_positive(name, "period", kernel.period)
        correlation = np.exp(-2.0 * ((np.sin(np.pi * gaps / period) / length) ** 2).sum(axis=2))
    else:
        correlation = shape(np.sqrt(((gaps / length) ** 2).sum(axis=2)))
    return amplitude**2 * (correlation + _NUGGET * np.eye(len(x)))
