"""The records of a plan."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["Group", "Part", "Plan"]


class Part(NamedTuple):
    """Some rows of one table, and the cliques of a group that they are added to."""

    source: int  # the number of the table
    rows: np.ndarray | slice  # (m,) of the table
    axes: tuple[int, ...]  # of the clique, one for every axis of the table
    target: np.ndarray | slice  # (k,) cliques, each once
    counts: np.ndarray | None = None  # (k,) how many rows of each follow one another, if some cliques have several

    @property
    def order(self) -> tuple[int, ...]:
        """The axes of the table in the order of the clique's, before the axis of rows."""
        return (*sorted(range(len(self.axes)), key=self.axes.__getitem__), len(self.axes))

    @property
    def places(self) -> tuple[int, ...]:
        """The other way round: where each axis of the table is in that order."""
        order = self.order
        return tuple(sorted(range(len(order)), key=order.__getitem__))


class Group(NamedTuple):
    """Cliques of one shape that are summed in one round."""

    size: int
    shape: tuple[int, ...]  # the categories of v first, then those of its neighbours
    parts: tuple[Part, ...]
    output: int  # the number of the table that the sum over v makes

    @property
    def paired(self) -> bool:
        """Whether v has two neighbours and no table sees both: the sum is then a product of matrices."""
        return len(self.shape) == 3 and all(len(p.axes) < 3 for p in self.parts)


class Plan(NamedTuple):
    """Groups in the order of elimination."""

    n_tables: int  # that are given; the outputs of groups are numbered after them
    groups: tuple[Group, ...]
    shapes: tuple[tuple[int, ...], ...]  # of all tables, outputs included, with their rows
