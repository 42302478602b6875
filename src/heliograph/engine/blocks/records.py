"""What a block is made of: rows of known weight, and an expression for every entry of its nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from heliograph.engine.blocks.rows import Rows, image, joined, over, pull
from heliograph.families import MultivariateGaussian
from heliograph.numerics.logarithms import LOG_2PI

__all__ = ["Block", "Known", "components", "joined_known", "known_log_density", "known_log_density_at", "known_shift"]


class Known(NamedTuple):
    """Rows of known weight, the sum of ``log N(0; rows, 1 / weight)``; data and prior means are in the constants."""

    rows: Rows
    weight: np.ndarray  # (n,) precisions
    # scalars (k,) and ``A' diag(weight) A`` over them, where it was computed already
    gram: tuple[np.ndarray, np.ndarray] | None = None
    # the rows as one message on these scalars, where they are that
    prior: MultivariateGaussian | None = None


def joined_known(known: Sequence[Known], n_columns: int) -> Known:
    """Join several records into one."""
    if len(known) == 1:
        return known[0]
    rows = joined([k.rows for k in known], n_columns)
    return Known(rows, np.concatenate([np.zeros(0), *(k.weight for k in known)]))


def known_shift(known: Sequence[Known], n_columns: int) -> np.ndarray:
    """The information ``A' diag(weight) (0 - constant)`` of the rows of known weight."""
    total = np.zeros(n_columns)
    for rows, weight, *_ in known:
        if rows.constant.any():
            total -= pull(rows, weight * rows.constant)
    return total


def known_log_density(known: Sequence[Known], mean: np.ndarray) -> float:
    """``log`` density of the rows of known weight at values of the base scalars."""
    total = 0.0
    for rows, weight, *_ in known:
        gap = rows.constant + image(rows, mean)
        total += 0.5 * float(np.log(weight).sum() - len(gap) * LOG_2PI - (weight * gap) @ gap)
    return total


def known_log_density_at(known: Sequence[Known], values: np.ndarray) -> np.ndarray:
    """As `known_log_density`, at draws (N, S) of the base scalars."""
    total = np.zeros(values.shape[1])
    for rows, weight, *_ in known:
        gap = over(rows, values) + rows.constant[:, None]
        total += 0.5 * (float(np.log(weight).sum() - len(gap) * LOG_2PI) - weight @ gap**2)
    return total


@dataclass(frozen=True, eq=False)
class Block:
    """A connected set of nodes that are jointly Gaussian given the messages of everything else."""

    nodes: tuple[int, ...]  # positions in the graph
    plates: frozenset[int]  # positions of the plates that the block stands for
    n_columns: int  # base scalars
    rows: dict[int, Rows]  # node -> the expression of every entry (of every component, for vectors)
    base: dict[int, np.ndarray]  # node with a distribution of its own -> its columns, -1 where it was observed
    known: tuple[Known, ...]
    log_constant: float  # of the known rows' density, besides their own terms
    alone: bool = False  # a vector and products with it, which is joint in a factorised model, too


def components(entries: np.ndarray, d: int) -> np.ndarray:
    """The rows of the components of some entries of a node of vectors."""
    return entries if d == 1 else (entries[:, None] * d + np.arange(d)).reshape(-1)
