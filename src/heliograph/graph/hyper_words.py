"""The words of the modelling language for hyper-parameters; they are methods of `Builder`."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from heliograph.errors import ModelError
from heliograph.graph import hyper
from heliograph.graph.check import check_covariance, check_number, check_positive
from heliograph.graph.hyper import Hyper, HyperPrior
from heliograph.graph.hyper_matrices import lkj_prior, wishart_prior
from heliograph.graph.language.children import as_shape
from heliograph.graph.symbols import Symbol, has_symbols
from heliograph.graph.variable import ModelLike, Variable
from heliograph.numerics.checks import in_words

__all__ = ["flat", "half_cauchy", "half_normal", "lkj", "log_normal", "wishart"]


def half_normal(self: ModelLike, name: str, scale: float = 1.0, *, size: Any = None) -> Symbol:
    """A positive hyper-parameter: the absolute value of a Gaussian with standard deviation `scale`.

    A hyper-parameter may stand wherever a builder takes numbers, for example ``sd=s``, and in arithmetic with
    NumPy. `infer` integrates over all hyper-parameters of a model, at most six numbers.

    Parameters
    ----------
    name, scale
        Its name, and the standard deviation of the Gaussian.
    size
        The shape of an array of independent copies; None for a single one.
    """
    return _made(self, name, hyper.half_normal_prior(_positive(name, "scale", scale), _shape(name, size)))


def half_cauchy(self: ModelLike, name: str, scale: float = 1.0, *, size: Any = None) -> Symbol:
    """A positive hyper-parameter with a heavy tail: the absolute value of a Cauchy variable.

    Parameters
    ----------
    name, scale
        Its name, and the scale of the Cauchy variable, which is the median.
    size
        The shape of an array of independent copies; None for a single one.
    """
    return _made(self, name, hyper.half_cauchy_prior(_positive(name, "scale", scale), _shape(name, size)))


def log_normal(self: ModelLike, name: str, mean: float = 0.0, sd: float = 1.0, *, size: Any = None) -> Symbol:
    """A positive hyper-parameter whose logarithm is Gaussian with this mean and standard deviation.

    Parameters
    ----------
    name
        Its name.
    mean, sd
        Of its logarithm.
    size
        The shape of an array of independent copies; None for a single one.
    """
    middle = _number(name, "mean", mean)
    return _made(self, name, hyper.log_normal_prior(middle, _positive(name, "sd", sd), _shape(name, size)))


def flat(self: ModelLike, name: str, lower: float = 0.0, upper: float = 1.0, *, size: Any = None) -> Symbol:
    """A uniform hyper-parameter between two bounds: an AR coefficient, a correlation, degrees of freedom.

    Parameters
    ----------
    name
        Its name.
    lower, upper
        The bounds.
    size
        The shape of an array of independent copies; None for a single one.
    """
    low, high = _number(name, "lower", lower), _number(name, "upper", upper)
    if not low < high:
        raise ModelError(f"hyper-parameter {name!r}: lower must be below upper, not {low:g} and {high:g}")
    return _made(self, name, hyper.uniform_prior(low, high, _shape(name, size)))


def lkj(self: ModelLike, name: str, dimension: int, concentration: float = 1.0) -> Symbol:
    """A correlation matrix R as a hyper-parameter, with a density proportional to ``det(R) ** (concentration - 1)``.

    ``np.outer(s, s) * R`` is then a covariance. A matrix of dimension k counts as k (k - 1) / 2 numbers.

    Parameters
    ----------
    name
        Its name.
    dimension
        The number of rows, 2 to 4.
    concentration
        1 gives all correlation matrices the same density; more favours small correlations.
    """
    if not isinstance(cast(Any, dimension), (int, np.integer)) or not 2 <= dimension <= 4:
        raise ModelError(
            f"hyper-parameter {name!r}: a correlation matrix to be integrated over has 2, 3 or 4 rows, not {in_words(dimension)}"
        )
    return _made(self, name, lkj_prior(int(dimension), _positive(name, "concentration", concentration)))


def wishart(self: ModelLike, name: str, dof: float, scale: Any) -> Symbol:
    """A precision matrix as a hyper-parameter, with a Wishart prior of mean ``dof * scale``.

    Use it as ``model.gaussian(..., precision=W)``. `scale` is a matrix with 2 or 3 rows, which counts as 3 or 6
    numbers, and `dof` must be above its number of rows less 1. Unknown scales with an unknown correlation matrix
    are often easier to think about: ``half_normal(..., size=d)`` and `lkj`.

    Parameters
    ----------
    name
        Its name.
    dof, scale
        The degrees of freedom, and a matrix with 2 or 3 rows.

    Examples
    --------
    >>> import heliograph as hg
    >>> model = hg.Model()
    >>> W = model.wishart("W", 4.0, np.eye(2) / 4.0)
    >>> y = model.gaussian("y", np.zeros(2), precision=W, observed=[[1.0, 0.8], [-1.2, -1.0], [0.3, 0.5]])
    >>> bool(model.infer()[W].mean[0, 1] < 0)  # they rise and fall together
    True
    """
    if isinstance(scale, Variable) or has_symbols(scale):
        raise ModelError(f"hyper-parameter {name!r}: its scale must be a matrix of numbers")
    matrix = check_number(name, "scale", scale)
    if matrix.shape not in ((2, 2), (3, 3)):
        raise ModelError(
            f"hyper-parameter {name!r}: a precision matrix to be integrated over has 2 or 3 rows, but its scale has the shape "
            f"{matrix.shape}; for one number take model.gamma"
        )
    check_covariance(name, "scale", matrix, len(matrix))
    freedom = _positive(name, "dof", dof)
    if freedom <= len(matrix) - 1:
        raise ModelError(
            f"hyper-parameter {name!r}: dof must be above {len(matrix) - 1}, the number of rows less 1, not {freedom:g}"
        )
    return _made(self, name, wishart_prior(freedom, matrix))


def _made(model: ModelLike, name: str, prior: HyperPrior) -> Symbol:
    draft = model.draft
    draft.check_name(name)
    with draft.transaction():
        draft.take_name(name)
        made = Hyper(name, prior)
        draft.add_hyper(made)
    return Symbol(model, made)


def _number(name: str, what: str, value: Any) -> float:
    if isinstance(value, Variable) or has_symbols(value):
        raise ModelError(
            f"hyper-parameter {name!r}: its {what} must be a number; for a prior that depends on another hyper-parameter, "
            "multiply: s = scale * model.half_normal('unit')"
        )
    array = check_number(name, what, value)
    if array.ndim:
        raise ModelError(f"hyper-parameter {name!r}: its {what} must be one number; size= makes several alike")
    return float(array)


def _positive(name: str, what: str, value: Any) -> float:
    return float(check_positive(name, what, _number(name, what, value)))


def _shape(name: str, size: Any) -> tuple[int, ...]:
    return () if size is None else as_shape(f"hyper-parameter {name!r}", size)
