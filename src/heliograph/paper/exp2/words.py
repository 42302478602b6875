"""The text on experiment 2: its tables, its sentences, and the paper's claims."""

from __future__ import annotations

from functools import partial

import numpy as np

from heliograph.paper.columns import KJIT, PAPERS, paper_of
from heliograph.paper.exp2.parts import headlines
from heliograph.paper.report.claims import Claim, Found, found_in, judged
from heliograph.paper.report.style import label
from heliograph.paper.report.tables import Cell, Table, cell, range_of, spread_table
from heliograph.paper.running.parts import Json

__all__ = ["LEAD", "TITLE", "claims", "sentences", "tables"]

TITLE = "Uncertainty of kernels and forests"
LEAD = "How doubt behaves along two curves through the space of messages, and whether small doubt means small error."
_SETS = ("set 1", "set 2")
_FOREST = "eslami forest"
_paper = partial(paper_of, "exp2")


def tables(result: Json) -> list[Table]:
    """Smoothness, and how far certainty can be trusted."""
    rows = []
    for method, row in result["methods"].items():
        cells = [cell(row[key][k], _paper(method, key, at)) for key in ("total_variation", "biggest_jump")
                 for k, at in enumerate(_SETS)]  # fmt: skip
        cells += [cell(x) for x in row["mean_log_uncertainty"]]
        cells += [cell(row["rank_correlation"]), Cell(f"{row['certain_and_wrong']} of {row['n_certain']:,}")]
        cells += [
            cell(row.get("certain_above", {}).get("0.01")),
            cell(row["mean_log_kl"]),
            cell(row["train_mean_log_kl"]),
        ]
        rows.append((label(method), cells))
    head = ("method", "total variation, set 1", "set 2", "biggest jump, set 1", "set 2", "mean, set 1", "set 2",
            "rank correlation with error", "wrong among the certain", "above 0.01 nats", "mean log KL, test", "train")  # fmt: skip
    caption = "Log uncertainty along the curves, test messages on which a method is certain and wrong, and errors"
    return [Table(caption, head, rows), *spread_table(result)]


def sentences(result: Json) -> list[str]:
    """What agrees and what does not, from the numbers."""
    said = []
    methods = result["methods"]
    for method in PAPERS:
        if {method, _FOREST} <= set(methods):
            pairs = zip(methods[method]["total_variation"], methods[_FOREST]["total_variation"], strict=True)
            ratio = [f / max(k, 1e-12) for k, f in pairs]
            least = min(ratio)
            word = (
                "as the paper found"
                if least >= 3
                else "less clearly than in the paper"
                if least > 1
                else "unlike the paper"
            )
            said.append(
                f"Along the two curves the forest's log uncertainty varies {ratio[0]:.1f} and {ratio[1]:.1f} times as "
                f"much as that of {method}, {word} (4.4 and 12.4 times)."
            )
    for method in (*KJIT, "learned", _FOREST):
        if method in methods:
            row = methods[method]
            said.append(
                f"{label(method)} is certain about {row['n_certain']:,} of {row['n_test']:,} test messages and wrong (log KL above "
                f"{row['wrong_log_kl']:.1f}) about {row['certain_and_wrong'] or 'none'} of these."
            )
    return said


def claims(result: Json) -> list[Claim]:
    """The paper's claims on uncertainty."""
    found = found_in(result, headlines)
    there = [m for m in PAPERS if found.has(m)]
    made = [_higher(found, there), _certain(result, found, there)] if there else []
    if there and found.has(_FOREST):
        smooth = (
            _smooth(found, there, 1005, "total variation", "increases much more smoothly than that of the forests"),
            _smooth(found, there, 1011, "biggest jump", "of nearby points does not vary wildly as the forests' does"),
        )
        made = [*smooth, *made]
    if there:
        made += [_correlated(found, there), _train(found, there)]
    return made


def _ratios(found: Found, method: str, key: str) -> np.ndarray:
    return np.stack([np.divide(*found.pair((_FOREST, f"{key}, {s}"), (method, f"{key}, {s}"))) for s in _SETS])


def _smooth(found: Found, there: list[str], line: int, key: str, said: str) -> Claim:
    ratios = {m: _ratios(found, m, key) for m in there}
    named = key.replace(" ", "_")
    both = [(_paper(_FOREST, named, s) or 0.0) / (_paper("kjit", named, s) or 1.0) for s in _SETS]
    ours = "; ".join(f"{m} {range_of(r[0].tolist())} and {range_of(r[1].tolist())}" for m, r in ratios.items())
    medians = [np.median(r, axis=1).min() for r in ratios.values()]
    return Claim(
        line,
        f"The kernel's uncertainty {said} ({key} of the forest {both[0]:.1f} and {both[1]:.1f} times the kernel's).",
        f"times: {ours}",
        judged(all(m >= 3 for m in medians), any(m > 1 for m in medians)),
    )


def _gaps(found: Found, there: list[str], key: str, less: str) -> tuple[dict[str, np.ndarray], str]:
    """One number of every method less another, for every seed, and their ranges in words."""
    gaps = {m: found.over(m, key) - found.over(m, less) for m in there}
    return gaps, "; ".join(f"{m} {range_of(g.tolist())}" for m, g in gaps.items())


def _higher(found: Found, there: list[str]) -> Claim:
    gaps, ours = _gaps(found, there, "mean, set 1", "mean, set 2")
    return Claim(
        1006,
        "Uncertainty is clearly higher on test set 1 than on test set 2.",
        f"mean log uncertainty, set 1 minus set 2: {ours}",
        judged(all((g > 0.5).all() for g in gaps.values()), any((g > 0).all() for g in gaps.values())),
    )


def _certain(result: Json, found: Found, there: list[str]) -> Claim:
    wrong = {m: found.over(m, "certain and wrong") for m in there}
    worst = [result["methods"][m]["certain_worst_log_kl"] for m in there if m in result["methods"]]
    known = [w for w in worst if w is not None]
    more = f"; worst log KL of a certain message at the first seed {max(known):.1f}" if known else ""
    return Claim(
        1776,
        "No point is confident and makes a large error.",
        "above 0.1 nats: "
        + "; ".join(f"{m} {range_of(w.tolist())} of {_sure(found, m)}" for m, w in wrong.items())
        + more,
        judged(all((w == 0).all() for w in wrong.values()), all(np.median(w) == 0 for w in wrong.values())),
        "0.1 nats was chosen after seeing results; the table counts other levels too",
    )


def _sure(found: Found, method: str) -> str:
    """The number of test messages that a method is certain about; older results lack it."""
    return f"{found.shown(method, 'certain')} certain" if "certain" in found.methods[method] else "those certain"


def _correlated(found: Found, there: list[str]) -> Claim:
    each = [found.over(m, "rank correlation") for m in there]
    ours = f"rank correlation: {found.each(there, 'rank correlation')}"
    said = "Uncertainty estimates are positively correlated with the KL errors."
    return Claim(1775, said, ours, judged(all((c > 0.2).all() for c in each), all(np.median(c) > 0 for c in each)))


def _train(found: Found, there: list[str]) -> Claim:
    gaps, ours = _gaps(found, there, "mean log KL, test", "train")
    near = judged(
        all((np.abs(g) <= 0.5).all() for g in gaps.values()), all(abs(np.median(g)) <= 1 for g in gaps.values())
    )
    said = "Errors on the training set are roughly the same as on the test set."
    return Claim(1778, said, f"mean log KL, test minus train: {ours}", near)
