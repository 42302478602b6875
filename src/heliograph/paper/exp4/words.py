"""The text on experiment 4: its tables, its sentences, and the paper's claims."""

from __future__ import annotations

import numpy as np

from heliograph.paper.columns import KJIT, PAPERS, paper_of
from heliograph.paper.exp4.parts import headlines
from heliograph.paper.report.claims import Claim, Found, found_in, judged
from heliograph.paper.report.style import label, number
from heliograph.paper.report.tables import SPLIT, Table, cell, range_of, spread_table, time_split
from heliograph.paper.running.parts import Json

__all__ = ["LEAD", "TITLE", "claims", "sentences", "tables"]

TITLE = "The compound gamma, problem after problem"
LEAD = "The precision of a Gaussian under a compound gamma prior: one message a problem, over many problems."
_KEYS = ("correlation_log_shape", "correlation_log_rate", "mean_posterior_kl", "worst_posterior_kl", "oracle_calls",
         "evaluations", "improper", "seconds", "seconds_when_asked", "seconds_when_certain")  # fmt: skip
_ALL = 1500  # problems of the paper; a number of theirs is not compared with one of fewer


def tables(result: Json) -> list[Table]:
    """Posteriors and questions; the paper's number of all questions only beside as many problems."""
    rows, asked = [], []
    whole = result["settings"].get("n_problems") == _ALL
    steps = list(dict.fromkeys(k for row in result["methods"].values() for k in row.get("oracle_calls_after", {})))
    for method, row in result["methods"].items():
        papers = {key: paper_of("exp4", method, key) if whole or key != "oracle_calls" else None for key in _KEYS}
        cells = [cell(row.get(key), papers[key], 6 if key.startswith("correlation") else 3) for key in _KEYS]
        rows.append((label(method), [*cells, *time_split(row, lambda value: value)]))
        after = row.get("oracle_calls_after", {})
        asked.append(
            (label(method), [cell(after.get(k), paper_of("exp4", method, "oracle_calls_after", k)) for k in steps])
        )
    head = ("method", "correlation, log shape", "log rate", "KL, mean", "KL, worst", "oracle calls", "evaluations", "improper",
            "seconds in all", "seconds per problem if asked", "if certain", *SPLIT)  # fmt: skip
    caption = "Posteriors of all problems against the exact ones; KL(exact || its) in nats"
    made = [Table(caption, head, rows), Table("Oracle calls after so many problems", ("method", *steps), asked)]
    return [*made, *spread_table(result)]


def sentences(result: Json) -> list[str]:
    """What agrees and what does not, from the numbers."""
    said = []
    methods = result["methods"]
    n = result["settings"].get("n_problems")
    for method in (*KJIT, "learned"):
        if method in methods:
            row = methods[method]
            least = min(
                x if x is not None else 0.0 for x in (row["correlation_log_shape"], row["correlation_log_rate"])
            )
            word = "at least" if least >= 0.999 else "below"
            said.append(
                f"{label(method)} asks {row['oracle_calls']:,} times in {n:,} problems; its correlations with the exact "
                f"posteriors are {word} .999 (smallest {least:.6f}), its worst posterior is "
                f"{number(row['worst_posterior_kl'])} nats away."
            )
    said.append(
        "The paper's program asked 69 times in 1,500 problems, 28 of them in the first 50; this run has "
        + f"{n:,} problems."
    )
    return said


def claims(result: Json) -> list[Claim]:
    """The paper's claims on the compound gamma."""
    found = found_in(result, headlines)
    there = [m for m in PAPERS if found.has(m)]
    if not there:
        return []
    marks = list(next(iter(result["methods"].values()))["oracle_calls_after"])
    made = [_agreement(found, there), _cheaper(found, there)]
    made += [_fewer(found, there, marks)] if len(marks) > 1 else []
    return made + (_calls(found, there, marks) if marks else [])


def _agreement(found: Found, there: list[str]) -> Claim:
    least = min(float(found.over(m, key).min()) for m in there for key in ("correlation, log rate", "log shape"))
    return Claim(
        1212,
        "Posteriors are in good agreement with Infer.NET's (correlation of log rates .999895, of log shapes 1).",
        f"log rates: {found.each(there, 'correlation, log rate', 6)}; worst KL in nats: {found.each(there, 'KL, worst')}",
        judged(least >= 0.999, least >= 0.99),
        "the program's shapes agree by construction: it forces the message's shape to 1",
    )


def _cheaper(found: Found, there: list[str]) -> Claim:
    ratio = {m: found.over(m, "asked over certain, seconds") for m in there}
    middle = [float(np.median(r)) for r in ratio.values()]
    return Claim(
        1212,
        "At a much lower cost (8 ms against 265 ms, 33 times).",
        "a problem that asks over one that does not: "
        + "; ".join(f"{m} {range_of(r.tolist())} times" for m, r in ratio.items()),
        judged(min(middle) >= 10, min(middle) > 1),
        "Infer.NET spends a million nodes on an integral that 200 give to 14 digits (test `nodes`): a fair oracle saves little",
    )


def _fewer(found: Found, there: list[str], marks: list[str]) -> Claim:
    first, last = marks[0], marks[-1]
    early = {m: found.over(m, f"after {first}") for m in there}
    rest = {m: found.over(m, f"after {last}") - early[m] for m in there}
    rate = {
        m: (rest[m] / (int(last) - int(first))) / (early[m] / int(first)) for m in there
    }  # the minibatch is in `early`
    return Claim(
        1214,
        "KJIT requires fewer consultations as more problems are seen.",
        f"share of problems that ask after the first {first}, over that in these: "
        + "; ".join(f"{m} {range_of(r.tolist())}" for m, r in rate.items()),
        judged(all((r < 0.5).all() for r in rate.values()), all(np.median(r) < 1 for r in rate.values())),
    )


def _calls(found: Found, there: list[str], marks: list[str]) -> list[Claim]:
    last = marks[-1]
    paper = paper_of("exp4", "kjit", "oracle_calls_after", last)
    if paper is None:
        return []
    inside = [m for m in there if found.over(m, f"after {last}").min() <= paper <= found.over(m, f"after {last}").max()]
    near = [m for m in there if abs(found.middle(m, f"after {last}") / paper - 1) <= 0.25]
    return [
        Claim(
            1171,
            f"{paper:.0f} oracle calls in the first {int(last):,} problems.",
            found.each(there, f"after {last}"),
            judged(bool(near) and bool(inside), bool(near or inside)),
            "the first 20 messages fix the widths for good, so the number is luck (test `calls`), the paper's as well as ours",
        )
    ]
