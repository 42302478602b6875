# pyright: basic
"""What a block is made of: rows of known weight, and an expression for every entry of its nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from heliograph.engine.blocks.rows import Rows

__all__ = ["Block", "Known", "components"]


class Known(NamedTuple):
    """Rows whose weight is known: ``log N(target; rows, 1 / weight)`` summed, and `log_constant` besides."""

    rows: Rows
    target: np.ndarray  # (n,)
    weight: np.ndarray  # (n,) precisions
    log_constant: float


@dataclass(frozen=True, eq=False)
class Block:
    """A connected set of nodes that are jointly Gaussian given the messages of everything else."""

    nodes: tuple[int, ...]  # positions in the graph
    plates: frozenset[int]  # positions of the plates that the block stands for
    n_columns: int  # base scalars
    rows: dict[int, Rows]  # node -> the expression of every entry (of every component, for vectors)
    base: dict[int, np.ndarray]  # node with a distribution of its own -> its columns, -1 where it was observed
    known: Known


def components(entries: np.ndarray, d: int) -> np.ndarray:
    """The rows of the components of some entries of a node of vectors."""
    return entries if d == 1 else (entries[:, None] * d + np.arange(d)).reshape(-1)
