"""Figures of problems in sequence: experiments 3 and 5."""

from __future__ import annotations

from typing import Any

import numpy as np

from heliograph.paper.columns import KJIT
from heliograph.paper.report.style import Picture, colour, file_name, label, marker, new_figure
from heliograph.paper.report.tables import nats

__all__ = ["draw"]

_WINDOW = 50  # messages of the moving average
_BEYOND = 1e5  # what is larger is drawn here, so that the others can be told apart


def _trace(
    name: str, method: str, kept: dict[str, np.ndarray], threshold: float | None, names: list[str]
) -> Picture | None:
    """Log predictive variance of every message in the order of the run, with asks and the problems' beginnings."""
    level = np.asarray(kept.get("log_variance", []), dtype=float)
    if not np.isfinite(level).any():
        return None
    figure, axis = new_figure(10, 3.6)
    step = np.arange(len(level))
    # a long run has more messages than the picture has columns: the dots are thinned, the average is of all of them
    thin = max(1, len(level) // 20_000)
    axis.plot(step[::thin], level[::thin], ".", ms=1.5, color=colour(method), alpha=0.35, rasterized=True,
              label="each message")  # fmt: skip
    axis.plot(step, _moving_average(level), color="black", lw=0.9, label=f"mean of {_WINDOW}")
    low, high = np.nanpercentile(level, [0.1, 99.9])
    span = max(high - low, 0.5)
    asked = step[np.asarray(kept["asked"], dtype=bool)]
    axis.plot(asked, np.full(len(asked), low - 0.1 * span), "|", color="#D55E00", ms=7, mew=0.5, label="asked")
    starts = np.flatnonzero(np.diff(kept["problem"], prepend=-1))
    for k, s in enumerate(starts):
        axis.axvline(s, color="black", ls="--", lw=0.7)
        if k < len(names) and len(names) <= 10:
            axis.annotate(names[k].replace("_", " "), (s, 1.0), xycoords=("data", "axes fraction"), xytext=(3, -10),
                          textcoords="offset points", fontsize=8.5)  # fmt: skip
    if threshold is not None:
        axis.axhline(threshold, color="#777777", lw=0.9, ls="-.", label="threshold")
    axis.set(xlabel="message to z, in the order of the run", ylabel="log predictive variance of the mean")
    axis.set_xlim(0, len(level))
    axis.set_ylim(low - 0.2 * span, high + 0.25 * span)
    figure.legend(loc="outside upper right", ncols=4, markerscale=3)
    return Picture(
        f"{name}_trace_{file_name(method)}",
        f"Log predictive variance of {label(method)} over {len(level):,} messages in {len(starts)} problems; asked "
        f"{len(asked):,} times, {np.sum(asked > len(level) // 2):,} of them in the second half.",
        f"{label(method)}'s uncertainty over time. Dashed lines are the beginnings of problems, ticks at the bottom are "
        "questions to the oracle.",
        figure,
        wide=True,
    )


def _moving_average(level: np.ndarray) -> np.ndarray:
    """The mean of the finite levels around each; NaN where there are none."""
    known = np.isfinite(level)
    ones = np.convolve(known, np.ones(_WINDOW), "same")
    total = np.convolve(np.where(known, level, 0.0), np.ones(_WINDOW), "same")
    return np.where(ones > 0, total / np.maximum(ones, 1), np.nan)


def _per_problem(result: dict[str, Any], key: str, name: str, ylabel: str, caption: str, log: bool) -> Picture:
    figure, axis = new_figure()
    n, kinds = 1, "datasets" in result
    for k, (method, row) in enumerate(result["methods"].items()):
        y = nats(row[key])
        n = max(n, len(y))
        if log:
            if (y > _BEYOND).any():
                caption += f" {label(method)} leaves the picture and is drawn at its edge."
            y = np.where(y > 0, np.minimum(y, _BEYOND), np.nan)
        # data sets have no order to draw a line along: dots side by side
        x = np.arange(1, len(y) + 1) + (0.1 * (k - 0.5 * (len(result["methods"]) - 1)) if kinds else 0.0)
        axis.plot(
            x,
            y,
            marker(method) if kinds else f"{marker(method)}-",
            ms=4,
            lw=1.2,
            color=colour(method),
            label=label(method),
        )
    if log:
        axis.set_yscale("log")
    if kinds:
        axis.set_xticks(range(1, len(result["datasets"]) + 1), [d.replace("_", "\n") for d in result["datasets"]])
        axis.grid(False, axis="x")
    else:
        axis.set_xlabel("problem")
        axis.xaxis.get_major_locator().set_params(integer=True)
    axis.set_ylabel(ylabel)
    figure.legend(loc="outside upper center", ncols=3)
    means = ", ".join(f"{label(m)} {np.mean(nats(r[key])):.3g}" for m, r in result["methods"].items() if len(r[key]))
    return Picture(name, f"{ylabel} of each method over {n} problems; means: {means}.", caption, figure)


def draw(result: dict[str, Any], series: dict[str, Any]) -> list[Picture]:
    """Temporal uncertainty, then error, time, posterior KL and asks per problem."""
    pictures, name = [], result["experiment"]
    for method in KJIT:
        if method in series and method in result["methods"]:
            given = result["settings"].get("columns", {}).get(method, {}).get("threshold")
            row = result["methods"][method]
            names = row.get("run_order", row.get("names", []))
            pictures.append(_trace(name, method, series[method], given, names))
    if result["methods"]:
        error = "error on test rows" if name == "exp5" else "disagreement with the Bayes label"
        pictures += [
            _per_problem(result, "disagreement", f"{name}_error", error, "Error per problem, from the posterior mean.", False),
            _per_problem(result, "seconds", f"{name}_seconds", "seconds", "Inference time per problem, log axis.", True),
            _per_problem(result, "posterior_kl", f"{name}_posterior_kl", "KL(exact EP || its), nats",
                         "How far each posterior is from exact EP's: the comparison that the paper did not make.", True),
            _per_problem(result, "oracle_calls", f"{name}_calls", "oracle calls",
                         "Questions per problem, log axis (none is not shown).", True),
        ]  # fmt: skip
    return [p for p in pictures if p is not None]
