"""The command: ``heliograph demo`` and its siblings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from heliograph.experiments.demo import play_league, solve_regressions
from heliograph.report.demo import draw_demo, league_table, regression_table

app = typer.Typer(help="Expectation propagation with messages learned just in time.", no_args_is_help=True)


@app.callback()
def _main() -> None:
    """Expectation propagation with messages learned just in time."""


@app.command()
def demo(
    quick: Annotated[bool, typer.Option(help="A smaller size.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    picture: Annotated[Path, typer.Option(help="Where to write the picture.")] = Path("heliograph_demo.png"),
) -> None:
    """Solve ten related logistic regressions and a small league; print tables and write a picture."""
    console = Console()
    n_problems = 3 if quick else 10
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("logistic regressions", total=n_problems + 1)
        regressions = solve_regressions(
            seed, n_problems, tell=lambda text: bar.update(task, advance=1, description=text)
        )
        league = play_league(seed, n_games=60 if quick else 120)
        bar.advance(task)
    console.print(regression_table(regressions))
    console.print(league_table(league))
    console.print(f"picture: {draw_demo(regressions, league, picture)}")
