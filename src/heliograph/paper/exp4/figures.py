"""Figures of experiment 4."""

from __future__ import annotations

from typing import Any

import numpy as np

from heliograph.paper.columns import KJIT, published
from heliograph.paper.report.style import Picture, colour, label, marker, new_figure, scattered

__all__ = ["draw"]


def draw(result: dict[str, Any], series: dict[str, Any]) -> list[Picture]:
    """Inferred shape and rate against the exact ones, asks as problems go by, and time."""
    shown = [m for m in (*KJIT, "forest", "learned") if m in series]
    compared = ("shape", "rate") if "exact" in series and shown else ()
    pictures = [_against_exact(key, series, shown) for key in compared]
    asking = [m for m in shown if "asked" in series[m]]
    if asking:
        pictures.append(_asked_so_far(series, asking))
    timed = [m for m in ("exact", *shown) if m in series and "seconds" in series[m]]
    if timed:
        pictures.append(_seconds(series, timed))
    return pictures


def _against_exact(key: str, series: dict[str, Any], shown: list[str]) -> Picture:
    figure, axis = new_figure()
    truth = np.asarray(series["exact"][key], dtype=float)
    for method in shown:
        mine = np.asarray(series[method][key], dtype=float)
        fine = (mine > 0) & (truth[: len(mine)] > 0)
        axis.loglog(truth[: len(mine)][fine], mine[fine], marker(method), ms=3, mew=0, alpha=0.5, color=colour(method),
                    label=label(method))  # fmt: skip
    ends = [truth[truth > 0].min(), truth.max()]
    axis.loglog(ends, ends, "k-", lw=0.8)
    axis.set(xlabel=f"{key} of the exact posterior", ylabel=f"inferred {key}")
    alt = f"Inferred {key} against the exact posterior's for every problem: points on the diagonal."
    caption = f"Inferred {key} against the exact one, the paper's figure of the compound gamma."
    return scattered(figure, (f"exp4_{key}", alt, caption))


def _asked_so_far(series: dict[str, Any], asking: list[str]) -> Picture:
    figure, axis = new_figure()
    for method in asking:
        asked = np.cumsum(series[method]["asked"])
        axis.plot(np.arange(1, len(asked) + 1), asked, color=colour(method), label=label(method))
    given = published("exp4")["kjit"]["oracle_calls_after"]
    axis.plot([int(k) for k in given], list(given.values()), "kx", label="the paper")
    longest = max(len(series[m]["asked"]) for m in asking)
    axis.set(xlabel="problem", ylabel="questions so far", xlim=(0, 1.02 * longest), ylim=(0, None))
    axis.legend()
    return Picture(
        "exp4_asked",
        "Running number of questions: steep at first, then nearly flat.",
        "Questions to the oracle as problems go by.",
        figure,
    )


def _seconds(series: dict[str, Any], timed: list[str]) -> Picture:
    figure, axis = new_figure()
    for method in timed:
        seconds = 1e3 * np.asarray(series[method]["seconds"], dtype=float)
        axis.semilogy(
            np.arange(1, len(seconds) + 1),
            seconds,
            ".",
            ms=2.5,
            alpha=0.6,
            color=colour(method),
            label=label(method),
        )
    axis.set(xlabel="problem", ylabel="milliseconds")
    alt = "Time of each problem on a log axis; problems with a question stand out."
    return scattered(figure, ("exp4_seconds", alt, "Inference time per problem, log axis."), markerscale=4)
