"""The exceptions and warnings of the package. Each message is one sentence that names the problem and the remedy."""

from __future__ import annotations

__all__ = [
    "AccuracyWarning",
    "ContradictionError",
    "ConvergenceWarning",
    "FactorError",
    "FileFormatError",
    "HeliographError",
    "ImproperError",
    "ModelError",
    "OracleWarning",
    "UnsupportedError",
]


class HeliographError(Exception):
    """Base class of every exception that this package raises on purpose."""


class ModelError(HeliographError, ValueError):
    """The model cannot be run as written: a wrong shape, value or structure, found before any sweep."""


class UnsupportedError(HeliographError, TypeError):
    """No factor computes this combination of families; the message names the nearest one that works."""


class ImproperError(HeliographError, ArithmeticError):
    """A proper distribution was needed and there is none (for example, to sample a uniform Gaussian)."""


class ContradictionError(HeliographError, ArithmeticError):
    """The model contradicts itself: two point masses disagree, or a constraint has probability zero."""


class FactorError(HeliographError, RuntimeError):
    """A black-box function raised an exception, or returned a value outside the support of its output family."""


class FileFormatError(HeliographError, ValueError):
    """A saved file is corrupt, truncated, of a newer format, or not one of this package's."""


class ConvergenceWarning(UserWarning):
    """Inference stopped before the beliefs settled; the message names the variable that still moves."""


class OracleWarning(UserWarning):
    """An oracle could not compute some messages; the old ones were kept."""


class AccuracyWarning(UserWarning):
    """A result may be further from the truth than its error bars show; the message says where and why."""
