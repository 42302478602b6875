"""Experiment 5: four UCI data sets in sequence, with one logistic factor that learns across them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heliograph.experiments.exp3 import assemble_sequences, parts_of_sequence
from heliograph.experiments.experiment import Experiment, Outcome
from heliograph.experiments.logistic import METHODS, uci_sequence
from heliograph.experiments.parts import Part

__all__ = ["EXPERIMENT"]

ORDER = ("banknote", "blood_transfusion", "fertility", "ionosphere")
QUICK = {
    "names": ORDER,
    "standardise": "whole",
    "splits": None,
    "sweeps": 10,
    "particles": 2_000,
    "methods": METHODS,
    "operators": {
        "kjit": {"threshold": -9.0, "minibatch": 500},
        "kjit program": {"D_in": 400, "D_out": 800, "threshold": -8.95, "minibatch": 500},
    },
}
FULL = {**QUICK, "particles": 500_000}


def _parts(settings: Mapping[str, Any], seed: int) -> list[Part]:
    return parts_of_sequence("exp5", uci_sequence, settings, seed, None)


def _assemble(settings: Mapping[str, Any], seed: int, results: Mapping[str, dict[str, Any]]) -> Outcome:
    outcome = assemble_sequences("exp5", settings, seed, results)
    return outcome._replace(json={**outcome.json, "datasets": list(settings["names"])})


EXPERIMENT = Experiment("exp5", "Four real data sets in sequence", QUICK, FULL, _parts, _assemble)
