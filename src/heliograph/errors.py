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
    """A model that cannot be run as written: a wrong shape, value or structure, found before any sweep."""


class UnsupportedError(HeliographError, TypeError):
    """A combination of families that no factor computes; the message names the nearest one that works."""


class ImproperError(HeliographError, ArithmeticError):
    """A missing proper distribution where one was needed (for example sampling a uniform Gaussian)."""


class ContradictionError(HeliographError, ArithmeticError):
    """A contradiction: two point masses disagree, or a constraint has probability zero."""


class FactorError(HeliographError, RuntimeError):
    """A black-box factor that raised, or returned a value outside the support of its output family."""


class FileFormatError(HeliographError, ValueError):
    """A saved file that is corrupt, truncated, of a newer format, or not one of this package."""


class ConvergenceWarning(UserWarning):
    """Inference that stopped before the beliefs settled; the message names the variable that still moves."""


class OracleWarning(UserWarning):
    """Messages that an oracle could not answer; the old ones were kept."""


class AccuracyWarning(UserWarning):
    """A result that may be further from the truth than its error bars show; the message says where and why."""
