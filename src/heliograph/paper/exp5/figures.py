"""Figures of experiment 5."""

from __future__ import annotations

from typing import Any

import numpy as np

from heliograph.paper.columns import KJIT
from heliograph.paper.report.style import Picture, colour, label, new_figure, scattered
from heliograph.paper.sequences.figures import draw as draw_sequence

__all__ = ["draw"]


def draw(result: dict[str, Any], series: dict[str, Any]) -> list[Picture]:
    """The incoming messages of the data sets, temporal uncertainty, and figures per data set with asks per sweep."""
    pictures = [_incoming(result["datasets"], series["incoming"])] if "incoming" in series else []
    pictures += draw_sequence(result, series)
    asking = [m for m in (*KJIT, "learned") if m in result["methods"]]
    return pictures + ([_asked(result, asking)] if asking else [])


def _incoming(names: list[str], kept: dict[str, np.ndarray]) -> Picture:
    figure, axis = new_figure()
    for k, name in enumerate(names):
        mine = kept["problem"] == k
        axis.plot(kept["mean"][mine], kept["log_precision"][mine], "osD^"[k % 4], ms=2.5, alpha=0.5, mew=0, rasterized=True,
                  color=("#0072B2", "#D55E00", "#009E73", "#CC79A7")[k % 4], label=name.replace("_", " "))  # fmt: skip
    axis.set(xlabel="mean of the message from z", ylabel="log precision")
    alt = "Incoming messages of the four data sets by mean and log precision: four different clouds."
    caption = "Messages from z to the factor in each data set, the paper's figure 1: what the operator meets changes with the data."
    return scattered(figure, ("exp5_incoming", alt, caption), ncols=4)


def _asked(result: dict[str, Any], asking: list[str]) -> Picture:
    figure, axes = new_figure(5.6, 1.4 + 1.5 * len(asking), nrows=len(asking), sharex=True, squeeze=False)
    for axis, method in zip(axes[:, 0], asking, strict=True):
        sweeps = result["methods"][method]["asked_per_sweep"]
        flat = [c for s in sweeps for c in s]
        axis.bar(range(len(flat)), flat, color=colour(method))
        for k, start in enumerate(np.cumsum([0, *map(len, sweeps[:-1])])):
            axis.axvline(start - 0.5, color="black", ls="--", lw=0.7)
            axis.annotate(result["datasets"][k].replace("_", "\n"), (start, 1), xycoords=("data", "axes fraction"),
                          xytext=(0, -4), va="top", textcoords="offset points", fontsize=8)  # fmt: skip
        axis.set(ylabel="asked", title=label(method))
        axis.margins(y=0.25)
    axes[-1, 0].set_xlabel("sweep, over all data sets in the text's order")
    return Picture(
        "exp5_asked",
        "Questions in each sweep: many at the beginning of a data set, fewer at its end.",
        "Questions to the oracle in each sweep.",
        figure,
    )
