"""Running the paper's experiments: their settings, and their parts in one pool.

`results.py` writes and reads the folder.
"""

from __future__ import annotations

import math
import os
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from heliograph.errors import ModelError
from heliograph.paper.registry import EXPERIMENTS
from heliograph.paper.running.parts import Experiment, Outcome, Part, Store, plain_settings, run_parts

__all__ = [
    "Run",
    "Step",
    "choose",
    "machine",
    "outcome_of",
    "plan",
    "run",
]


class Run(NamedTuple):
    """One experiment at one seed with the settings it is to be run with."""

    experiment: Experiment
    settings: Mapping[str, Any]
    seed: int
    parts: Sequence[Part]


class Step(NamedTuple):
    """Where the runs stand: reported once before the first part, then after every part."""

    part: Part | None  # what has just finished
    reused: bool
    n_done: int
    n_parts: int
    running: tuple[str, ...]  # names of the parts that are being worked on
    error: str | None = None  # what the part failed with, as a sentence


def choose(name: str) -> list[Experiment]:
    """The experiments that a name stands for.

    >>> [e.name for e in choose("exp3")]
    ['exp3']
    """
    if name == "all":
        return list(EXPERIMENTS.values())
    if name not in EXPERIMENTS:
        raise ModelError(f"There is no experiment {name!r}; choose one of {', '.join(EXPERIMENTS)} or all.")
    return [EXPERIMENTS[name]]


def plan(
    experiments: Sequence[Experiment],
    seed: int = 0,
    full: bool = False,
    methods: Sequence[str] | None = None,
    problems: int | None = None,
    splits: Path | None = None,
    seeds: int = 1,
) -> list[Run]:
    """Settings of every experiment after the caller's wishes; those that none of `methods` belongs to are left out.

    With several `seeds`, beginning with `seed`, an experiment has a run for each; slow ones have half as many, and methods
    that are too slow for more have the first only.
    """
    if seeds < 1:
        raise ModelError(f"The number of seeds must be at least 1, not {seeds}.")
    sizes = {e.name: dict(e.full if full else e.quick) for e in experiments}
    _check_wishes(sizes, methods, problems, splits)
    alone, runs = len(experiments) == 1, []
    for experiment in experiments:
        settings = sizes[experiment.name]
        if methods is not None:
            settings["methods"] = tuple(m for m in settings.get("methods", ()) if m in methods)
            if not settings["methods"] and not alone:
                continue
        if problems is not None and not _limit_problems(settings, problems) and alone:
            raise ModelError(f"{experiment.name} has no number of problems; leave --problems out.")
        if splits is not None and "splits" in settings:
            settings["splits"] = str(splits)
        for s in range(seed, seed + max(1, math.ceil(experiment.seeds * seeds))):
            mine = settings
            if s > seed:
                kept = tuple(m for m in settings["methods"] if m not in experiment.first_seed_only)
                mine = {**settings, "methods": kept}
            runs.append(Run(experiment, mine, s, list(experiment.parts(mine, s))))
    return runs


def _check_wishes(
    sizes: Mapping[str, dict[str, Any]], methods: Sequence[str] | None, problems: int | None, splits: Path | None
) -> None:
    known = {m for size in sizes.values() for m in size.get("methods", ())}
    for method in methods or ():
        if method not in known:
            raise ModelError(f"There is no method {method!r} here; choose from {', '.join(sorted(known)) or 'none'}.")
    if problems is not None and problems < 1:
        raise ModelError(f"The number of problems must be at least 1, not {problems}.")
    if splits is not None and not any("splits" in size for size in sizes.values()):
        raise ModelError("Given splits are read by exp5 only; leave --splits out.")


def _limit_problems(settings: dict[str, Any], problems: int) -> bool:
    """Set the number of problems; False for an experiment that has none."""
    if "n_problems" in settings:
        settings["n_problems"] = problems
    elif "names" in settings:  # data sets in sequence: the first few of them
        settings["names"] = tuple(settings["names"])[:problems]
    else:
        return False
    return True


