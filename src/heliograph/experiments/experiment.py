"""What an experiment is: its sizes, its parts, and how their results become the JSON that people and checks read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from heliograph.experiments.parts import Part

__all__ = ["Experiment", "Outcome"]


class Outcome(NamedTuple):
    """The result of an experiment."""

    json: dict[str, Any]  # settings, and per method what the tables show
    series: dict[str, Any]  # nested dicts of arrays, for the figures only


class Experiment(NamedTuple):
    """One experiment of the paper."""

    name: str
    title: str
    quick: Mapping[str, Any]  # settings of at most two minutes on two cores
    full: Mapping[str, Any]  # the paper's sizes
    parts: Callable[[Mapping[str, Any], int], Sequence[Part]]  # settings, seed
    assemble: Callable[[Mapping[str, Any], int, Mapping[str, dict[str, Any]]], Outcome]  # + results by part name
