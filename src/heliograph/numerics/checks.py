"""What counts as a number, and how a value is named in a sentence."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from heliograph.errors import ModelError

__all__ = [
    "as_matrix",
    "as_real",
    "check_fit",
    "check_rng",
    "check_seed",
    "generator_of",
    "in_words",
    "listed",
    "short",
]


def as_real(label: str, value: Any) -> np.ndarray:
    """`value` as a float array; what is not made of real numbers is refused with a sentence that begins with `label`."""
    if type(value) is np.ndarray and value.dtype == np.float64:
        return value
    try:
        array = None if value is None else np.asarray(value)
        if (
            array is not None and array.dtype == object and array.size
        ):  # Python's own numbers, for example Fraction, are welcome; words are not
            array = array.astype(float)
    except (TypeError, ValueError):
        array = None
    if array is None or array.dtype.kind not in "fiub":
        raise ModelError(f"{label} must be real numbers, not {_what_else(value, array)}")
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise ModelError(
            f"{label} must be real numbers, not an array with masked entries; fill them in, for example with .filled(0.0), or drop "
            "those rows"
        )
    return array.astype(float, copy=False)


def _what_else(value: Any, array: np.ndarray | None) -> str:
    """What a value is that is not made of real numbers, and what to do about it."""
    if hasattr(value, "toarray"):
        return "a sparse matrix; write it as an array, with .toarray()"
    dtype = getattr(value, "dtype", None)
    if dtype is not None:
        return f"{dtype} values"
    kind = f"a {type(value).__name__}"
    if not isinstance(value, (list, tuple)):
        return kind
    if array is None:
        return f"{kind} (with rows of different lengths?)" if _has_rows(value) else f"{kind} of other things"
    return kind + {
        "U": " of words",
        "S": " of words",
        "c": " of complex numbers",
        "M": " of dates",
        "m": " of durations",
    }.get(array.dtype.kind, f" of {array.dtype} values")


def _has_rows(value: Any) -> bool:
    return any(isinstance(v, (Sequence, np.ndarray)) and not isinstance(v, (str, bytes)) for v in value)


def in_words(value: Any) -> str:
    """A value for a sentence: itself if it is short, else what it is."""
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes, np.generic)):
        return repr(value)[:60]
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} values and shape {value.shape}"
    return f"a {type(value).__name__}"


def listed(items: Sequence[Any], most: int) -> str:
    """The first `most` of several things for a sentence.

    >>> listed(["a", "b", "c"], 2)
    "'a', 'b', ..."
    """
    return ", ".join(repr(item) for item in items[:most]) + (", ..." if len(items) > most else "")


def check_seed(seed: Any) -> None:
    """Raise unless `seed` is a whole number of 0 or more, or a generator."""
    whole = isinstance(seed, numbers.Integral) and not isinstance(seed, (bool, np.bool_)) and int(seed) >= 0
    if not whole and not isinstance(seed, (np.random.Generator, np.random.SeedSequence)):
        raise ModelError(f"seed must be a whole number of 0 or more, or a numpy.random.Generator, not {in_words(seed)}")


def generator_of(seed: Any) -> np.random.Generator:
    """A generator of random numbers from a seed, or the generator that was given."""
    check_seed(seed)
    return np.random.default_rng(cast(Any, seed))


def check_rng(rng: Any) -> None:
    """Raise unless `rng` is a generator: whoever draws says what to draw from."""
    if not isinstance(rng, np.random.Generator):
        raise ModelError(
            f"sample needs a numpy.random.Generator, for example np.random.default_rng(0), not {in_words(rng)}"
        )


def check_fit(family: str, first: str, a: np.ndarray, second: str, b: np.ndarray) -> None:
    """Raise unless two parameters can be broadcast."""
    try:
        np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        raise ModelError(
            f"a {family}'s {first} of shape {a.shape} does not fit its {second} of shape {b.shape}"
        ) from None


def short(value: Any) -> str:
    """An array for a sentence: four digits, few entries, one line."""
    text = np.array2string(np.asarray(value), precision=4, threshold=6, separator=", ")
    return text if "\n" not in text else " ".join(text.split())  # a sentence has one line


def as_matrix(a: Any, name: str) -> np.ndarray:
    """`a` as a matrix of finite numbers, one row per case."""
    a = np.asarray(a, dtype=float)
    if a.ndim != 2:
        raise ModelError(f"{name} must be a matrix, one row per case; this one has {a.ndim} axes")
    if not np.isfinite(a).all():
        raise ModelError(f"{name} holds {int((~np.isfinite(a)).sum())} entries that are not finite numbers")
    return a
