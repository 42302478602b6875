"""Some entries of a node: what an expression of the modelling language refers to."""

from __future__ import annotations

import math
import warnings
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike

from heliograph.errors import AccuracyWarning, ModelError
from heliograph.families import Family, MultivariateGaussian
from heliograph.graph.records import Node

__all__ = ["Argument", "Quantity", "reaches_inside"]


_INTEGERS = "; of groups give the codes 0, 1, ..., for example pandas.factorize(group)[0], or group.astype(int)"


class Quantity:
    """An array of random quantities: all entries of a node, or those that an index picks."""

    __slots__ = ("index", "node", "shape")

    def __init__(self, node: Node, index: np.ndarray | None = None) -> None:
        self.node = node
        self.index = index  # integer array of entries of the flat node, or None for all
        self.shape: tuple[int, ...] = node.shape if index is None else index.shape

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.name

    @property
    def family(self) -> type[Family]:
        """The family of its messages."""
        return self.node.family

    @property
    def size(self) -> int:
        """The number of entries."""
        return math.prod(self.shape)

    def entries(self) -> np.ndarray:
        """The flat positions in the node, in this quantity's shape."""
        if self.index is not None:
            return self.index
        return np.arange(self.node.size).reshape(self.node.shape)

    def flat_entries(self, shape: tuple[int, ...]) -> np.ndarray:
        """The flat positions in the node, broadcast to a shape and flattened."""
        return np.broadcast_to(self.entries(), shape).reshape(-1)

    def part(self, key: Any) -> Quantity:
        """Some of these entries, as NumPy would index them."""
        try:
            index = self.entries()[key]
        except (IndexError, TypeError, ValueError) as error:
            words = _INTEGERS if "must be of integer" in str(error) else ""
            raise ModelError(f"variable {self.name!r} of shape {self.shape}: {error}{words}") from None
        self._warn_of_codes(key)
        return Quantity(self.node, np.asarray(index))

    def _warn_of_codes(self, key: Any) -> None:
        """Warn of codes of groups among which -1 stands for a missing one: here it is the last, which has a code of its own."""
        if not isinstance(key, np.ndarray) or not self.shape:
            return
        codes, last = cast("np.ndarray[Any, Any]", key), self.shape[0] - 1
        if codes.dtype.kind != "i" or codes.size <= self.shape[0]:
            return
        if codes.min() == -1 and (codes == last).any():
            n = int((codes == -1).sum())
            warnings.warn(
                f"variable {self.name!r}: its index holds -1 {n} time{'s' * (n != 1)}, which is entry {last}, as {last} is; if -1 "
                "stands for a missing group, as it does in pandas, drop these rows",
                AccuracyWarning,
                stacklevel=8,
            )


def reaches_inside(x: Quantity, key: Any) -> bool:
    """Return whether an index is of the entries of vectors, beyond the axes of their plate."""
    if x.family is not MultivariateGaussian:
        return False
    keys = cast("tuple[Any, ...]", key) if isinstance(key, tuple) else (key,)
    used = 0  # axes
    for k in keys:
        if k is Ellipsis:
            return True
        used += k.ndim if getattr(k, "dtype", None) in (bool, np.bool_) else int(k is not None)
    return used > len(x.shape)


Argument: TypeAlias = Quantity | Family | ArrayLike  # what a parameter of a distribution may be
