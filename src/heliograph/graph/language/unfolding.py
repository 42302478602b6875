"""The entries of a chain that a call of a builder makes, while the chain is being written."""

from __future__ import annotations

import math

import numpy as np

from heliograph.errors import ModelError, UnsupportedError
from heliograph.families import Family
from heliograph.graph.draft import Draft
from heliograph.graph.quantity import Quantity

__all__ = ["kind_text", "next_entries"]


def next_entries(
    draft: Draft, name: str, family: type[Family], dimension: int | None, shape: tuple[int, ...]
) -> Quantity:
    """The entries of a chain that a builder call is for, which must have this shape and kind."""
    chain = draft.chains[name]
    if chain.node is None:
        if chain.n_first > 1 and shape[:1] != (chain.n_first,):
            raise ModelError(
                f"chain {name!r}: its step looks back over {chain.n_first} entries, so its start must have as many along its "
                f"first axis, not shape {shape}"
            )
        rest = shape if chain.n_first == 1 else shape[1:]
        chain.node = draft.node(name, family, (chain.n, *rest), dimension, given=True)
        first = np.arange(chain.n_first * math.prod(rest)).reshape(shape)
        return Quantity(chain.node, first)
    node, entries = chain.node, chain.following
    if entries is None or entries.shape != shape:
        wanted = "one call of a builder" if entries is None else f"shape {entries.shape}"
        raise ModelError(
            f"chain {name!r}: its step must make {wanted} with the name {name!r}, but it has shape {shape}"
        )
    if (family, dimension) != (node.family, node.dimension):
        raise UnsupportedError(
            f"chain {name!r}: its start is {kind_text(node.family, node.dimension)}, but its step makes "
            f"{kind_text(family, dimension)}"
        )
    chain.following = None
    return Quantity(node, entries)


def kind_text(family: type[Family], dimension: int | None) -> str:
    """A family and the length of its values, for a sentence."""
    return family.__name__ + (f" of {dimension}" if dimension is not None else "")
