"""Messages that could not be computed: the rows of each direction that still have an older message, or none."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heliograph.engine.schedule import Task
from heliograph.graph.records import Graph
from heliograph.numerics.checks import listed

__all__ = ["Unsent"]

_NAMED = 3  # rows that a sentence names


class _Rows(NamedTuple):
    skipped: np.ndarray  # (n,) bool: not finite, or it would have made the belief improper
    failed: np.ndarray  # (n,) bool: the oracle had no answer


class Unsent:
    """The rows, by direction, whose latest message could not be computed."""

    def __init__(self) -> None:
        self._rows: dict[Task, _Rows] = {}

    def note(
        self, task: Task, size: int, rows: slice | None, skipped: np.ndarray | None, failed: np.ndarray | None
    ) -> None:
        """Record how a direction, or some rows of it, was sent; None: all of them were."""
        if skipped is None and failed is None:
            known = self._rows.get(task)
            if known is None:
                return
            if rows is None:
                del self._rows[task]
                return
        known = self._rows.setdefault(task, _Rows(np.zeros(size, dtype=bool), np.zeros(size, dtype=bool)))
        at = slice(None) if rows is None else rows
        known.skipped[at] = False if skipped is None else skipped
        known.failed[at] = False if failed is None else failed
        if rows is not None and not (known.skipped.any() or known.failed.any()):
            del self._rows[task]

    @property
    def n_skipped(self) -> int:
        """The number of messages that no formula could give."""
        return sum(int((r.skipped & ~r.failed).sum()) for r in self._rows.values())

    @property
    def n_failed(self) -> int:
        """The number of messages that no oracle could give."""
        return sum(int(r.failed.sum()) for r in self._rows.values())

    def __len__(self) -> int:
        return self.n_skipped + self.n_failed

    def copy(self) -> Unsent:
        """The same rows, which later messages leave alone."""
        other = Unsent()
        other._rows = {task: _Rows(r.skipped.copy(), r.failed.copy()) for task, r in self._rows.items()}
        return other

    def sentence(self, graph: Graph, failed: bool) -> str:
        """List the missing messages: the oracle's (`failed`), or those that a formula could not give."""
        parts: list[str] = []
        for task, r in self._rows.items():
            bad = np.flatnonzero(r.failed if failed else r.skipped & ~r.failed)
            if not len(bad):
                continue
            plate = graph.plates[task.plate]
            node = graph.nodes[plate.edges[task.to].node]
            shown = listed(bad.tolist(), _NAMED)
            rows = f"row {shown}" if len(bad) == 1 else f"rows {shown}"
            parts.append(
                f"{len(bad)} of {len(r.failed)} messages of factor {plate.factor.name!r} to variable {node.name!r} ({rows})"
            )
        return "; ".join(parts)
