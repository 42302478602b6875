"""Progress of a run on a terminal; silence elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from heliograph.engine.loop import Step

__all__ = ["shown"]


def shown(run: Iterator[Step], progress: bool | None) -> Iterator[Step]:
    """The same steps, with a line on the terminal that says what is being done (None: only if there is a terminal)."""
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
        for step in run:
            info = step.info
            asked = f", asked {step.posterior.trace.n_asked}" if step.posterior.trace.n_asked else ""
            bar.update(task, description=f"sweep {info.sweep}: {info.moving} moved {info.change:.1e} nats{asked}")
            yield step