def run(runs: Sequence[Run], store: Store, jobs: int = 1) -> Iterator[tuple[Step, dict[str, Any] | None]]:
    """Yield a step, with the part's result, after every part of all runs; parts that two runs share are done once."""
    parts = list({part.key: part for one in runs for part in one.parts}.values())
    left = [part for part in parts if not store.path(part).exists()]
    heard: dict[str, bool] = {}
    errors: dict[str, str] = {}

    def running() -> tuple[str, ...]:
        return tuple(part.name for part in left[:jobs])  # they are started in this order

    yield Step(None, False, 0, len(parts), running()), None
    finished = run_parts(
        parts,
        store,
        jobs,
        lambda part, reused: heard.update({part.key: reused}),
        lambda part, error: errors.update({part.key: f"{type(error).__name__}: {error}"}),
    )
    for n_done, (part, result) in enumerate(finished, 1):
        left = [other for other in left if other.key != part.key]
        yield Step(part, heard.get(part.key, False), n_done, len(parts), running(), errors.get(part.key)), result


def outcome_of(
    runs: Run | Sequence[Run], results: Mapping[str, dict[str, Any]], errors: Mapping[str, str] | None = None
) -> Outcome:
    """An experiment's outcome from the results, by part key, that there are; ``complete`` says whether they are all there.

    Everything is of the first of the runs, which differ in their seed; ``spread`` has the headlines of all of them. `errors`,
    by part key too, become ``failed``: the names of the parts and what each failed with.
    """
    each = [runs] if isinstance(runs, Run) else list(runs)
    one = each[0]
    parts = [part for run in each for part in run.parts]
    there = [part for part in parts if part.key in results]
    outcome = _assembled(one, results)
    settings = dict(outcome.json["settings"])
    if settings.get("splits"):
        settings["splits"] = Path(settings["splits"]).name  # a folder's whole path says more than a reader should know
    json = {
        **outcome.json,
        "settings": settings,
        "size": "full" if _same_size(one, one.experiment.full) else "quick" if _same_size(one, one.experiment.quick) else "own",
        "complete": len(there) == len(parts),
        "parts": [len(there), len(parts)],
        "machine": machine(),
    }  # fmt: skip
    if len(each) > 1:
        json["spread"] = _spread(each, [outcome.json, *(_assembled(run, results).json for run in each[1:])])
    failed = {f"{part.name}, seed {run.seed}" if len(each) > 1 else part.name: errors[part.key]
              for run in each for part in run.parts if errors and part.key in errors}  # fmt: skip
    if failed:
        json["failed"] = failed
    return Outcome(json, outcome.series)


def _assembled(one: Run, results: Mapping[str, dict[str, Any]]) -> Outcome:
    mine = {part.name: results[part.key] for part in one.parts if part.key in results}
    try:
        return one.experiment.assemble(one.settings, one.seed, mine)
    except (KeyError, IndexError, ValueError):
        if len(mine) == len(one.parts):
            raise
        # an interrupted run with too little to assemble is still reported: its settings, and how far it came
        empty = {"experiment": one.experiment.name, "settings": plain_settings(one.settings, one.seed), "methods": {}}
        return Outcome(empty, {})


def _spread(runs: Sequence[Run], jsons: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The headlines of every method, one entry per seed that it finished."""
    methods: dict[str, dict[str, list[Any]]] = {}
    for run, result in zip(runs, jsons, strict=True):
        if result.get("methods"):
            for method, row in run.experiment.headlines(result).items():
                for key, value in row.items():
                    methods.setdefault(method, {}).setdefault(key, []).append(value)
    return {"seeds": [run.seed for run in runs], "methods": methods}


def _same_size(one: Run, size: Mapping[str, Any]) -> bool:
    return {**size, "splits": None} == {**one.settings, "splits": None}


def machine() -> dict[str, Any]:
    """What the run was made on, without names of hosts, people or folders."""
    versions = {}
    for package in ("heliograph", "numpy", "scipy", "scikit-learn", "matplotlib"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "from source"
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "cpus": os.cpu_count(),
        "python": ".".join(map(str, sys.version_info[:3])),
        "versions": versions,
    }
