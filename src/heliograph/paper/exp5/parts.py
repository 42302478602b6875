"""Experiment 5: four UCI data sets in sequence, with one logistic factor that learns across them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heliograph.paper.exp3.parts import assemble_sequences, parts_of_sequence
from heliograph.paper.exp5.incoming import uci_incoming
from heliograph.paper.logistic import METHODS, uci_sequence
from heliograph.paper.running.experiment import Experiment, Outcome
from heliograph.paper.running.parts import Part

__all__ = ["EXPERIMENT"]

ORDER = ("banknote", "blood_transfusion", "fertility", "ionosphere")
QUICK = {
    "names": ORDER,
    "standardise": "whole",
    "splits": None,
    "sweeps": 10,
    "particles": 2_000,
    "jit_particles": 20_000,
    "methods": METHODS,
    "operators": {
        "neural": {"messages": 1200, "max_iter": 150},
        "kjit": {"threshold": -9.0, "minibatch": 500},
        "kjit text": {"threshold": -9.0, "minibatch": 500},
        "kjit program": {"D_in": 400, "D_out": 800, "threshold": -8.95, "minibatch": 500},
    },
}
_FULL_OPERATORS = {name: given for name, given in QUICK["operators"].items() if name != "neural"}
FULL = {**QUICK, "particles": 500_000, "jit_particles": 500_000, "operators": _FULL_OPERATORS}


def _parts(settings: Mapping[str, Any], seed: int) -> list[Part]:
    met = {k: settings[k] for k in ("names", "standardise", "splits", "sweeps")}
    methods = parts_of_sequence("exp5", uci_sequence, settings, seed, None)
    return [Part("exp5 incoming messages", uci_incoming, {**met, "seed": seed}), *methods]


def _assemble(settings: Mapping[str, Any], seed: int, results: Mapping[str, dict[str, Any]]) -> Outcome:
    outcome = assemble_sequences("exp5", settings, seed, results)
    met = results.get("exp5 incoming messages")
    return Outcome(
        {**outcome.json, "datasets": list(settings["names"])},
        {**outcome.series, **({"incoming": met["series"]} if met else {})},
    )


EXPERIMENT = Experiment("exp5", "Four real data sets in sequence", QUICK, FULL, _parts, _assemble)
