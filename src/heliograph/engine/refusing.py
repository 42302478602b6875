"""What is said of a block of variables that is too expensive to keep joint."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from heliograph.errors import AccuracyWarning, UnsupportedError
from heliograph.numerics.checks import listed

__all__ = ["joint_but", "refuse_block"]

_NAMED = 4  # variables that a sentence names


def joint_but(names: Sequence[str], why_joint: str, error: Exception) -> str:
    """The sentence that begins with the names of a block's variables."""
    return f"variables {listed(names, _NAMED)} are {why_joint}, but {error}"


def refuse_block(sentence: str, instead: str, must: bool) -> None:
    """Warn that a block is factorised, and of what that costs; with `must`, raise."""
    if must:
        raise UnsupportedError(f"{sentence}; use structure='auto'") from None
    warnings.warn(f"{sentence}; they are factorised instead{instead}", AccuracyWarning, stacklevel=3)
