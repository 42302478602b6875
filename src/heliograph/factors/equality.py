"""Hard equality of two variables of one family; soft evidence, any message on one variable, is `Prior`."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from heliograph.factors.base import Factor, Incoming
from heliograph.factors.prior import Prior, log_overlap
from heliograph.families import EVERY_FAMILY, Family

__all__ = ["Equal", "SoftEvidence"]

SoftEvidence = Prior  # the same factor by the name of what it is used for


class Equal(Factor):
    """``a = b``: each end gets what the other says.

    >>> from heliograph.families import Gaussian
    >>> m = Equal().message("a", {"a": Gaussian(0.0, 1.0), "b": Gaussian(3.0, 2.0)})
    >>> m
    Gaussian(mean 3., variance 2.)
    """

    name = "equal"
    families: ClassVar = {"a": EVERY_FAMILY, "b": EVERY_FAMILY}
    how: ClassVar = {"a": "closed form", "b": "closed form"}
    ignores_own = ("a", "b")

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        """The other end's message."""
        return _read(incoming)["b" if to == "a" else "a"]

    def belief(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        """The product of both messages."""
        both = _read(incoming)
        return both["a"] * both["b"]

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the integral of the product of both messages."""
        both = _read(incoming)
        return log_overlap(both["a"], both["b"])


def _read(incoming: Incoming) -> dict[str, Family]:
    """Both messages; a plain array is point masses of the other end's family."""
    a, b = incoming["a"], incoming["b"]
    if isinstance(a, Family) and isinstance(b, Family):
        return {"a": a, "b": b}
    known = a if isinstance(a, Family) else b
    return {p: m if isinstance(m, Family) else known.point_like(m) for p, m in (("a", a), ("b", b))}
