"""The history of a run for its reader: its sweeps, its learned messages, and their picture."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from heliograph.engine.plotting import draw_changes, plot_trace
from heliograph.engine.sweep_info import Invocation, SweepInfo
from heliograph.families.tables import html_table

__all__ = ["Trace"]


@dataclass
class Trace:
    """The whole run: `sweeps` and, for learned factors, `invocations`."""

    sweeps: list[SweepInfo] = field(default_factory=list[SweepInfo])
    invocations: list[Invocation] = field(default_factory=list[Invocation])
    single_pass: SweepInfo | None = None  # of a tree, where every message was sent once and there was no sweep
    late: object = None  # counts of the messages that were sent only when the posterior was read

    def total(self, name: str) -> float:
        """The sum of one field of `SweepInfo` over the run."""
        once = [] if self.single_pass is None else [self.single_pass]
        return sum(getattr(info, name) for info in (*once, *self.sweeps))

    @property
    def changes(self) -> np.ndarray:
        """The change of every sweep."""
        return np.array([info.change for info in self.sweeps])

    @property
    def n_asked(self) -> int:
        """Oracle calls of the run."""
        return int(self.total("n_asked"))

    @property
    def evaluations(self) -> dict[str, int]:
        """Evaluations of black boxes, by what they were for.

        "answers" were asked of an oracle; "references" are what predictions are relative to; "tables" were filled
        to spare later messages theirs. Messages sent when the posterior was read are in it; what the evidence takes is not.
        """
        calls = [*self.invocations, *getattr(self.late, "invocations", ())]
        return {
            kind: sum(getattr(call, f"n_{kind[:-1]}_evaluations") for call in calls)
            for kind in ("answers", "references", "tables")
        }

    def __len__(self) -> int:
        return len(self.sweeps)

    def __repr__(self) -> str:
        if not self.sweeps:
            return "Trace(no sweeps: every message was exact after one pass)"
        last = self.sweeps[-1]
        undone = sum(info.rolled_back for info in self.sweeps)
        damped = f", {undone} sweeps undone" if undone else ""
        damped += f", damping {last.damping:.2g}" if last.damping else ""
        return (
            f"Trace({len(self.sweeps)} sweeps, last change {last.change:.2g} nats in {last.moving!r}, "
            f"{self.n_asked} asked, {int(self.total('n_improper'))} improper, {int(self.total('n_failed'))} failed{damped})"
        )

    def _repr_html_(self) -> str:
        head = ("sweep", "change", "moving", "damping", "asked", "improper", "failed")
        rows = [
            (
                str(i.sweep),
                f"{i.change:.2g}",
                i.moving,
                f"{i.damping:.2g}",
                str(i.n_asked),
                str(i.n_improper),
                str(i.n_failed),
            )
            for i in self.sweeps
        ]
        return html_table(head, rows, [repr(self)])

    def plot(self, path: str | None = None, window: int = 100, ax: Any = None) -> Any:
        """The paper's figure of temporal uncertainty: log predictive variance of every message, asks marked.

        Runs without learned factors show the change per sweep instead. Returns the matplotlib figure. With `ax`, the change per
        sweep is drawn on these axes, which are returned.
        """
        if ax is not None:
            draw_changes(ax, [self])
            return ax
        return plot_trace(self, path, window)
