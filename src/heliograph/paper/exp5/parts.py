"""Experiment 5: four UCI data sets in sequence, with one logistic factor that learns across them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heliograph.paper.columns import KJIT, kjit_settings
from heliograph.paper.exp5.incoming import uci_incoming
from heliograph.paper.running.experiment import Outcome
from heliograph.paper.running.parts import Part
from heliograph.paper.sequences.logistic import METHODS, uci_sequence
from heliograph.paper.sequences.parts import assemble_sequences, parts_of_sequence, sequence_headlines

__all__ = ["FULL", "PROGRAM_ORDER", "QUICK", "assemble", "headlines", "parts_of"]

ORDER = ("banknote", "blood_transfusion", "fertility", "ionosphere")
PROGRAM_ORDER = ("banknote", "blood_transfusion", "ionosphere", "fertility")  # in which the program met them
QUICK: dict[str, Any] = {
    "names": ORDER,
    "standardise": "whole",
    "splits": None,
    "sweeps": 10,
    "particles": 50_000,  # of sampling and of every learner's oracle alike
    "methods": METHODS,
    "columns": {name: kjit_settings("exp5", name) for name in KJIT},
    "operators": {"neural": {"messages": 1200, "max_iter": 150}},
}
FULL: dict[str, Any] = {**QUICK, "particles": 500_000, "operators": {}}


def parts_of(settings: Mapping[str, Any], seed: int) -> list[Part]:
    """The messages that come in, and a method each; `kjit (program)` meets the data sets in its own order."""
    met = {k: settings[k] for k in ("names", "standardise", "splits", "sweeps")}
    made = [Part("exp5 incoming messages", uci_incoming, {**met, "seed": seed})]
    for part in parts_of_sequence("exp5", uci_sequence, settings, seed, None):
        if part.settings["method"] == "kjit (program)":
            order = tuple(n for n in PROGRAM_ORDER if n in settings["names"])
            part = part._replace(settings={**part.settings, "names": order})
        made.append(part)
    return made


def assemble(settings: Mapping[str, Any], seed: int, results: Mapping[str, dict[str, Any]]) -> Outcome:
    """Lists with one entry per data set, in the text's order whatever order a method met them in (`run_order`)."""
    outcome = assemble_sequences("exp5", settings, seed, results)
    for row in outcome.json["methods"].values():
        met = list(row["names"])
        places = [met.index(n) for n in settings["names"]]
        for key, values in row.items():
            if isinstance(values, list):
                row[key] = [values[k] for k in places]
        row["run_order"] = met
    incoming = results.get("exp5 incoming messages")
    return Outcome(
        {**outcome.json, "datasets": list(settings["names"])},
        {**outcome.series, **({"incoming": incoming["series"]} if incoming else {})},
    )


def headlines(json: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What is shown as a spread over seeds, for every data set."""
    sampling = json["methods"].get("sampling")
    found = {}
    for method, row in json["methods"].items():
        found[method] = sequence_headlines(row, json["datasets"])
        if sampling is not None and method != "sampling":
            found[method] |= {
                f"sampling's seconds over its, {n}": s / t
                for n, s, t in zip(json["datasets"], sampling["seconds"], row["seconds"], strict=True)
            }
    return found
