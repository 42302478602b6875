"""The text on the appendix on features: its tables, its sentences, and the paper's claims."""

from __future__ import annotations

import numpy as np

from heliograph.paper.features.parts import effects, headlines
from heliograph.paper.report.claims import Claim, found_in, judged
from heliograph.paper.report.style import label
from heliograph.paper.report.tables import Table, cell, range_of, spread_table
from heliograph.paper.running.parts import Json

__all__ = ["LEAD", "TITLE", "claims", "sentences", "tables"]

TITLE = "Random features against kernels"
LEAD = "How many random features the kernel on messages needs."
_GAIN = 0.25  # of log KL, above which more features count as a significant improvement


def tables(result: Json) -> list[Table]:
    """Mean and largest errors of each kernel, the grid in both measures, and more than 1,000 features."""
    wanted = list(dict.fromkeys(d for row in result["methods"].values() for d in row["D"]))
    made = []
    for key, what in (("mean_abs_error", "Mean"), ("max_abs_error", "Largest")):
        rows = []
        for method, row in result["methods"].items():
            at = dict(zip(row["D"], row[key], strict=True))
            rows.append((label(method), [cell(at.get(d)) for d in wanted]))
        made.append(
            Table(
                f"{what} absolute error of the approximated kernel", ("kernel", *(f"D = {d:,}" for d in wanted)), rows
            )
        )
    grid = result.get("grid")
    for key, what in (
        ("frobenius", "Frobenius error of the kernel matrix"),
        ("mean_log_kl", "Mean log KL of predictions"),
    ):
        if grid and grid.get(key):
            lines = [
                (f"D_in = {d:,}", [cell(x) for x in line]) for d, line in zip(grid["D_in"], grid[key], strict=True)
            ]
            made.append(Table(what, ("", *(f"D_out = {d:,}" for d in grid["D_out"])), lines))
    wider = result.get("beyond") or {}
    if wider:
        D = next(iter(wider.values()))["D_out"]
        rows = [(f"{a} labels", [cell(float(np.mean(x))) for x in row["mean_log_kl"]]) for a, row in wider.items()]
        made.append(
            Table("Mean log KL of batch learning with more features", ("", *(f"D_out = {d:,}" for d in D)), rows)
        )
    return [*made, *spread_table(result)]


def sentences(result: Json) -> list[str]:
    """What agrees and what does not, from the numbers."""
    said = []
    for method in ("joint gaussian", *result["methods"]):
        row = result["methods"].get(method)
        if row and len(row["D"]) > 1:
            slope = np.polyfit(np.log(row["D"]), np.log(row["mean_abs_error"]), 1)[0]
            word = "as" if abs(slope + 0.5) < 0.15 else "not as"
            said.append(
                f"The error of the {method} kernel's features falls with D to the power {slope:.2f}, {word} Monte Carlo's -0.5."
            )
            break
    grid = result.get("grid")
    both = effects(grid, "frobenius") if grid and grid.get("frobenius") else None
    if both is not None:
        by_in, by_out = both
        word = "as the paper says" if by_out > by_in else "unlike the paper"
        said.append(
            f"From the smallest to the largest D_out the Frobenius error falls {by_out:.2f} times, over D_in {by_in:.2f} times: "
            f"{'D_out' if by_out > by_in else 'D_in'} has more effect, {word}."
        )
    for against, row in (result.get("beyond") or {}).items():
        gain = _gain(row)
        if gain is not None:
            word = "no significant gain, as the paper says" if gain < _GAIN else "a gain that the paper did not see"
            said.append(f"Beyond 1,000 features the mean log KL against {against} labels falls by {gain:.2f}: {word}.")
    return said


def _gain(row: Json) -> float | None:
    """What the most features gain over 1,000."""
    mean = dict(zip(row["D_out"], np.mean(row["mean_log_kl"], axis=1), strict=True))
    return float(mean[1000] - mean[max(mean)]) if 1000 in mean and max(mean) > 1000 else None


def claims(result: Json) -> list[Claim]:
    """The paper's claims on the number of features."""
    found = found_in(result, headlines)
    made = []
    if found.has("beyond 1,000"):
        keys = found.methods["beyond 1,000"]
        gains = {}
        for against in ("sampled", "exact"):
            D = sorted(int(k.split(" = ")[1]) for k in keys if k.startswith(against))
            if 1000 in D and D[-1] > 1000:
                at = [found.over("beyond 1,000", f"{against}: D_out = {n}") for n in (1000, D[-1])]
                gains[against] = at[0] - at[1]
        if gains:
            ours = "; ".join(f"{a} labels {range_of(g.tolist())}" for a, g in gains.items())
            small = {a: bool(np.median(g) < _GAIN) for a, g in gains.items()}
            made.append(
                Claim(881, "No significant improvement beyond 1,000 random features.", f"gain in mean log KL: {ours}",
                      judged(all(small.values()), any(small.values())),
                      "" if all(small.values()) else "sampled labels hide what more features gain")
            )  # fmt: skip
    if found.has("grid"):
        by_in, by_out = (found.over("grid", k) for k in ("Frobenius falls by D_in, times", "by D_out, times"))
        made.append(
            Claim(1655, "D_out has more effect on the Frobenius error than D_in.",
                  f"falls {range_of(by_out.tolist())} times over D_out, {range_of(by_in.tolist())} times over D_in",
                  judged(bool((by_out > by_in).all())))
        )  # fmt: skip
    if found.has("expected product"):
        first, last = (found.over("expected product", k) for k in ("largest error, fewest features", "most features"))
        made.append(
            Claim(1594, "The largest entry difference falls as features are added (a figure).",
                  f"from {range_of(first.tolist())} to {range_of(last.tolist())}",
                  judged(bool((last < first / 2).all()), bool((last < first).all())))
        )  # fmt: skip
    return made
