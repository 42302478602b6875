"""Progress of a run on a terminal; silence elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from heliograph.engine.sweep_info import SweepInfo
from heliograph.engine.trace import Trace

__all__ = ["shown"]


def shown(
    run: Iterator[tuple[SweepInfo, bool]], trace: Trace, progress: bool | None
) -> Iterator[tuple[SweepInfo, bool]]:
    """The same sweeps, with a line on the terminal that says what is being done (None: only if there is a terminal)."""
    if progress is None:
        progress = sys.stderr.isatty()
    if not progress:
        yield from run
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("first messages", total=None)
        for info, converged in run:
            asked = f", asked {trace.n_asked}" if trace.n_asked else ""
            damped = f", damping {info.damping:.2g}" if info.damping else ""
            what = f"sweep {info.sweep}: {info.moving} moved {info.change:.1e} nats{asked}{damped}"
            bar.update(task, description=what)
            yield info, converged
