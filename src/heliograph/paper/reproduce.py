"""Running the paper's experiments: their settings, their parts in one pool, and results that are kept in a folder.

The folder holds ``NAME.json`` (what tables and checks read), ``NAME.series.npz`` (what the figures need besides) and
``parts/`` (finished parts, reused by the next run of the same settings).
"""

from __future__ import annotations

import io
import json
import math
import os
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from heliograph.errors import ModelError
from heliograph.paper.registry import EXPERIMENTS
from heliograph.paper.running.experiment import Experiment, Outcome, plain_settings
from heliograph.paper.running.parts import Part, Store, run_parts
from heliograph.storage import write_whole

__all__ = [
    "Run",
    "Step",
    "choose",
    "machine",
    "outcome_of",
    "plan",
    "read_results",
    "run",
    "strict_json",
    "without_timings",
    "write_outcome",
]


class Run(NamedTuple):
    """One experiment with the settings it is to be run with."""

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
) -> list[Run]:
    """Settings of every experiment after the caller's wishes; those that none of `methods` belongs to are left out."""
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
        runs.append(Run(experiment, settings, seed, list(experiment.parts(settings, seed))))
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


def outcome_of(one: Run, results: Mapping[str, dict[str, Any]], errors: Mapping[str, str] | None = None) -> Outcome:
    """The run's outcome from the results, by part key, that there are; ``complete`` says whether they are all there.

    `errors`, by part key too, become ``failed``: the names of the parts and what each failed with.
    """
    mine = {part.name: results[part.key] for part in one.parts if part.key in results}
    complete = len(mine) == len(one.parts)
    try:
        outcome = one.experiment.assemble(one.settings, one.seed, mine)
    except (KeyError, IndexError, ValueError):
        if complete:
            raise
        # an interrupted run with too little to assemble is still reported: its settings, and how far it came
        outcome = Outcome(
            {"experiment": one.experiment.name, "settings": plain_settings(one.settings, one.seed), "methods": {}}, {}
        )
    settings = dict(outcome.json["settings"])
    if settings.get("splits"):
        settings["splits"] = Path(settings["splits"]).name  # a folder's whole path says more than a reader should know
    json = {
        **outcome.json,
        "settings": settings,
        "size": "full" if _same_size(one, one.experiment.full) else "quick" if _same_size(one, one.experiment.quick) else "own",
        "complete": complete,
        "parts": [len(mine), len(one.parts)],
        "machine": machine(),
    }  # fmt: skip
    failed = {part.name: errors[part.key] for part in one.parts if errors and part.key in errors}
    if failed:
        json["failed"] = failed
    return Outcome(json, outcome.series)


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


# ---- the results' folder --------------------------------------------------------------------------------------------
def strict_json(value: Any) -> Any:
    """The value with plain Python numbers; what JSON has no number for (NaN, infinity) becomes None.

    >>> strict_json({"a": np.float64(0.5), "b": [float("inf"), 2]})
    {'a': 0.5, 'b': [None, 2]}
    """
    if isinstance(value, Mapping):
        return {str(k): strict_json(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [strict_json(v) for v in value]
    if isinstance(value, np.ndarray):
        return strict_json(value.tolist())
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def without_timings(value: Any) -> Any:
    """The JSON without what differs from run to run of the same seed: every key that speaks of seconds.

    >>> without_timings({"kjit": {"seconds": [1.0], "seconds_rest": [0.1], "improper": [0]}})
    {'kjit': {'improper': [0]}}
    """
    if isinstance(value, Mapping):
        return {k: without_timings(v) for k, v in value.items() if "seconds" not in str(k)}
    if isinstance(value, (list, tuple)):
        return [without_timings(v) for v in value]
    return value


def write_outcome(out: Path, outcome: Outcome) -> None:
    """Keep an outcome as ``NAME.json`` and ``NAME.series.npz``; each file is written whole or not at all."""
    out.mkdir(parents=True, exist_ok=True)
    name = outcome.json["experiment"]
    paths: list[list[str]] = []
    arrays: list[np.ndarray] = []
    _flatten(outcome.series, [], paths, arrays)
    named: dict[str, Any] = {"index": np.array(json.dumps(paths)), **{f"a{k}": a for k, a in enumerate(arrays)}}
    series = io.BytesIO()
    np.savez_compressed(series, **named)
    write_whole(out / f"{name}.series.npz", series.getvalue())
    text = json.dumps(strict_json(outcome.json), indent=1, allow_nan=False) + "\n"
    write_whole(out / f"{name}.json", text.encode())


def _flatten(value: Any, path: list[str], paths: list[list[str]], arrays: list[np.ndarray]) -> None:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            _flatten(inner, [*path, str(key)], paths, arrays)
    else:
        paths.append(path)
        arrays.append(np.asarray(value))


def read_results(out: Path) -> dict[str, Outcome]:
    """Every outcome kept in a folder, in the paper's order."""
    found = {}
    for name in EXPERIMENTS:
        path = out / f"{name}.json"
        if not path.exists():
            continue
        series: dict[str, Any] = {}
        beside = out / f"{name}.series.npz"
        if beside.exists():
            with np.load(beside, allow_pickle=False) as file:
                for k, keys in enumerate(json.loads(str(file["index"]))):
                    inner = series
                    for key in keys[:-1]:
                        inner = inner.setdefault(key, {})
                    inner[keys[-1]] = file[f"a{k}"]
        found[name] = Outcome(json.loads(path.read_text()), series)
    if not found:
        raise ModelError(f"There are no results in the folder {out.name!r}; run `heliograph reproduce` first.")
    return found
