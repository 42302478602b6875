"""The command: ``heliograph demo``, ``heliograph reproduce`` and ``heliograph report``."""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

from heliograph.errors import HeliographError

if TYPE_CHECKING:
    from heliograph.paper.reproduce import Run, Step
    from heliograph.paper.running.parts import Outcome, Store

app = typer.Typer(help="Expectation propagation with messages learned just in time.", no_args_is_help=True)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        Console().print(version("heliograph"), highlight=False)
        raise typer.Exit


def _file(path: Path | None) -> Path | None:
    """A file that can be written, found out before hours of work and not after."""
    if path is None or str(path) == "-":
        return path
    if path.is_dir():
        raise typer.BadParameter(f"{path} is a folder; say which file")
    if not path.absolute().parent.is_dir():
        raise typer.BadParameter(f"there is no folder {path.absolute().parent}")
    if not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
        raise typer.BadParameter(f"{path} cannot be written")
    return path


def _picture(path: Path) -> Path:
    """A picture that can be written, in a format that can be drawn."""
    from matplotlib.backend_bases import FigureCanvasBase

    known = FigureCanvasBase.filetypes
    if path.suffix.removeprefix(".").lower() not in known:
        raise typer.BadParameter(
            f"{path.name} has no ending that says a format; choose one of {', '.join(sorted(known))}"
        )
    _file(path)
    return path


