"""What agrees with the paper and what does not, said in sentences that are computed from the numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from heliograph.paper.report.published import EXP3, EXP5, paper_of
from heliograph.paper.report.style import label, number

__all__ = ["sentences_of"]


def _kl(values: list[Any]) -> np.ndarray:
    """KLs as numbers: JSON's null stands for one beyond all numbers."""
    return np.array([np.inf if v is None else v for v in values], dtype=float)


def _exp1(result: dict[str, Any]) -> list[str]:
    said = []
    drawn = result.get("against_sampled", {})
    sampled, exact = drawn.get("methods", {}), result["methods"]
    if "kjit" in sampled:
        ours, paper = sampled["kjit"]["mean_log_kl"], paper_of(result, "kjit", "mean_log_kl")
        if paper is not None:
            word = "agrees with" if abs(ours - paper) <= 0.5 else "differs from"
            said.append(
                f"Against sampled labels KJIT's mean log KL of {ours:.2f} {word} the paper's {paper:.2f} "
                f"(difference {abs(ours - paper):.2f}; .5 or less counts as agreement)."
            )
    if "kjit" in exact and "label_noise" in drawn:
        floor = drawn["label_noise"]["mean_log_kl"]
        said.append(
            f"The sampled labels are themselves at {floor:.2f} from the exact beliefs, so no method can be seen to do much better "
            f"there; against exact labels KJIT reaches {exact['kjit']['mean_log_kl']:.2f}."
        )
    kernels = [m for m in exact if m in ("kjit", "mean variance", "expected product", "sum of expected products",
                                         "product of expected products")]  # fmt: skip
    if len(kernels) > 2:
        order = sorted(kernels, key=lambda m: exact[m]["mean_log_kl"])
        same = order[0] == "kjit" and order[-1] == "sum of expected products"
        said.append(
            f"Among kernels with random features {label(order[0])} is best and {label(order[-1])} worst, "
            + (
                "as in the paper's table."
                if same
                else "which is not the paper's order (joint Gaussian best, sum worst)."
            )
        )
    elif len(exact) > 1:
        best = min(exact, key=lambda m: exact[m]["mean_log_kl"])
        said.append(
            f"The smallest mean log KL against exact labels is {label(best)}'s, {exact[best]['mean_log_kl']:.2f}."
        )
    return said


def _exp2(result: dict[str, Any]) -> list[str]:
    said = []
    methods = result["methods"]
    if {"kjit", "eslami forest"} <= set(methods):
        ratio = [
            f / max(k, 1e-12)
            for k, f in zip(
                methods["kjit"]["total_variation"], methods["eslami forest"]["total_variation"], strict=True
            )
        ]
        word = (
            "as the paper found"
            if min(ratio) >= 3
            else "less clearly than in the paper"
            if min(ratio) > 1
            else "unlike the paper"
        )
        said.append(
            f"Along the two curves the forest's log uncertainty varies {ratio[0]:.1f} and {ratio[1]:.1f} times as much as KJIT's, "
            f"{word} (4.4 and 12.4 times)."
        )
    for method in ("kjit", "learned", "eslami forest"):
        if method in methods:
            row = methods[method]
            wrong = row["certain_and_wrong"]
            said.append(
                f"{label(method)} is certain about {row['n_certain']:,} of {row['n_test']:,} test messages and wrong (log KL above "
                f"{row['wrong_log_kl']:.1f}) about {wrong or 'none'} of these."
            )
    return said


def _exp3(result: dict[str, Any]) -> list[str]:
    said = []
    methods = result["methods"]
    if {"kjit", "exact"} <= set(methods):
        ours, exact = (float(np.mean(methods[m]["disagreement"])) for m in ("kjit", "exact"))
        word = "within" if abs(ours - exact) <= 0.002 else "not within"
        said.append(
            f"KJIT disagrees with the Bayes label on {ours:.4f} of the test rows and exact EP on {exact:.4f}: {word} .002 of each "
            f"other (in the paper {EXP3['kjit']['disagreement']:.4f} and {EXP3['exact']['disagreement']:.4f})."
        )
        kl = _kl(methods["kjit"]["posterior_kl"])
        said.append(
            f"The error hides how far its posterior is from exact EP's: {number(float(np.median(kl)))} nats in the median and "
            f"{number(float(kl.max()))} at worst" + _beside(methods, ("learned", "sampling")) + "."
        )
    if "kjit" in methods and len(methods["kjit"]["oracle_calls"]) > 1:
        calls = methods["kjit"]["oracle_calls"]
        falls = calls[-1] < calls[0]
        said.append(
            f"KJIT asks {calls[0]:,} times in the first problem and {number(float(np.mean(calls[1:])))} times in a later one: "
            "its asks " + ("fall, as they should." if falls else "do not fall.")
        )
    if {"kjit", "sampling"} <= set(methods):
        ratio = np.mean(methods["sampling"]["seconds"]) / methods["kjit"]["seconds"][-1]
        paper = EXP3["sampling"]["seconds"] / EXP3["kjit"]["seconds_last"]
        particles = result["settings"].get("particles")
        said.append(
            f"Sampling with {number(particles)} particles takes {number(float(ratio))} times as long a problem as KJIT in its last "
            f"one; in the paper, with 500,000, {paper:.0f} times."
        )
    return said


