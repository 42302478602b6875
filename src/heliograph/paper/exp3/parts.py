"""Experiment 3: just-in-time learning over 30 logistic regressions drawn from the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from heliograph.paper.logistic import METHODS, synthetic_sequence
from heliograph.paper.running.experiment import Experiment, Outcome, plain_settings
from heliograph.paper.running.parts import Part

__all__ = ["EXPERIMENT", "assemble_sequences", "parts_of_sequence"]

QUICK = {
    "n_problems": 6,
    "d": 20,
    "n": 300,
    "n_test": 10_000,
    "sweeps": 10,
    "particles": 2_000,  # of sampling, which asks for every message
    "jit_particles": 20_000,  # of those that ask now and then
    "methods": METHODS,
    "operators": {"neural": {"messages": 1200, "max_iter": 150}},
}
FULL = {**QUICK, "n_problems": 30, "particles": 500_000, "jit_particles": 500_000, "operators": {}}


def parts_of_sequence(
    experiment: str, work: Any, settings: Mapping[str, Any], seed: int, n_problems: int | None
) -> list[Part]:
    """A part for each method; sampling learns nothing, so with many draws each of its problems is a part of its own."""
    shared = {k: v for k, v in settings.items() if k not in ("methods", "n_problems", "operators", "jit_particles")}
    made = []
    for method in settings["methods"]:
        own = {**shared, "method": method, "seed": seed}
        own["operator"] = settings.get("operators", {}).get(method)
        if method != "sampling":
            own["particles"] = settings.get("jit_particles", settings["particles"])
        if method == "sampling" and n_problems is not None:
            for k in range(n_problems):
                made.append(Part(f"{experiment} {method} {k + 1}", work, {**own, "n_problems": 1, "first": k}))
        else:
            size = {} if n_problems is None else {"n_problems": n_problems}
            made.append(Part(f"{experiment} {method}", work, {**own, **size}))
    return made


def _parts(settings: Mapping[str, Any], seed: int) -> list[Part]:
    return parts_of_sequence("exp3", synthetic_sequence, settings, seed, settings["n_problems"])


def assemble_sequences(
    experiment: str, settings: Mapping[str, Any], seed: int, results: Mapping[str, dict[str, Any]]
) -> Outcome:
    """Join the parts of every method into lists with one entry per problem."""
    methods: dict[str, Any] = {}
    series: dict[str, Any] = {}
    for method in settings["methods"]:
        mine = [results[name] for name in _in_order(results, f"{experiment} {method}")]
        if not mine:
            continue  # an interrupted run: what is there is shown
        row: dict[str, Any] = {}
        for column in mine[0]:
            if column != "series":
                row[column] = [entry for result in mine for entry in result[column]]
        row["total_oracle_calls"] = int(sum(row["oracle_calls"]))
        row["total_evaluations"] = int(sum(row["evaluations"]))
        methods[method] = row
        if mine[0]["series"]:
            series[method] = {name: np.concatenate([r["series"][name] for r in mine]) for name in mine[0]["series"]}
    return Outcome({"experiment": experiment, "settings": plain_settings(settings, seed), "methods": methods}, series)


def _in_order(results: Mapping[str, Any], name: str) -> list[str]:
    """The method's own part, or its numbered ones in order."""
    if name in results:
        return [name]
    numbered = [n for n in results if n.startswith(f"{name} ") and n[len(name) + 1 :].isdigit()]
    return sorted(numbered, key=lambda n: int(n[len(name) + 1 :]))


def _assemble(settings: Mapping[str, Any], seed: int, results: Mapping[str, dict[str, Any]]) -> Outcome:
    return assemble_sequences("exp3", settings, seed, results)


EXPERIMENT = Experiment("exp3", "Just-in-time learning of the logistic factor", QUICK, FULL, _parts, _assemble)
