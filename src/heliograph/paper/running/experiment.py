"""What an experiment is: its sizes, its parts, how their results become JSON, and what is shown and said of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from heliograph.paper.running.parts import Part

__all__ = ["Experiment", "Json", "Outcome", "plain_settings", "split_by_method"]

Json = Mapping[str, Any]


class Outcome(NamedTuple):
    """The result of an experiment."""

    json: dict[str, Any]  # settings, and per method what the tables show
    series: dict[str, Any]  # nested dicts of arrays, for the figures only


class Experiment(NamedTuple):
    """One experiment of the paper."""

    name: str
    title: str
    lead: str  # what the page begins with
    quick: Mapping[str, Any]  # settings of at most two minutes on two cores
    full: Mapping[str, Any]  # the paper's sizes
    parts: Callable[[Mapping[str, Any], int], Sequence[Part]]  # settings, seed
    assemble: Callable[[Mapping[str, Any], int, Mapping[str, dict[str, Any]]], Outcome]  # + results by part name
    headlines: Callable[[Json], dict[str, dict[str, Any]]]  # of every method, the numbers shown as a spread over seeds
    tables: Callable[[Json], list[Any]]
    sentences: Callable[[Json], list[str]]
    claims: Callable[[Json], list[Any]]  # what the paper says, what we find, and the verdict
    draw: Callable[[dict[str, Any], dict[str, Any]], list[Any]]  # JSON and series to pictures
    seeds: float = 1.0  # share of the seeds asked for that this experiment is run with
    first_seed_only: tuple[str, ...] = ()  # methods too slow for more than one


def plain_settings(settings: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """The settings and the seed as JSON has them."""
    return {**{k: list(v) if isinstance(v, tuple) else v for k, v in settings.items()}, "seed": seed}


def split_by_method(
    settings: Mapping[str, Any], results: Mapping[str, dict[str, Any]], prefix: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the tables and what the figures show of each method whose part, named `prefix` and the method, was run."""
    rows = {m: results[f"{prefix} {m}"] for m in settings["methods"] if f"{prefix} {m}" in results}
    tables = {m: {k: v for k, v in row.items() if k != "series"} for m, row in rows.items()}
    return tables, {m: row["series"] for m, row in rows.items()}