def _beside(methods: dict[str, Any], others: tuple[str, ...]) -> str:
    there = [f"{label(m)} {number(float(_kl(methods[m]['posterior_kl']).max()))}" for m in others if m in methods]
    return f" (worst of {' and '.join(there)})" if there else ""


def _exp5(result: dict[str, Any]) -> list[str]:
    said = []
    methods, names = result["methods"], result["datasets"]
    if "exact" in methods:
        gaps = [
            abs(x - EXP5["exact"]["disagreement"].get(n, np.nan))
            for n, x in zip(names, methods["exact"]["disagreement"], strict=False)
        ]
        if result["settings"].get("splits"):
            word = "are" if max(gaps) <= 0.001 else "are not"
            said.append(
                f"On the given splits exact EP's errors {word} the paper's (largest difference {max(gaps):.4f})."
            )
        else:
            said.append(
                "The splits are drawn by our seed, so errors differ from the paper's by the luck of the split; give the authors' "
                "own with --splits to compare digits."
            )
    for method in ("kjit", "kjit program"):
        if method in methods and "exact" in methods:
            said += _departures(method, names, methods)
    if {"blood_transfusion"} <= set(names) and "kjit" in methods:
        paper = EXP5["kjit"]["disagreement"]["blood_transfusion"]
        said.append(
            f"The paper's KJIT erred on {paper:.4f} of blood's rows where exact EP errs on "
            f"{EXP5['exact']['disagreement']['blood_transfusion']:.4f}: a departure from the EP it imitates, not a gain."
        )
    for method in ("kjit", "learned"):
        if method in methods and len(methods[method]["oracle_calls"]) > 1:
            row = methods[method]
            falls = [s[0] >= s[-1] for s in row["asked_per_sweep"] if len(s) > 1]
            calls = ", ".join(f"{c:,}" for c in row["oracle_calls"])
            said.append(
                f"{label(method)} asks {calls} times on the data sets in order; the last sweep asks no more "
                f"often than the first on {sum(falls)} of {len(falls)}."
            )
    return said


def _departures(method: str, names: list[str], methods: dict[str, Any]) -> list[str]:
    far = {
        n: (x, e, k)
        for n, x, e, k in zip(names, methods[method]["disagreement"], methods["exact"]["disagreement"],
                              _kl(methods[method]["posterior_kl"]), strict=False)
    }  # fmt: skip
    worst = max(far, key=lambda n: far[n][2])
    said = [_departure(label(method), worst, *far[worst])]
    if method == "kjit" and "blood_transfusion" in far and worst != "blood_transfusion":
        said.append(_departure(label(method), "blood_transfusion", *far["blood_transfusion"]))
    return said


def _departure(who: str, name: str, error: float, exact: float, kl: float) -> str:
    shown = name.replace("_", " ")
    if kl < 0.01:
        return f"{who} stays with exact EP on {shown}: {number(kl)} nats away, error {error:.4f} against {exact:.4f}."
    return f"{who} departs from exact EP on {shown}: {number(kl)} nats away, error {error:.4f} against {exact:.4f}."


def _exp4(result: dict[str, Any]) -> list[str]:
    said = []
    methods = result["methods"]
    n = result["settings"].get("n_problems")
    for method in ("kjit program", "kjit", "learned"):
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
    said.append("The paper's program asked 69 times in 1,500 problems, 28 of them in the first 50.")
    return said


def _features(result: dict[str, Any]) -> list[str]:
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
    if grid and grid.get("mean_log_kl"):
        table = np.array(grid["mean_log_kl"], dtype=float)
        by_in, by_out = float(np.mean(table[0] - table[-1])), float(np.mean(table[:, 0] - table[:, -1]))
        word = "as the paper says" if by_out > by_in else "unlike the paper"
        said.append(
            f"From the smallest to the largest D_out the mean log KL falls by {by_out:.2f}, over D_in by {by_in:.2f}: "
            f"{'D_out' if by_out > by_in else 'D_in'} has more effect, {word}."
        )
    return said


_SENTENCES = {"exp1": _exp1, "exp2": _exp2, "exp3": _exp3, "exp4": _exp4, "exp5": _exp5, "features": _features}


def sentences_of(result: dict[str, Any]) -> list[str]:
    """Two or more sentences on an experiment's JSON; one that says so if nothing of it has finished."""
    if not result.get("methods"):
        return ["No method has finished yet."]
    return _SENTENCES[result["experiment"]](result)
