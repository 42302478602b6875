"""Experiment 3: just-in-time learning over 30 logistic regressions drawn from the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heliograph.paper.columns import KJIT, kjit_settings
from heliograph.paper.running.parts import Outcome, Part
from heliograph.paper.sequences.logistic import METHODS, synthetic_sequence
from heliograph.paper.sequences.parts import assemble_sequences, parts_of_sequence, sequence_headlines

__all__ = ["FULL", "QUICK", "assemble", "headlines", "parts_of"]

QUICK: dict[str, Any] = {
    "n_problems": 6,
    "d": 20,
    "n": 300,
    "n_test": 10_000,
    "sweeps": 10,
    "particles": 50_000,  # of sampling and of every learner's oracle alike
    "methods": METHODS,
    "columns": {name: kjit_settings("exp3", name) for name in KJIT},
    "operators": {"neural": {"messages": 1200, "max_iter": 150}},
}
FULL: dict[str, Any] = {**QUICK, "n_problems": 30, "particles": 500_000, "operators": {}}


def parts_of(settings: Mapping[str, Any], seed: int) -> list[Part]:
    """A method each, and a problem each of sampling."""
    return parts_of_sequence("exp3", synthetic_sequence, settings, seed, settings["n_problems"])


def assemble(settings: Mapping[str, Any], seed: int, results: Mapping[str, dict[str, Any]]) -> Outcome:
    """Lists with one entry per problem."""
    return assemble_sequences("exp3", settings, seed, results)


def headlines(json: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What is shown as a spread over seeds."""
    return {method: sequence_headlines(row, ()) for method, row in json["methods"].items()}
