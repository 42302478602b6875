"""The demonstration as a person sees it: a table and a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table

if TYPE_CHECKING:
    from heliograph.paper.demo import Solved

__all__ = ["demo_table", "draw_demo"]


def demo_table(rows: list[Solved]) -> Table:
    """One line per problem and way of solving it."""
    table = Table(
        title="Learned messages beside exact and sampled ones",
        caption="asked: oracle calls; evals: of the factor; KL: nats from exact EP's posterior; own: the estimate of it",
        box=SIMPLE_HEAD,  # eight columns fit into eighty characters
        padding=(0, 0, 0, 1),
        pad_edge=False,
    )
    for name in ("problem", "messages", "sweeps", "asked", "evals", "ms", "KL", "own"):
        table.add_column(name, justify="left" if name in ("problem", "messages") else "right", no_wrap=True)
    last = None
    for r in rows:
        learned = r.way.startswith("learned")
        table.add_row(
            r.problem if r.problem != last else "",
            r.way,
            str(r.n_sweeps),
            f"{r.n_asked:,}" if r.way != "exact" or r.n_asked else "",
            f"{r.n_evaluations:,}" if r.n_evaluations else "",
            f"{1e3 * r.seconds:,.0f}",
            f"{r.posterior_kl:.1e}" if r.way != "exact" else "",
            f"{r.error_estimate:.1e}" if learned else "",
        )
        last = r.problem
    return table


def draw_demo(rows: list[Solved], tolerance: float, path: Path) -> Path:
    """Left: oracle calls, falling to zero. Middle: time per problem. Right: distance from the exact posterior."""
    from matplotlib.figure import Figure

    logistic = [r for r in rows if r.problem.startswith("logistic")]
    learned = [r for r in logistic if r.way == "learned"]
    exact = [r for r in logistic if r.way == "exact"]
    sampling = [r for r in logistic if r.way == "sampling"]
    k = np.arange(1, len(learned) + 1)
    figure = Figure(figsize=(10.5, 3.4))
    asks, times, errors = figure.subplots(1, 3)
    figure.subplots_adjust(
        left=0.045, right=0.99, bottom=0.14, top=0.91, wspace=0.22
    )  # a layout engine draws it all twice
    asks.bar(k, [r.n_asked for r in learned], color="#0072b2")
    messages = 300 * np.mean([r.n_sweeps for r in learned])
    asks.set(title=f"Oracle calls (of {messages:,.0f} messages each)", xlabel="logistic regression", xticks=k)
    times.semilogy(k, [1e3 * r.seconds for r in learned], "o-", color="#0072b2", label="learned")
    times.semilogy(k, [1e3 * r.seconds for r in exact], "s--", color="#009e73", label="hand-made factor")
    if sampling:
        times.axhline(1e3 * sampling[0].seconds, color="#d55e00", ls=":", label="sampling, 2,048 draws")
    times.set(title="Milliseconds per problem", xlabel="logistic regression", xticks=k)
    times.legend(frameon=False, fontsize=8)
    errors.semilogy(k, [max(r.posterior_kl, 1e-12) for r in learned], "o-", color="#0072b2", label="learned")
    errors.axhline(tolerance, color="black", lw=1, label="tolerance asked for")
    if sampling:
        errors.axhline(sampling[0].posterior_kl, color="#d55e00", ls=":", label="sampling")
    errors.set(title="KL(exact EP || learned), nats", xlabel="logistic regression", xticks=k)
    errors.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=150)
    return path
