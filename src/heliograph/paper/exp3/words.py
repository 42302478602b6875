"""The text on experiment 3: its tables, its sentences, and the paper's claims."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from heliograph.paper.columns import KJIT, PAPERS, paper_of
from heliograph.paper.exp3.parts import headlines
from heliograph.paper.report.claims import NOT_TESTED, Claim, Found, found_in, judged
from heliograph.paper.report.style import label, number
from heliograph.paper.report.tables import (
    SPLIT,
    Table,
    cell,
    mean,
    median,
    most,
    nats,
    range_of,
    share,
    spread_table,
    time_split,
)
from heliograph.paper.running.parts import Json

__all__ = ["LEAD", "TITLE", "claims", "sentences", "tables"]

TITLE = "Just-in-time learning of the logistic factor"
LEAD = (
    "Logistic regressions, one after another, while the operator learns the logistic factor's messages "
    "as it goes and asks an oracle when it is in doubt."
)
_ONE_WAY = (
    "The labels are observed, so the graph's schedule sends nothing to p and only the operator to z is learned; the paper learned "
    "one for each direction, but what it sent to p could change no posterior."
)
_paper: Any = partial(paper_of, "exp3")


def tables(result: Json) -> list[Table]:
    """Means over the problems."""
    rows = []
    n = max((len(row["disagreement"]) for row in result["methods"].values()), default=0)
    for method, row in result["methods"].items():
        calls = row["oracle_calls"]
        own = len(calls)  # each problem of sampling is a part of its own, and a run may have ended before the last
        any_seconds = _paper(method, "seconds")
        cells = [
            share(mean(row["disagreement"]), _paper(method, "disagreement")),
            cell(median(row["posterior_kl"])),
            cell(most(row["posterior_kl"])),
            cell(calls[0], _paper(method, "calls_first")),
            cell(mean(calls[1:])),
            cell(row["total_oracle_calls"]),
            cell(row["total_evaluations"]),
            cell(int(sum(row["improper"]))),
            cell(row.get("level"), _paper(method, "level")),
            cell(row.get("level_after"), _paper(method, "level_after")),
            cell(row["seconds"][0], _paper(method, "seconds_first") or any_seconds),
            cell(mean(row["seconds"][1:]), _paper(method, "seconds_later") or any_seconds),
            *time_split(row, mean),
        ]
        rows.append((label(method) if own == n else f"{label(method)} ({own} of {n} problems)", cells))
    head = ("method", "disagreement", "KL, median", "KL, worst", "oracle calls, problem 1", "mean of later ones", "in all",
            "evaluations", "improper", "level of log variance", "reached after", "seconds, problem 1", "seconds, later ones",
            *SPLIT)  # fmt: skip
    caption = f"{n} problems: means, except for KL(exact EP posterior || its posterior), in nats"
    return [Table(caption, head, rows), *spread_table(result)]


def sentences(result: Json) -> list[str]:
    """What agrees and what does not, from the numbers."""
    methods = result["methods"]
    said = [_ONE_WAY] if set(KJIT) & set(methods) else []
    for method in KJIT:
        if {method, "exact"} <= set(methods):
            said.append(_accuracy(method, methods))
    for method in PAPERS:
        if method in methods and len(methods[method]["oracle_calls"]) > 1:
            calls = methods[method]["oracle_calls"]
            falls = calls[-1] < calls[0]
            said.append(
                f"{method} asks {calls[0]:,} times in the first problem and {number(float(np.mean(calls[1:])))} times in a later "
                "one: its asks " + ("fall, as they should." if falls else "do not fall.")
            )
    if {"kjit (text)", "sampling"} <= set(methods):
        ratio = np.mean(methods["sampling"]["seconds"]) / methods["kjit (text)"]["seconds"][-1]
        said.append(
            f"Sampling with {number(result['settings'].get('particles'))} particles takes {number(float(ratio))} times as long a "
            f"problem as kjit (text) in its last one; in the paper, with 500,000, {1260 / 30.9:.0f} times."
        )
    return said + _rivals(methods)


def _accuracy(method: str, methods: Json) -> str:
    ours, exact = (float(np.mean(methods[m]["disagreement"])) for m in (method, "exact"))
    kl = nats(methods[method]["posterior_kl"])
    word = "within" if abs(ours - exact) <= 0.002 else "not within"
    paper = _paper(method, "disagreement")
    beside = f" (in the paper {paper:.4f} and {_paper('exact', 'disagreement'):.4f})" if paper is not None else ""
    return (
        f"{method} disagrees with the Bayes label on {ours:.4f} of the test rows and exact EP on {exact:.4f}: {word} .002 of each "
        f"other{beside}. That hides how far its posterior is from exact EP's: {number(float(np.median(kl)))} nats in the "
        f"median and {number(float(kl.max()))} at worst."
    )


def _rivals(methods: Json) -> list[str]:
    there = {
        m: float(nats(methods[m]["posterior_kl"]).max())
        for m in ("forest", "learned", "sampling", *KJIT)
        if m in methods
    }
    if "forest" not in there or not set(KJIT) & set(there):
        return []
    worst = ", ".join(f"{label(m)} {number(k)}" for m, k in there.items())
    beaten = all(there["forest"] < k for m, k in there.items() if m in KJIT)
    return [
        f"Worst posterior KL in nats: {worst}."
        + (" Eslami's forest is nearer to exact EP than every KJIT: it learns the same target but with quadratic leaves, which "
           "extrapolate, and it asks by the KL of whole beliefs." if beaten else "")
    ]  # fmt: skip


def claims(result: Json) -> list[Claim]:
    """The paper's claims on learning just in time."""
    found = found_in(result, headlines)
    there = [m for m in PAPERS if found.has(m) and "level" in found.methods[m]]
    made = [_level(found, there), _levels_off(found, there), _drop(result, there)] if there else []
    if there and found.has("exact"):
        made += [_loss(found, there), _posterior(found, there)]
    if there and "sampling" in result["methods"]:
        made.append(_faster(result, there))
    made.append(
        Claim(420, "Forests that split leaves online may become long chains, with predictions of O(N).", "–", NOT_TESTED,
              "not by the experiments; in test `chains` they do if messages come in order, and stay shallow if they do not")
    )  # fmt: skip
    return made


