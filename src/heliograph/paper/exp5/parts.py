"""Experiment 5: four UCI data sets in sequence, with one logistic factor that learns across them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from heliograph.engine import Model, after, steps
from heliograph.families import concatenate
from heliograph.paper.batch.messages import Recorder
from heliograph.paper.columns import KJIT, kjit_settings
from heliograph.paper.datasets import load, read_splits, split
from heliograph.paper.running.parts import Outcome, Part
from heliograph.paper.sequences.logistic import METHODS, logistic_factor, uci_sequence
from heliograph.paper.sequences.parts import assemble_sequences, parts_of_sequence, sequence_headlines

__all__ = ["FULL", "PROGRAM_ORDER", "QUICK", "assemble", "headlines", "parts_of", "uci_incoming"]


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


def uci_incoming(seed: int, names: Sequence[str], standardise: str, splits: str | None, sweeps: int) -> dict[str, Any]:
    """Mean and log precision of every message from z in EP runs with exact messages, and the data set of each."""
    mean, log_precision, problem = [], [], []
    given = read_splits(splits, tuple(names)) if splits else None
    for k, name in enumerate(names):
        data = given[name] if given else split(load(name), seed=seed, standardise=standardise)
        recorder, d = Recorder(sweeps), data.X_train.shape[1]
        model = Model()
        w = model.gaussian("w", np.zeros(d), covariance=np.eye(d))
        model.bernoulli("y", logistic_factor()(data.X_train @ w), observed=data.y_train)
        for _ in steps(model, operator=recorder, stop=after(sweeps)):
            pass
        z: Any = concatenate([seen for seen, _ in recorder.seen])
        mean.append(z.mean.astype(np.float32))
        log_precision.append(np.log(z.precision).astype(np.float32))
        problem.append(np.full(len(z), k, dtype=np.int32))
    kept = {"mean": mean, "log_precision": log_precision, "problem": problem}
    return {"series": {name: np.concatenate(parts) for name, parts in kept.items()}}
