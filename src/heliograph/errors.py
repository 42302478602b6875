"""The exceptions of the package: each message is one sentence that names the thing and the remedy."""

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
    """Base of every exception raised on purpose by this package."""


class ModelError(HeliographError, ValueError):
    """The model as written cannot be run: a wrong shape, value or structure, found before any sweep."""


class UnsupportedError(HeliographError, TypeError):
    """No factor computes this combination of families; the message names the nearest one that works."""


class ImproperError(HeliographError, ArithmeticError):
    """A proper distribution was needed and there is none (for example sampling a uniform Gaussian)."""


class ContradictionError(HeliographError, ArithmeticError):
    """Two point masses disagree, or a constraint has probability zero."""


class FactorError(HeliographError, RuntimeError):
    """A black-box factor raised, or returned something that its output family does not hold."""


class FileFormatError(HeliographError, ValueError):
    """A saved file is corrupt, truncated, of a newer format, or not one of ours."""


class ConvergenceWarning(UserWarning):
    """Inference stopped before the beliefs did; the message says which variable still moves."""


class OracleWarning(UserWarning):
    """An oracle could not answer some messages; the old ones were kept."""


class AccuracyWarning(UserWarning):
    """The run settled, but what it settled on may be further from the truth than it looks; the message says where and why."""
