"""Sequences of problems as parts: one for each method, joined into lists with one entry per problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from heliograph.paper.columns import KJIT, published
from heliograph.paper.running.parts import Outcome, Part, plain_settings

__all__ = ["assemble_sequences", "level_of", "level_per_sweep", "parts_of_sequence", "sequence_headlines"]

_SWEEP = 300  # messages that a level is averaged over: a sweep of experiment 3
_NEAR = 0.1  # of the final level, within which the trace counts as levelled off


def parts_of_sequence(
    experiment: str, work: Any, settings: Mapping[str, Any], seed: int, n_problems: int | None
) -> list[Part]:
    """A part for each method; sampling learns nothing, so with many draws each of its problems is a part of its own."""
    apart = ("methods", "n_problems", "operators", "columns")
    shared = {k: v for k, v in settings.items() if k not in apart}
    made = []
    for method in settings["methods"]:
        own = {**shared, "method": method, "seed": seed}
        own["operator"] = settings["columns" if method in KJIT else "operators"].get(method)
        if method == "sampling" and n_problems is not None:
            for k in range(n_problems):
                made.append(Part(f"{experiment} {method} {k + 1}", work, {**own, "n_problems": 1, "first": k}))
        else:
            size = {} if n_problems is None else {"n_problems": n_problems}
            made.append(Part(f"{experiment} {method}", work, {**own, **size}))
    return made


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
        if mine[0]["series"]:
            series[method] = {name: np.concatenate([r["series"][name] for r in mine]) for name in mine[0]["series"]}
            # the others state uncertainty in other units
            if method in KJIT and np.isfinite(series[method]["log_variance"]).any():
                row["level"], row["level_after"] = level_of(series[method]["log_variance"])
                row["level_per_sweep"] = level_per_sweep(series[method])
        methods[method] = row
    json = {"experiment": experiment, "settings": plain_settings(settings, seed), "methods": methods}
    return Outcome({**json, "paper": published(experiment)}, series)


def _in_order(results: Mapping[str, Any], name: str) -> list[str]:
    """The method's own part, or its numbered ones in order."""
    if name in results:
        return [name]
    numbered = [n for n in results if n.startswith(f"{name} ") and n[len(name) + 1 :].isdigit()]
    return sorted(numbered, key=lambda n: int(n[len(name) + 1 :]))


def level_of(log_variance: np.ndarray) -> tuple[float, int]:
    """Where a trace of log predictive variances settles, and after how many messages it first comes near that.

    The level is the mean of the second half; near is within 0.1 of it, on average over a sweep of 300 messages.

    >>> level_of(np.where(np.arange(4000) < 500, 0.0, -8.8))
    (-8.8, 797)
    """
    known = np.where(np.isfinite(log_variance), log_variance, np.nan).astype(float)
    level = float(np.nanmean(known[len(known) // 2 :]))
    width = min(_SWEEP, len(known))
    finite = np.isfinite(known)
    total = np.cumsum(np.concatenate([[0.0], np.where(finite, known, 0.0)]))
    count = np.cumsum(np.concatenate([[0], finite]))
    there = count[width:] - count[:-width]
    mean = np.where(there > 0, (total[width:] - total[:-width]) / np.maximum(there, 1), np.inf)
    near = np.flatnonzero((np.abs(mean - level) <= _NEAR) & (there == width))
    return round(level, 12), int(near[0] + width) if len(near) else len(known)


def level_per_sweep(kept: Mapping[str, np.ndarray]) -> list[list[float | None]]:
    """The mean log predictive variance in every sweep of every problem; None where nothing was predicted."""
    found = []
    for problem in np.unique(kept["problem"]):
        mine = kept["problem"] == problem
        row: list[float | None] = []
        for sweep in np.unique(kept["sweep"][mine]):
            level = kept["log_variance"][mine & (kept["sweep"] == sweep)].astype(float)
            known = level[np.isfinite(level)]
            row.append(float(known.mean()) if len(known) else None)
        found.append(row)
    return found


def sequence_headlines(row: Mapping[str, Any], names: Sequence[str]) -> dict[str, float | None]:
    """The numbers of a method that are shown as a spread over seeds: for all problems together, or for each of `names`."""
    kl = [np.inf if v is None else v for v in row["posterior_kl"]]
    found: dict[str, float | None] = {}
    if names:
        found |= {f"error, {n}": x for n, x in zip(names, row["disagreement"], strict=False)}
        found |= {f"KL, {n}": x for n, x in zip(names, kl, strict=False)}
    else:
        found |= {"disagreement": float(np.mean(row["disagreement"])), "KL, median": float(np.median(kl))}
    found |= {"KL, worst": max(kl), "oracle calls, problem 1": row["oracle_calls"][0]}
    found |= {"oracle calls": row["total_oracle_calls"], "evaluations": row["total_evaluations"]}
    found["improper"] = int(sum(row["improper"]))
    ratio = [t / e for t, e in zip(row["seconds"], row["seconds_exact"], strict=True)] if "seconds_exact" in row else []
    found["seconds over exact EP's, median"] = float(np.median(ratio)) if ratio else None
    if "level" in row:
        found |= {"level": row["level"], "level after": row["level_after"]}
    return found
