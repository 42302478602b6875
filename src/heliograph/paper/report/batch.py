"""Figures of learning in batch: experiments 1 and 2, and the approximation of the kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from heliograph.paper.report.published import paper_of
from heliograph.paper.report.style import Picture, colour, label, marker, new_figure

__all__ = ["draw_exp1", "draw_exp2", "draw_features"]


# ---- experiment 1 ----------------------------------------------------------------------------------------------------
def draw_exp1(result: dict[str, Any], series: dict[str, Any]) -> list[Picture]:
    """Histogram of log KL, example messages, and all methods beside the paper's."""
    pictures = []
    for against in ("sampled", "exact"):
        there = series.get(against, {})
        shown = [m for m in ("kjit", "eslami forest", "learned") if m in there] or list(there)[:3]
        if shown:
            pictures.append(_histogram(result, there, shown, against))
    method = "kjit" if "kjit" in series.get("sampled", {}) else next(iter(series.get("sampled", {})), None)
    if method is not None:
        pictures.append(_examples(series["sampled"][method], method))
    if result.get("methods"):
        pictures.append(_all_methods(result))
    return pictures


def _histogram(result: dict[str, Any], there: dict[str, Any], shown: list[str], against: str) -> Picture:
    figure, axis = new_figure()
    values = np.concatenate([there[m]["log_kl"] for m in shown])
    bins = np.linspace(values.min(), values.max(), 61)
    for method in shown:
        log_kl = there[method]["log_kl"]
        text = f"{label(method)}: {log_kl.mean():.2f}"
        axis.hist(log_kl, bins=list(bins), histtype="stepfilled", alpha=0.25, color=colour(method))
        axis.hist(log_kl, bins=list(bins), histtype="step", color=colour(method), lw=1.5, label=text)
    paper = paper_of(result, "kjit", "mean_log_kl")
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
    there = [(k, paper_of(result, m, "mean_log_kl")) for k, m in enumerate(names)]
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


# ---- experiment 2 ----------------------------------------------------------------------------------------------------
def draw_exp2(result: dict[str, Any], series: dict[str, Any]) -> list[Picture]:
    """Training messages with the two curves, log uncertainty along them, and uncertainty against error."""
    if "curves" not in series:
        return []
    methods = series.get("methods", {})
    pictures = [_training_messages(series)] if "training" in series else []
    if methods:
        pictures.append(_along_curves(series["curves"]["mean"], methods))
    shown = [m for m in ("kjit", "learned", "eslami forest") if m in methods]
    return pictures + [_error(method, result["methods"][method], methods[method]) for method in shown]


def _training_messages(series: dict[str, Any]) -> Picture:
    mean, log_precision = series["curves"]["mean"], series["curves"]["log_precision"]
    figure, axis = new_figure()
    axis.plot(
        series["training"]["mean"],
        series["training"]["log_precision"],
        ".",
        ms=2,
        color="#999999",
        label="training",
    )
    for k, c in enumerate(("#0072B2", "#CC79A7")):
        axis.plot(mean, log_precision[k], color=c, lw=2, label=f"set {k + 1}")
    axis.set(xlabel="mean of the message from z", ylabel="log precision")
    axis.legend()
    return Picture(
        "exp2_messages",
        "Training messages by mean and log precision, with a line and a parabola through them.",
        "Messages from z in the training set and the two test curves, the paper's figure 4a.",
        figure,
    )


def _along_curves(mean: np.ndarray, methods: dict[str, Any]) -> Picture:
    figure, axes = new_figure(5.6, 5.4, nrows=2, sharex=True)
    for k in (0, 1):
        for method, kept in methods.items():
            axes[k].plot(mean, kept["log_uncertainty"][k], color=colour(method), lw=1.2, label=label(method))
        axes[k].set(ylabel="log uncertainty", title=f"set {k + 1}")
    axes[1].set_xlabel("mean of the message from z")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return Picture(
        "exp2_curves",
        "Log uncertainty of every method along both curves: kernels smooth, forests ragged.",
        "Log uncertainty along the curves, each method in its own unit, the paper's figure 4b.",
        figure,
    )


def _error(method: str, row: dict[str, Any], kept: dict[str, Any]) -> Picture:
    figure, axis = new_figure()
    axis.plot(kept["test_log_kl"], kept["test_log_uncertainty"], ".", ms=3, color=colour(method), alpha=0.6)
    axis.axhline(row["threshold"], color="black", ls="--", lw=1, label="certain below")
    axis.axvline(row["wrong_log_kl"], color="black", ls=":", lw=1, label="wrong to the right")
    axis.set(
        xlabel="log KL of the prediction",
        ylabel=row["uncertainty"].replace(" from ", "\nfrom "),
        title=label(method),
    )
    axis.legend()
    name = f"exp2_error_{method.replace(' ', '_')}"
    return Picture(
        name,
        f"Uncertainty of {label(method)} against the error of test messages; {row['certain_and_wrong']} "
        "points lie in the corner of certain and wrong.",
        f"{label(method)}: uncertainty against error. The bottom right corner, certain and wrong, should be empty: "
        f"it holds {row['certain_and_wrong']} of {row['n_test']:,}.",
        figure,
    )


# ---- features --------------------------------------------------------------------------------------------------------
def draw_features(result: dict[str, Any], series: dict[str, Any]) -> list[Picture]:
    """The kernel's error against D, and maps over D_in and D_out."""
    pictures = []
    if result.get("methods"):
        figure, axis = new_figure()
        for name, row in result["methods"].items():
            axis.loglog(row["D"], row["mean_abs_error"], marker=marker(name), color=colour(name), label=name, ms=4)
        first = next(iter(result["methods"].values()))
        D = np.array(first["D"], dtype=float)
        axis.loglog(D, first["mean_abs_error"][0] * np.sqrt(D[0] / D), "k:", lw=1, label="one over root D")
        axis.set(xlabel="number of features D", ylabel="mean |approximation - kernel|")
        axis.legend()
        pictures.append(
            Picture("features_error", "Mean absolute error of random features against D on two log axes: straight falling lines.",
                    "How well random features approximate each kernel.", figure)
        )  # fmt: skip
    grid = result.get("grid")
    if grid:
        for key, title in (
            ("frobenius", "Frobenius error of the kernel matrix"),
            ("mean_log_kl", "mean log KL of predictions"),
        ):
            if grid.get(key):
                pictures.append(_map(grid, key, title))
    return pictures


def _map(grid: dict[str, Any], key: str, title: str) -> Picture:
    values = np.array(grid[key], dtype=float)
    figure, axis = new_figure()
    image = axis.imshow(values, cmap="viridis", aspect="auto", origin="lower")
    middle = 0.5 * (np.nanmin(values) + np.nanmax(values))
    for (i, j), x in np.ndenumerate(values):
        axis.text(j, i, f"{x:.3g}", ha="center", va="center", fontsize=8, color="white" if x < middle else "black")
    axis.grid(False)
    axis.set_xticks(range(len(grid["D_out"])), [f"{d:,}" for d in grid["D_out"]])
    axis.set_yticks(range(len(grid["D_in"])), [f"{d:,}" for d in grid["D_in"]])
    axis.set(xlabel="D_out", ylabel="D_in", title=title)
    figure.colorbar(image, ax=axis)
    return Picture(
        f"features_{key}",
        f"Map of the {title} over D_in and D_out, from {np.nanmin(values):.3g} to {np.nanmax(values):.3g}.",
        f"{title[0].upper()}{title[1:]} over the sizes of the two stages.",
        figure,
    )