def _folder(path: Path) -> Path:
    """A folder that exists or can be made; it is made when there is something to put into it."""
    there = path.absolute()
    while not there.exists():
        there = there.parent
    if not there.is_dir() or not os.access(there, os.W_OK):
        why = "may not be written to" if there.is_dir() else "is a file"
        raise typer.BadParameter(f"the folder {path} cannot be made: {there} {why}")
    return path


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Expectation propagation with messages learned just in time."""


@app.command()
def demo(
    quick: Annotated[bool, typer.Option(help="A smaller size.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    picture: Annotated[Path, typer.Option(callback=_picture, help="Where to write the picture.")] = Path(
        "heliograph_demo.png"
    ),
) -> None:
    """Solve ten related logistic regressions and one model with a factor that has no formula, all learned live."""
    from heliograph.paper.demo import TOLERANCE, demo_table, draw_demo, run_demo

    console, n_problems = Console(), 3 if quick else 10
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("first messages", total=2 * n_problems + 4)
        current = [""]

        def show(what: str, sweep: int, asked: int) -> None:
            if what != current[0]:
                current[0] = what
                bar.advance(task)
            bar.update(task, description=f"{what}: sweep {sweep}, oracle asked {asked} times")

        rows = run_demo(seed, n_problems, show)
    console.print(demo_table(rows))
    console.print(f"picture: {draw_demo(rows, TOLERANCE, picture)}")


@app.command()
def reproduce(
    name: Annotated[str, typer.Argument(help="exp1, exp2, exp3, exp4, exp5, features, or all.")],
    full: Annotated[bool, typer.Option("--full", help="The paper's sizes: hours, not minutes.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    seeds: Annotated[
        int, typer.Option(min=1, help="How many seeds, from --seed on: medians and ranges are shown.")
    ] = 1,
    jobs: Annotated[int, typer.Option(min=1, help="How many parts to work on at the same time.")] = 1,
    out: Annotated[Path, typer.Option(callback=_folder, help="Folder of results, figures and report.")] = Path(
        "results"
    ),
    json_file: Annotated[
        Path | None,
        typer.Option("--json", callback=_file, help="Also write the JSON here; - is standard output.", allow_dash=True),
    ] = None,
    splits: Annotated[
        Path | None,
        typer.Option(help="Folder of NAME_train.csv and NAME_test.csv for exp5.", exists=True, file_okay=False),
    ] = None,
    methods: Annotated[str | None, typer.Option(help="Only these methods, with commas between.")] = None,
    problems: Annotated[int | None, typer.Option(help="Another number of problems.")] = None,
) -> None:
    """Run experiments of the paper and write report.html; what an earlier run of the same settings finished is reused."""
    from heliograph.paper.reproduce import choose, plan  # slow to import, and the demonstration needs none of it
    from heliograph.paper.running.parts import Store

    console = Console(stderr=str(json_file) == "-")
    wanted = None if methods is None else [m.strip() for m in methods.split(",") if m.strip()]
    if methods is not None and not wanted:
        raise typer.BadParameter("--methods names no method")
    try:
        runs = plan(choose(name), seed, full, wanted, problems, splits, seeds)
        outcomes, interrupted, errors = _follow(runs, Store(out / "parts"), jobs)
        by_name = _write_outcomes(out, outcomes)
        _write_json(json_file, by_name if name == "all" else by_name.get(name, {}))
        page = _build_report(out)
    except HeliographError as error:
        Console(stderr=True).print(f"[bold red]error:[/] {error}", highlight=False, soft_wrap=True)
        raise typer.Exit(2) from error
    console.print(f"report: {page}", highlight=False, soft_wrap=True)
    _exit_if_unfinished(interrupted, errors)


def _write_outcomes(out: Path, outcomes: dict[str, Outcome]) -> dict[str, Any]:
    """Write what every experiment gave, and give it as plain JSON."""
    from heliograph.paper.results import strict_json, write_outcome

    for outcome in outcomes.values():
        write_outcome(out, outcome)
    return {key: strict_json(outcome.json) for key, outcome in outcomes.items()}


def _exit_if_unfinished(interrupted: bool, errors: list[str]) -> None:
    """Say what the report lacks, if anything, and end with the code for it."""
    console = Console(stderr=True)
    if interrupted:
        message = "interrupted: the report shows what was finished; the same command goes on from there"
        console.print(message, soft_wrap=True)
        raise typer.Exit(130)
    if errors:
        message = "; ".join(errors)
        console.print(f"[bold red]error:[/] the report lacks the parts that failed: {message}", soft_wrap=True)
        raise typer.Exit(1)


@app.command()
def report(folder: Annotated[Path, typer.Argument(help="A folder that `reproduce` wrote.")] = Path("results")) -> None:
    """Draw the figures and write report.html again from saved results."""
    try:
        page = _build_report(folder)
    except HeliographError as error:
        Console(stderr=True).print(f"[bold red]error:[/] {error}", highlight=False, soft_wrap=True)
        raise typer.Exit(2) from error
    Console().print(f"report: {page}", highlight=False, soft_wrap=True)


def _build_report(folder: Path) -> Path:
    from heliograph.paper.report.page import build  # drawing is slow to import, and not every command draws

    return build(folder)


def _write_json(target: Path | None, value: Any) -> None:
    if target is None:
        return
    text = json.dumps(value, indent=1, allow_nan=False) + "\n"
    if str(target) == "-":
        sys.stdout.write(text)
    else:
        target.write_text(text)


@dataclass
class _Found:
    """What the parts of some experiments gave so far."""

    results: dict[str, dict[str, Any]] = field(default_factory=dict)  # by the key of a part
    errors: dict[str, str] = field(default_factory=dict)
    sentences: list[str] = field(default_factory=list)  # one for each part that failed
    n_reused: int = 0
    interrupted: bool = False

    def add(self, step: Step, result: dict[str, Any] | None, console: Console) -> None:
        """Keep the result or the error of a part, and print it where there is no bar to show it."""
        if step.part is None:
            return
        if result is not None:
            self.results[step.part.key] = result
            self.n_reused += step.reused
            if not console.is_terminal:
                kept = " (kept from an earlier run)" if step.reused else ""
                console.print(f"{step.n_done}/{step.n_parts} {step.part.name}{kept}", highlight=False)
        if step.error is not None:
            self.errors[step.part.key] = step.error
            self.sentences.append(f"{step.part.name} failed with {step.error}")
            console.print(self.sentences[-1], highlight=False, soft_wrap=True, markup=False)

    def interrupt(self, runs: Sequence[Run], store: Store) -> None:
        """End the workers, and read what is finished from the folder, where a part may have arrived just now."""
        self.interrupted = True
        for worker in multiprocessing.active_children():
            worker.terminate()
        kept = {part.key: store.read(part) for one in runs for part in one.parts}
        self.results = {key: result for key, result in kept.items() if result is not None}


def _follow(runs: Sequence[Run], store: Store, jobs: int) -> tuple[dict[str, Outcome], bool, list[str]]:
    """Run everything under a progress bar; Ctrl-C ends it early with what is finished, a part that fails only itself.

    Gives the outcomes, whether it was interrupted, and a sentence for each part that failed.
    """
    from heliograph.paper.reproduce import outcome_of, run

    found, console = _Found(), Console(stderr=True)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal, speed_estimate_period=3600) as bar:
        task = bar.add_task("starting", total=None)
        try:
            for step, result in run(runs, store, jobs):
                found.add(step, result, console)
                # reused parts take no time, so they stay out of the estimate of the time left
                total, completed = step.n_parts - found.n_reused, step.n_done - found.n_reused
                bar.update(task, description=", ".join(step.running) or "done", total=total, completed=completed)
        except KeyboardInterrupt:
            found.interrupt(runs, store)
    names = dict.fromkeys(one.experiment.name for one in runs)
    outcomes = {
        n: outcome_of([one for one in runs if one.experiment.name == n], found.results, found.errors) for n in names
    }
    return outcomes, found.interrupted, found.sentences
