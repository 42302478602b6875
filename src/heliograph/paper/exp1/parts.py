"""Experiment 1: learning messages to z of the logistic factor in batch, and the appendix's table of ten methods."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from heliograph.paper.batch.kernels import Sizes
from heliograph.paper.batch.messages import labelled_messages, log_kl_of
from heliograph.paper.batch.methods import METHODS, train
from heliograph.paper.columns import published
from heliograph.paper.running.parts import Outcome, Part, plain_settings

__all__ = ["FULL", "PERCENTILES", "QUICK", "assemble", "headlines", "label_noise", "parts_of", "score_method"]

PERCENTILES = (10.0, 50.0, 90.0, 99.0)  # of the error, at which example messages are shown

FULL: dict[str, Any] = {
    "methods": tuple(METHODS),
    "n_train": 5000,
    "n_test": 3000,
    "sizes": Sizes()._asdict(),
    # the text's messages, with exact labels
    "exact": {"n_problems": 20, "d": 20, "n": 300, "sweeps": 10, "keep_sweeps": 5, "particles": 0},
    # the messages of the authors' program, whose labels its sampler drew
    "sampled": {"n_problems": 20, "d": 10, "n": 400, "sweeps": 5, "keep_sweeps": 5, "particles": 50_000},
}
QUICK: dict[str, Any] = {
    **FULL,
    "n_train": 800,
    "n_test": 600,
    "sizes": Sizes(D_in=150, D_out=300, rank=200, max_iter=300)._asdict(),
    "exact": {**FULL["exact"], "n_problems": 6},
    "sampled": {**FULL["sampled"], "n_problems": 6},
}


# ---- parts -----------------------------------------------------------------------------------------------------------
def score_method(
    method: str, seed: int, n_train: int, n_test: int, sizes: Mapping[str, int], messages: Mapping[str, int]
) -> dict[str, Any]:
    """Train one method on one kind of labels and score it on test messages of the same kind."""
    data, test = labelled_messages(seed, n_train=n_train, n_test=n_test, **messages)
    # the same stream for every method: it does not matter which others are run
    rng = np.random.default_rng([seed, 1])
    start = time.perf_counter()
    trained = train(method, rng, data, Sizes(**sizes))
    middle = time.perf_counter()
    prediction = trained.predict(test.incoming)
    end = time.perf_counter()
    log_kl = log_kl_of(test.belief, prediction)
    there = np.flatnonzero(np.isfinite(log_kl))  # predicted statistics may be those of no belief
    known = log_kl[there]
    order = there[np.argsort(known, kind="stable")]
    shown = order[[round(p / 100 * (len(order) - 1)) for p in PERCENTILES]]
    return {
        "mean_log_kl": float(known.mean()),
        "sd_log_kl": float(known.std()),
        "p99_log_kl": float(np.percentile(known, 99)),
        "worst_log_kl": float(known.max()),
        "n_no_belief": len(log_kl) - len(known),
        "n_train": len(data),
        "n_test": len(test),
        "chosen": trained.chosen,
        "seconds_training": middle - start,
        "seconds_prediction": end - middle,
        "series": {
            "log_kl": known,
            "percentile": np.array(PERCENTILES),
            "true_mean": test.belief.mean[shown],
            "true_variance": test.belief.variance[shown],
            "predicted_mean": prediction.mean[shown],
            "predicted_variance": prediction.variance[shown],
            "example_log_kl": log_kl[shown],
        },
    }


def label_noise(seed: int, n_train: int, n_test: int, messages: Mapping[str, int]) -> dict[str, Any]:
    """How far the sampled test labels are from exact beliefs: the floor under every score against them."""
    _, test = labelled_messages(seed, n_train=n_train, n_test=n_test, **messages)
    log_kl = log_kl_of(test.belief, test.exact)
    return {"mean_log_kl": float(log_kl.mean()), "sd_log_kl": float(log_kl.std()), "n_test": len(test)}


def parts_of(settings: Mapping[str, Any], seed: int) -> list[Part]:
    """A method on one kind of labels each."""
    size = {"seed": seed, "n_train": settings["n_train"], "n_test": settings["n_test"]}
    noise = Part("exp1 label noise", label_noise, {**size, "messages": settings["sampled"]})
    return [
        Part(
            f"exp1 {against} {method}",
            score_method,
            {**size, "method": method, "sizes": settings["sizes"], "messages": settings[against]},
        )
        for against in ("exact", "sampled")
        for method in settings["methods"]
    ] + [noise]


def assemble(settings: Mapping[str, Any], seed: int, results: Mapping[str, dict[str, Any]]) -> Outcome:
    """Two tables of methods: against exact labels, and against sampled ones as the paper."""
    tables: dict[str, dict[str, Any]] = {"exact": {}, "sampled": {}}
    series: dict[str, Any] = {"exact": {}, "sampled": {}}
    for against, table in tables.items():
        for method in settings["methods"]:
            result = results.get(f"exp1 {against} {method}")
            if result is not None:
                table[method] = {k: v for k, v in result.items() if k != "series"}
                series[against][method] = result["series"]
    sampled: dict[str, Any] = {"methods": tables["sampled"]}
    if "exp1 label noise" in results:
        sampled["label_noise"] = results["exp1 label noise"]
    json = {
        "experiment": "exp1",
        "settings": plain_settings(settings, seed),
        "methods": tables["exact"],
        "against": "exact",
    }
    return Outcome({**json, "against_sampled": sampled, "paper": published("exp1")}, series)


def headlines(json: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What is shown as a spread over seeds."""
    found: dict[str, dict[str, Any]] = {}
    for against, methods in (("sampled", json["against_sampled"]["methods"]), ("exact", json["methods"])):
        for method, row in methods.items():
            names = {
                "mean": "mean_log_kl",
                "sd": "sd_log_kl",
                "99th percentile": "p99_log_kl",
                "no belief": "n_no_belief",
            }
            found.setdefault(method, {}).update({f"{against}: {k}": row[key] for k, key in names.items()})
    return found