def _level(found: Found, there: list[str]) -> Claim:
    paper = _paper("kjit", "level")
    off = [abs(found.middle(m, "level") - paper) for m in there]
    return Claim(
        1080,
        f"The log predictive variance drops to a stable point at roughly {paper}.",
        found.each(there, "level"),
        judged(max(off) <= 0.2, min(off) <= 0.4),
        "it is set by the noise that the regression assumes (log 1e-4 is -9.21), much less by the threshold (test `level`)",
    )


def _levels_off(found: Found, there: list[str]) -> Claim:
    paper = _paper("kjit", "level_after")
    after = [found.middle(m, "level after") for m in there]
    return Claim(
        1081,
        f"It levels off after about {paper:,.0f} messages.",
        "first within 0.1 of the final level, mean of 300 messages: " + found.each(there, "level after"),
        judged(max(after) <= 2 * paper, min(after) <= 3 * paper),
    )  # fmt: skip


def _drop(result: Json, there: list[str]) -> Claim:
    """First sweep against the others, in every problem but the first."""
    drops = {}
    for m in there:
        levels = [row for row in result["methods"][m]["level_per_sweep"][1:] if None not in row and len(row) > 1]
        drops[m] = [row[0] - float(np.mean(row[1:])) for row in levels]
    known = {m: d for m, d in drops.items() if d}
    return Claim(
        1087,
        "Uncertainty drops abruptly in the first iteration of each new problem, since all messages of it have mean zero.",
        "first sweep minus the others, over problems: " + "; ".join(f"{m} {range_of(d)}" for m, d in known.items()),
        judged(bool(known) and all(max(d) < 0 for d in known.values()), any(np.median(d) < 0 for d in known.values())),
    )


def _loss(found: Found, there: list[str]) -> Claim:
    gaps = [abs(found.middle(m, "disagreement") - found.middle("exact", "disagreement")) for m in there]
    return Claim(
        1113,
        f"KJIT's loss ({_paper('kjit', 'disagreement')}) matches the sampler's and the hand-made factor's "
        f"({_paper('exact', 'disagreement')}).",
        found.each(["exact", *there], "disagreement"),
        judged(max(gaps) <= 0.002, min(gaps) <= 0.002),
        "the level differs because w differs with the seed; the comparison is with exact EP on the same data",
    )


def _posterior(found: Found, there: list[str]) -> Claim:
    worst = [float(found.over(m, "KL, worst").max()) for m in there]
    others = [m for m in ("sampling", "forest", "learned") if found.has(m)]
    return Claim(
        1114,
        "Which suggests that the inference is as accurate as these alternatives.",
        "worst KL(exact EP || its) in nats: " + found.each([*there, *others], "KL, worst"),
        judged(max(worst) <= 0.1, min(found.middle(m, "KL, median") for m in there) <= 0.1),
        "errors on test rows do not show the difference; posteriors do",
    )


def _faster(result: Json, there: list[str]) -> Claim:
    # in units of exact EP just before in the same process: parts are run at different times, on a machine with other work
    spent = {m: np.divide(row["seconds"], row["seconds_exact"]) for m, row in result["methods"].items()}
    ratio = {m: float(spent["sampling"].mean() / spent[m][-1]) for m in there}
    particles = result["settings"].get("particles")
    return Claim(
        1117,
        f"KJIT is orders of magnitude faster than the importance sampler ({1260 / 30.9:.0f} times in the last problem).",
        "; ".join(f"{m} {number(r)} times" for m, r in ratio.items())
        + f" ({number(particles)} draws, {len(spent['sampling'])} problems of one seed)",
        judged(min(ratio.values()) >= 10, min(ratio.values()) > 1),
        "" if particles == 500_000 else "the ratio is nearly that of the draws: the paper has 500,000",
    )
