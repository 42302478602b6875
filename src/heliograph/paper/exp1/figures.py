"""Figures of experiment 1."""

from __future__ import annotations

from typing import Any

import numpy as np

from heliograph.paper.columns import paper_of
from heliograph.paper.report.style import Picture, colour, label, new_figure

__all__ = ["draw"]


def draw(result: dict[str, Any], series: dict[str, Any]) -> list[Picture]:
    """Histogram of log KL, example messages, and all methods beside the paper's."""
    pictures = []
    for against in ("sampled", "exact"):
        there = series.get(against, {})
        ours = "kjit (program)" if against == "sampled" else "kjit (house)"
        shown = [m for m in (ours, "kjit (text)", "eslami forest", "learned") if m in there] or list(there)[:3]
        if shown:
            pictures.append(_histogram(there, shown, against))
    there = series.get("sampled", {})
    method = "kjit (program)" if "kjit (program)" in there else next(iter(there), None)
    if method is not None:
        pictures.append(_examples(series["sampled"][method], method))
    if result.get("methods"):
        pictures.append(_all_methods(result))
    return pictures


def _histogram(there: dict[str, Any], shown: list[str], against: str) -> Picture:
    figure, axis = new_figure()
    values = np.concatenate([there[m]["log_kl"] for m in shown])
    bins = np.linspace(values.min(), values.max(), 61)
    for method in shown:
        log_kl = there[method]["log_kl"]
        text = f"{label(method)}: {log_kl.mean():.2f}"
        axis.hist(log_kl, bins=list(bins), histtype="stepfilled", alpha=0.25, color=colour(method))
        axis.hist(log_kl, bins=list(bins), histtype="step", color=colour(method), lw=1.5, label=text)
    paper = paper_of("exp1", "kjit", "mean_log_kl")
    if against == "sampled" and paper is not None:
        axis.axvline(paper, color="black", ls="--", lw=1, label=f"the paper's mean: {paper:.2f}")
    axis.set(xlabel="log KL(label || prediction)", ylabel="test messages", title=f"Errors against {against} labels")
    axis.legend(title="mean", title_fontsize=8.5)
    means = ", ".join(f"{label(m)} {there[m]['log_kl'].mean():.2f}" for m in shown)
    return Picture(
        f"exp1_log_kl_{against}",
        f"Histograms of log KL against {against} labels. Means: {means}.",
        f"Log KL of predicted beliefs to z against {against} labels"
        + (", the paper's figure 3a." if against == "sampled" else ": what is left when the labels carry no noise."),
        figure,
    )


def _examples(kept: dict[str, np.ndarray], method: str) -> Picture:
    figure, axes = new_figure(nrows=2, ncols=2)
    for k, axis in enumerate(np.ravel(axes)[: len(kept["percentile"])]):
        pairs = [(kept[f"{w}_mean"][k], kept[f"{w}_variance"][k]) for w in ("true", "predicted")]
        sd = np.sqrt(max(v for _, v in pairs))
        x = np.linspace(min(m for m, _ in pairs) - 3.5 * sd, max(m for m, _ in pairs) + 3.5 * sd, 200)
        for (m, v), c, ls, text in zip(
            pairs, ("black", colour(method)), ("-", "--"), ("label", "predicted"), strict=True
        ):
            axis.plot(x, np.exp(-0.5 * (x - m) ** 2 / v) / np.sqrt(2 * np.pi * v), color=c, ls=ls, label=text, lw=2)
        axis.set_title(f"{kept['percentile'][k]:.0f}th percentile: {kept['example_log_kl'][k]:.1f}")
        axis.set_yticks([])
    np.ravel(axes)[0].legend(handlelength=1.5)
    return Picture(
        "exp1_examples",
        f"Densities of label and prediction by {label(method)} at four percentiles of the error; they hardly differ.",
        f"Beliefs predicted by {label(method)} at percentiles of log KL, the paper's figure 3b.",
        figure,
    )


def _all_methods(result: dict[str, Any]) -> Picture:
    sampled = result.get("against_sampled", {}).get("methods", {})
    names = sorted(result["methods"], key=lambda m: result["methods"][m]["mean_log_kl"], reverse=True)
    figure, axis = new_figure(5.6, 1.2 + 0.3 * len(names))
    for k, method in enumerate(names):
        axis.plot(
            result["methods"][method]["mean_log_kl"], k, "o", color="#0072B2", label="exact labels" if not k else None
        )
        if method in sampled:
            axis.plot(
                sampled[method]["mean_log_kl"], k, "s", color="#E69F00", label="sampled labels" if not k else None
            )
    there = [(k, paper_of("exp1", m, "mean_log_kl")) for k, m in enumerate(names)]
    there = [(k, p) for k, p in there if p is not None]
    if there:
        axis.plot([p for _, p in there], [k for k, _ in there], "kx", ms=7, label="the paper")
    axis.set_yticks(range(len(names)), [label(m) for m in names])
    axis.set(xlabel="mean log KL")
    figure.legend(loc="outside upper right", ncols=3)
    return Picture(
        "exp1_methods",
        "Mean log KL of every method against exact and sampled labels, with the paper's number; the table has the digits.",
        "Every method against both kinds of labels, and the paper's table.",
        figure,
    )
