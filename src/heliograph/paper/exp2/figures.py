"""Figures of experiment 2."""

from __future__ import annotations

from typing import Any

import numpy as np

from heliograph.paper.columns import KJIT
from heliograph.paper.report.style import Picture, colour, file_name, label, new_figure

__all__ = ["draw"]


def draw(result: dict[str, Any], series: dict[str, Any]) -> list[Picture]:
    """Training messages with the two curves, log uncertainty along them, and uncertainty against error."""
    if "curves" not in series:
        return []
    methods = series.get("methods", {})
    pictures = [_training_messages(series)] if "training" in series else []
    if methods:
        pictures.append(_along_curves(series["curves"]["mean"], methods))
    shown = [m for m in (*KJIT, "learned", "eslami forest") if m in methods]
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
    train = kept["train_log_kl"], kept["train_log_uncertainty"]
    axis.plot(*train, ".", ms=2, color="#999999", alpha=0.5, label="training messages", rasterized=True)
    axis.plot(kept["test_log_kl"], kept["test_log_uncertainty"], ".", ms=3, color=colour(method), alpha=0.6, label="test messages",
              rasterized=True)  # fmt: skip
    axis.axhline(row["threshold"], color="black", ls="--", lw=1, label="certain below")
    axis.axvline(row["wrong_log_kl"], color="black", ls=":", lw=1, label="wrong to the right")
    axis.set(
        xlabel="log KL of the prediction",
        ylabel=row["uncertainty"].replace(" from ", "\nfrom "),
        title=label(method),
    )
    axis.legend()
    name = f"exp2_error_{file_name(method)}"
    return Picture(
        name,
        f"Uncertainty of {label(method)} against the error of test messages; {row['certain_and_wrong']} "
        "points lie in the corner of certain and wrong.",
        f"{label(method)}: uncertainty against error on test and training messages, the appendix's figure. "
        "The bottom right corner, certain and wrong, should be empty: "
        f"it holds {row['certain_and_wrong']} of {row['n_test']:,}.",
        figure,
    )
