"""Tables of the report: a row per method, the paper's number under ours where it printed one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from heliograph.paper.report.published import EXP3, EXP5, paper_of
from heliograph.paper.report.style import label, number

__all__ = ["Cell", "Table", "tables_of"]


class Cell(NamedTuple):
    """A number, and the paper's."""

    ours: str
    paper: str | None = None


class Table(NamedTuple):
    """Headings, and rows that begin with a name."""

    caption: str
    columns: Sequence[str]  # the first one heads the names
    rows: Sequence[tuple[str, Sequence[Cell]]]


def _cell(ours: Any, paper: Any = None, digits: int = 3) -> Cell:
    return Cell(number(ours, digits), None if paper is None else number(paper, digits))


def _share(ours: Any, paper: Any = None) -> Cell:
    """Shares of test rows, with the four decimals that the paper prints."""
    return Cell("–" if ours is None else f"{ours:.4f}", None if paper is None else f"{paper:.4f}")


def _mean(values: Sequence[Any]) -> float | None:
    there = [v for v in values if v is not None]
    return float(np.mean(there)) if there else None


def _median(values: Sequence[Any]) -> float | None:
    return float(np.median([np.inf if v is None else v for v in values])) if values else None


def _most(values: Sequence[Any]) -> float | None:
    # JSON has no infinity: what is missing among KLs was beyond all numbers
    return None if not values else float("inf") if None in values else float(max(values))


def _split(row: dict[str, Any], many: Callable[[Any], Any]) -> list[Cell]:
    return [_cell(many(row[f"seconds_{part}"])) for part in ("oracle", "learning", "prediction", "rest")]


_SPLIT = ("of these oracle", "learning", "prediction", "rest")


# ---- one function per experiment -------------------------------------------------------------------------------------
def _exp1(result: dict[str, Any]) -> list[Table]:
    sampled = result.get("against_sampled", {}).get("methods", {})
    rows = []
    for method in dict.fromkeys([*result["methods"], *sampled]):
        exact, drawn = result["methods"].get(method, {}), sampled.get(method, {})
        row = [
            _cell(drawn.get(key), paper_of(result, method, key)) for key in ("mean_log_kl", "sd_log_kl", "p99_log_kl")
        ]
        row += [_cell(exact.get(key)) for key in ("mean_log_kl", "sd_log_kl", "p99_log_kl", "worst_log_kl")]
        row += [_cell(exact.get("seconds_training")), _cell(exact.get("seconds_prediction"))]
        rows.append((label(method), row))
    noise = result.get("against_sampled", {}).get("label_noise")
    if noise:
        rows.append(
            (
                "the sampled labels themselves",
                [_cell(noise["mean_log_kl"]), _cell(noise["sd_log_kl"]), *[Cell("–")] * 7],
            )
        )
    return [
        Table(
            "Log KL of predicted beliefs (smaller is better): against sampled labels, as the paper, and against exact ones",
            ("method", "sampled: mean", "sd", "99th percentile", "exact: mean", "sd", "99th percentile", "worst",
             "seconds training", "seconds prediction"),
            rows,
        )
    ]  # fmt: skip


def _exp2(result: dict[str, Any]) -> list[Table]:
    rows = []
    for method, row in result["methods"].items():
        tv, jump = (paper_of(result, method, key) or (None, None) for key in ("total_variation", "biggest_jump"))
        cells = [_cell(row["total_variation"][k], tv[k]) for k in (0, 1)]
        cells += [_cell(row["biggest_jump"][k], jump[k]) for k in (0, 1)]
        cells += [_cell(row["rank_correlation"]), Cell(f"{row['certain_and_wrong']} of {row['n_certain']:,}")]
        cells.append(_cell(row.get("certain_above", {}).get("0.01")))
        rows.append((label(method), cells))
    return [
        Table(
            "Smoothness of log uncertainty along the curves, and test messages on which a method is certain and wrong",
            ("method", "total variation, set 1", "set 2", "biggest jump, set 1", "set 2",
             "rank correlation with error", "wrong among the certain", "above 0.01 nats"),
            rows,
        )
    ]  # fmt: skip


def _exp3(result: dict[str, Any]) -> list[Table]:
    rows = []
    n = max((len(row["disagreement"]) for row in result["methods"].values()), default=0)
    for method, row in result["methods"].items():
        paper = EXP3.get(method, {})
        calls = row["oracle_calls"]
        own = len(calls)  # each problem of sampling is a part of its own, and a run may have ended before the last
        rows.append(
            (
                label(method) if own == n else f"{label(method)} ({own} of {n} problems)",
                [
                    _share(_mean(row["disagreement"]), paper.get("disagreement")),
                    _cell(_median(row["posterior_kl"])),
                    _cell(_most(row["posterior_kl"])),
                    _cell(calls[0], paper.get("calls_first")),
                    _cell(_mean(calls[1:])),
                    _cell(row["total_oracle_calls"]),
                    _cell(row["total_evaluations"]),
                    _cell(int(sum(row["improper"]))),
                    _cell(row["seconds"][0], paper.get("seconds_first", paper.get("seconds"))),
                    _cell(_mean(row["seconds"][1:]), paper.get("seconds_later", paper.get("seconds"))),
                    *_split(row, _mean),
                ],
            )
        )
    return [
        Table(
            f"{n} problems: means, except for KL(exact EP posterior || its posterior), in nats",
            ("method", "disagreement", "KL, median", "KL, worst", "oracle calls, problem 1", "mean of later ones", "in all",
             "evaluations", "improper", "seconds, problem 1", "mean of later ones", *_SPLIT),
            rows,
        )
    ]  # fmt: skip


