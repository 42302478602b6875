"""The history of a run for its reader: its sweeps, its learned messages, and their picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, cast

import numpy as np

from heliograph.engine.sweep_info import Invocation, SweepInfo
from heliograph.families.tables import html_table

__all__ = ["Trace", "draw_changes", "plot_trace"]


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
        """Draw the log predictive variance of every message over time, with asks marked, as in the paper.

        Runs without learned factors show the change per sweep instead.

        Parameters
        ----------
        path
            A file that the figure is written to, if given.
        window
            Messages over which a moving average is taken.
        ax
            Matplotlib's axes, on which the change per sweep is drawn instead, and which are returned.

        Returns
        -------
        Figure or Axes
            Matplotlib's figure, or `ax`.
        """
        if ax is not None:
            draw_changes(ax, [self])
            return ax
        return plot_trace(self, path, window)


# ---- the picture ------------------------------------------------------------------------------------------------------
_SHOWN = 200_000  # marks in a panel: more are thinned out, which cannot be seen


def plot_trace(trace: Trace | Sequence[Trace], path: str | PathLike[str] | None = None, window: int = 100) -> Any:
    """Log predictive variance of every message over time, its moving average, and where the oracle was asked.

    A panel for every direction of every learned factor; dashed lines where a problem begins, fine ones where a sweep
    does. Several traces are drawn one after the other, as problems in sequence. A run that learned nothing is shown as
    its change per sweep. Gives the matplotlib figure, and writes it to `path` if there is one.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    traces = list(trace) if isinstance(trace, Sequence) else [trace]
    panels = _panels(traces)
    figure = Figure(figsize=(9.0, 3.2 * max(len(panels), 1)), layout="constrained")
    FigureCanvasAgg(figure)  # needs no display, and touches no figure of the user's
    axes = figure.subplots(max(len(panels), 1), squeeze=False)[:, 0]
    if not panels:
        draw_changes(axes[0], traces)
    for ax, ((factor, to), problems) in zip(axes, panels.items(), strict=False):
        _draw_uncertainty(ax, f"{factor} to {to}", problems, window)
    if path is not None:
        cast(Any, figure).savefig(path)
    return figure


def _panels(traces: list[Trace]) -> dict[tuple[str, str], list[list[Invocation]]]:
    """Direction -> problem -> invocations; directions that never had an uncertainty are left out."""
    keys: dict[tuple[str, str], None] = {}
    for t in traces:
        for i in t.invocations:
            if i.log_variance is not None or i.asked.any():
                keys[i.factor, i.to] = None
    return {k: [[i for i in t.invocations if (i.factor, i.to) == k] for t in traces] for k in keys}


def _draw_uncertainty(ax: Any, title: str, problems: list[list[Invocation]], window: int) -> None:
    values, asked, starts, sweeps = _series(problems)
    at = np.arange(len(values))
    some = at if len(at) <= _SHOWN else np.linspace(0, len(at) - 1, _SHOWN).astype(int)
    known = some[np.isfinite(values[some])]
    ax.plot(known, values[known], ".", color="0.7", markersize=2, label="log predictive variance")
    if len(known):
        ax.plot(at, _moving_average(values, window), color="tab:blue", label=f"moving average of {window}")
    # an ask before anything could be predicted has no height of its own: it stands at the top
    marks = np.flatnonzero(asked)
    top = np.nanmax(values[np.isfinite(values)], initial=-np.inf)
    height = np.where(np.isfinite(values[marks]), values[marks], top if np.isfinite(top) else 0.0)
    ax.plot(marks, height, "x", color="tab:red", markersize=4, label=f"asked ({len(marks)})")
    if len(sweeps) <= 200:  # with more lines nothing else could be seen
        for k in sweeps:
            ax.axvline(k, color="0.85", linewidth=0.5, zorder=0)
    for k in starts:
        ax.axvline(k, color="black", linestyle="--", linewidth=0.8)
    ax.set(title=title, xlabel="message", ylabel="log variance")
    ax.legend(loc="upper right", fontsize="small")


def _series(problems: list[list[Invocation]]) -> tuple[np.ndarray, np.ndarray, list[int], list[int]]:
    """The largest log variance of each message (NaN before anything was learned), asks, where problems and sweeps begin."""
    values: list[np.ndarray] = [np.zeros(0)]
    asked: list[np.ndarray] = [np.zeros(0, dtype=bool)]
    starts: list[int] = []
    sweeps: list[int] = []
    n = 0
    for invocations in problems:
        starts.append(n)
        last = None
        for i in invocations:
            if i.sweep != last:
                sweeps.append(n)
                last = i.sweep
            if i.log_variance is None:
                values.append(np.full(len(i.asked), np.nan))
            else:
                values.append(np.max(i.log_variance, axis=1))  # NaN stays NaN
            asked.append(i.asked)
            n += len(i.asked)
    return np.concatenate(values), np.concatenate(asked), starts, sweeps


def _moving_average(values: np.ndarray, window: int) -> np.ndarray:
    """The mean of the last `window` finite values up to each place; NaN where there is none."""
    known = np.isfinite(values)
    sums = np.concatenate([[0.0], np.cumsum(np.where(known, values, 0.0))])
    counts = np.concatenate([[0], np.cumsum(known)])
    at = np.arange(1, len(values) + 1)
    before = np.maximum(at - window, 0)
    n = counts[at] - counts[before]
    return np.where(n > 0, (sums[at] - sums[before]) / np.maximum(n, 1), np.nan)


def draw_changes(ax: Any, traces: Sequence[Trace]) -> None:
    """The change of every sweep, in nats."""
    for k, t in enumerate(traces):
        changes = t.changes
        shown = np.flatnonzero(np.isfinite(changes) & (changes > 0))
        label = None if len(traces) == 1 else f"problem {k + 1}"
        ax.plot(shown + 1, changes[shown], marker="o", markersize=3, label=label)
    if any((t.changes > 0).any() for t in traces):
        ax.set_yscale("log")
    ax.set(xlabel="sweep", ylabel="largest change of a belief, nats")
    if len(traces) > 1:
        ax.legend(fontsize="small")
