"""The width of a Gaussian as users give it: a variance, a standard deviation, a precision or a covariance, read in one place."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from heliograph.errors import ModelError, UnsupportedError
from heliograph.families import Gamma
from heliograph.graph.check import as_floats, check_covariance, check_number, check_positive
from heliograph.graph.language.children import want
from heliograph.graph.quantity import Quantity

__all__ = ["Spread", "Width", "read_spread"]


class Spread(NamedTuple):
    """The arguments by which a user may say how wide a Gaussian is; exactly one of them is to be given."""

    variance: Any = None
    sd: Any = None
    precision: Any = None
    covariance: Any = None


class Width(NamedTuple):
    """How wide a Gaussian is; exactly one field is not None."""

    variance: np.ndarray | None = None  # known, positive
    precision: Quantity | None = None  # a Gamma variable
    covariance: Any = None  # as it was given: what it must fit is known to the caller


def read_spread(name: str, spread: Spread, mean: Any = None) -> Width:
    """What a user said of the width of the variable `name`.

    Parameters
    ----------
    name
        The variable, for sentences.
    spread
        The arguments, as they were given.
    mean
        The mean, where it tells a matrix from an array of scalars.
    """
    given = [field for field, value in spread._asdict().items() if value is not None]
    if len(given) != 1:
        found = "none was given" if not given else f"{' and '.join(f'{g}=' for g in given)} were given"
        raise ModelError(
            f"variable {name!r}: give exactly one of variance=, sd=, precision= and covariance= ({found}), "
            "for example sd=1.0"
        )
    if spread.covariance is not None:
        return Width(covariance=spread.covariance)
    for what in ("variance", "sd"):
        value = getattr(spread, what)
        if isinstance(value, Quantity):
            raise UnsupportedError(
                f"variable {name!r}: a random {what} ({value.name!r}) has no factor; "
                "give a Gamma variable as sd= or precision= instead, or a hyper-parameter such as model.half_normal(...)"
            )
    if isinstance(spread.precision, Quantity):
        return Width(precision=want(name, "precision", spread.precision, Gamma))
    what = given[0]
    value = getattr(spread, what)
    matrix = _matrix(name, what, value, mean)
    if matrix is not None:
        return Width(covariance=np.linalg.inv(check_covariance(name, "precision", matrix, matrix.shape[-1])))
    number = check_positive(name, what, value)
    with np.errstate(over="ignore", under="ignore"):
        variance = number if what == "variance" else number**2 if what == "sd" else 1.0 / number
    if not np.all((variance > 0) & np.isfinite(variance)):
        raise ModelError(f"variable {name!r}: its {what} is too small or too large to be squared or inverted")
    return Width(variance=variance)


def _matrix(name: str, what: str, value: Any, mean: Any) -> np.ndarray | None:
    """A matrix that was given as the precision of a vector; one where only numbers are taken is refused."""
    array = as_floats(f"variable {name!r}: its {what}", value, "a number, an array or a variable")
    d = _length(name, what, array, mean)
    if d is None or d < 2 or array.shape[-2:] != (d, d) or not np.array_equal(array, np.swapaxes(array, -1, -2)):
        return None
    if what == "precision":
        return array
    write = {"variance": "the matrix", "sd": "S @ S"}[what]
    raise ModelError(
        f"variable {name!r}: {what}= takes one number per scalar, and a ({d}, {d}) matrix was given; "
        f"for one vector of {d} entries write covariance={write}"
    )


def _length(name: str, what: str, matrix: np.ndarray, mean: Any) -> int | None:
    """The number of entries of a mean that may be one vector; of rows of vectors, where a matrix fits no array of scalars."""
    if isinstance(mean, Quantity):
        if mean.node.dimension is not None:
            return mean.node.dimension
        shape = mean.shape
    else:
        shape = () if mean is None else check_number(name, "mean", mean).shape
    if what != "precision" or len(shape) < 2 or matrix.ndim != 2:
        return shape[0] if len(shape) == 1 else None
    if shape[-2] not in (1, len(matrix)):
        return shape[-1]
    d = shape[-1]
    if d > 1 and matrix.shape == (d, d) and np.array_equal(matrix, matrix.T) and _is_positive(matrix):
        raise ModelError(
            f"variable {name!r}: its precision, a ({d}, {d}) matrix, could be that of every row or one number for each of "
            f"({d}, {d}) means; write covariance=np.linalg.inv(...) or variance=1 / ..."
        )
    return None


def _is_positive(matrix: np.ndarray) -> bool:
    return bool(np.linalg.eigvalsh(matrix)[0] > 0)