def _exp5(result: dict[str, Any]) -> list[Table]:
    names = result["datasets"]
    accuracy, work, speed = [], [], []
    sampling = result["methods"].get("sampling")
    for method, row in result["methods"].items():
        paper = EXP5.get(method, {})
        error = [
            _share(x, paper.get("disagreement", {}).get(n)) for n, x in zip(names, row["disagreement"], strict=False)
        ]
        kl = [_cell(x if x is not None else float("inf")) for x in row["posterior_kl"]]
        accuracy.append((label(method), [*error, *kl]))
        work.append(
            (
                label(method),
                [
                    *[_cell(c) for c in row["oracle_calls"]],
                    _cell(row["total_oracle_calls"]),
                    _cell(row["total_evaluations"]),
                    _cell(int(sum(row["improper"]))),
                    _cell(float(sum(row["seconds"]))),
                    *_split(row, lambda values: float(sum(values))),
                ],
            )
        )
        if sampling is not None and method != "sampling":
            faster = [s / t for s, t in zip(sampling["seconds"], row["seconds"], strict=False)]
            given = paper.get("speed_up", {})
            speed.append((label(method), [_cell(x, given.get(n)) for n, x in zip(names, faster, strict=False)]))
    shown = [n.replace("_", " ") for n in names]
    made = [
        Table("Error on the test rows, and KL(exact EP posterior || its posterior) in nats",
              ("method", *(f"error, {n}" for n in shown), *(f"KL, {n}" for n in shown)), accuracy),
        Table("What it cost", ("method", *(f"oracle calls, {n}" for n in shown), "in all", "evaluations", "improper",
                               "seconds in all", *_SPLIT), work),
    ]  # fmt: skip
    if speed:
        made.append(Table("Times as fast as sampling", ("method", *shown), speed))
    return made + _asked_per_sweep(result["methods"], shown)


def _asked_per_sweep(methods: dict[str, Any], shown: list[str]) -> list[Table]:
    asked = [
        (f"{label(m)}, {n}", [_cell(c) for c in per_sweep])
        for m in ("kjit", "kjit program", "learned")
        if m in methods
        for n, per_sweep in zip(shown, methods[m]["asked_per_sweep"], strict=False)
    ]
    if not asked:
        return []
    longest = max(len(cells) for _, cells in asked)
    rows = [(name, [*cells, *[Cell("")] * (longest - len(cells))]) for name, cells in asked]
    return [Table("Oracle calls in each sweep", ("sweep", *(str(k + 1) for k in range(longest))), rows)]


def _exp4(result: dict[str, Any]) -> list[Table]:
    rows, asked = [], []
    steps = list(dict.fromkeys(k for row in result["methods"].values() for k in row.get("oracle_calls_after", {})))
    for method, row in result["methods"].items():
        cells = [
            _cell(row.get(key), paper_of(result, method, key), 6 if key.startswith("correlation") else 3)
            for key in ("correlation_log_shape", "correlation_log_rate", "mean_posterior_kl", "worst_posterior_kl",
                        "oracle_calls", "evaluations", "improper", "seconds", "seconds_when_asked", "seconds_when_certain")
        ]  # fmt: skip
        rows.append((label(method), [*cells, *_split(row, lambda value: value)]))
        given = paper_of(result, method, "oracle_calls_after") or {}
        asked.append((label(method), [_cell(row.get("oracle_calls_after", {}).get(k), given.get(k)) for k in steps]))
    return [
        Table(
            "Posteriors of all problems against the exact ones; KL(exact || its) in nats",
            ("method", "correlation, log shape", "log rate", "KL, mean", "KL, worst", "oracle calls", "evaluations",
             "improper", "seconds in all", "seconds per problem if asked", "if certain", *_SPLIT),
            rows,
        ),
        Table("Oracle calls after so many problems", ("method", *steps), asked),
    ]  # fmt: skip


def _features(result: dict[str, Any]) -> list[Table]:
    wanted = list(dict.fromkeys(d for row in result["methods"].values() for d in row["D"]))
    rows = []
    for method, row in result["methods"].items():
        at = dict(zip(row["D"], row["mean_abs_error"], strict=True))
        rows.append((label(method), [_cell(at.get(d)) for d in wanted]))
    made = [Table("Mean absolute error of the approximated kernel", ("kernel", *(f"D = {d:,}" for d in wanted)), rows)]
    grid = result.get("grid")
    if grid:
        cells = [
            (f"D_in = {d:,}", [_cell(x) for x in line])
            for d, line in zip(grid["D_in"], grid["mean_log_kl"], strict=True)
        ]
        made.append(Table("Mean log KL of predictions", ("", *(f"D_out = {d:,}" for d in grid["D_out"])), cells))
    return made


_TABLES = {"exp1": _exp1, "exp2": _exp2, "exp3": _exp3, "exp4": _exp4, "exp5": _exp5, "features": _features}


def tables_of(result: dict[str, Any]) -> list[Table]:
    """The tables of one experiment, from its JSON; none for an experiment that has no finished method yet."""
    return _TABLES[result["experiment"]](result) if result.get("methods") else []
