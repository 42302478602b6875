"""Figures of problems in sequence: experiments 3, 4 and 5."""

from __future__ import annotations

from typing import Any

import numpy as np

from heliograph.paper.report.style import Picture, colour, label, marker, new_figure

__all__ = ["draw_exp3", "draw_exp4", "draw_exp5"]

_WINDOW = 50  # messages of the moving average
_BEYOND = 1e5  # what is larger is drawn here, so that the others can be told apart


def _clean(values: list[Any]) -> np.ndarray:
    return np.array([np.inf if v is None else v for v in values], dtype=float)  # JSON has no infinity


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
    axis.set(xlabel="message to z, in the order of the run", ylabel="log predictive variance", xlim=(0, len(level)))
    axis.set_ylim(low - 0.2 * span, high + 0.25 * span)
    figure.legend(loc="outside upper right", ncols=4, markerscale=3)
    return Picture(
        f"{name}_trace_{method.replace(' ', '_')}",
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
        y = _clean(row[key])
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
    means = ", ".join(f"{label(m)} {np.mean(_clean(r[key])):.3g}" for m, r in result["methods"].items() if len(r[key]))
    return Picture(name, f"{ylabel} of each method over {n} problems; means: {means}.", caption, figure)


def draw_exp3(result: dict[str, Any], series: dict[str, Any]) -> list[Picture]:
    """Temporal uncertainty, then error, time, posterior KL and asks per problem."""
    return _draw_sequence(result, series, "exp3", -8.5)


def _draw_sequence(result: dict[str, Any], series: dict[str, Any], name: str, threshold: float) -> list[Picture]:
    pictures = []
    for method in ("kjit", "kjit program"):
        if method in series and method in result["methods"]:
            given = result["settings"].get("operators", {}).get(method, {}).get("threshold", threshold)
            names = result["methods"][method].get("names", [])
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


def draw_exp5(result: dict[str, Any], series: dict[str, Any]) -> list[Picture]:
    """The incoming messages of the data sets, temporal uncertainty, and figures per data set with asks per sweep."""
    pictures = []
    if "incoming" in series:
        kept = series["incoming"]
        figure, axis = new_figure()
        for k, name in enumerate(result["datasets"]):
            mine = kept["problem"] == k
            axis.plot(kept["mean"][mine], kept["log_precision"][mine], "osD^"[k % 4], ms=2.5, alpha=0.5, mew=0, rasterized=True,
                      color=("#0072B2", "#D55E00", "#009E73", "#CC79A7")[k % 4], label=name.replace("_", " "))  # fmt: skip
        axis.set(xlabel="mean of the message from z", ylabel="log precision")
        figure.legend(loc="outside upper center", ncols=4, markerscale=2, handletextpad=0.1)
        pictures.append(
            Picture("exp5_incoming", "Incoming messages of the four data sets by mean and log precision: four different clouds.",
                    "Messages from z to the factor in each data set: what the operator meets changes with the data.", figure)
        )  # fmt: skip
    pictures += _draw_sequence(result, series, "exp5", -9.0)
    asking = [m for m in ("kjit", "learned") if m in result["methods"]]
    if asking:
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
        axes[-1, 0].set_xlabel("sweep, over all data sets")
        pictures.append(
            Picture("exp5_asked", "Questions in each sweep: many at the beginning of a data set, fewer at its end.",
                    "Questions to the oracle in each sweep.", figure)
        )  # fmt: skip
    return pictures


def draw_exp4(result: dict[str, Any], series: dict[str, Any]) -> list[Picture]:
    """Inferred shape and rate against the exact ones, asks as problems go by, and time."""
    shown = [m for m in ("kjit program", "kjit", "kjit chart", "forest", "learned") if m in series]
    compared = ("shape", "rate") if "exact" in series and shown else ()
    pictures = [_against_exact(key, series, shown) for key in compared]
    asking = [m for m in shown if "asked" in series[m]]
    if asking:
        pictures.append(_asked_so_far(result, series, asking))
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
    figure.legend(loc="outside upper center", ncols=3, markerscale=2, handletextpad=0.1)
    return Picture(
        f"exp4_{key}",
        f"Inferred {key} against the exact posterior's for every problem: points on the diagonal.",
        f"Inferred {key} against the exact one, the paper's figure of the compound gamma.",
        figure,
    )


def _asked_so_far(result: dict[str, Any], series: dict[str, Any], asking: list[str]) -> Picture:
    figure, axis = new_figure()
    for method in asking:
        asked = np.cumsum(series[method]["asked"])
        axis.plot(np.arange(1, len(asked) + 1), asked, color=colour(method), label=label(method))
    given = result.get("paper", {}).get("kjit program", {}).get("oracle_calls_after", {})
    if given:
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
    figure.legend(loc="outside upper center", ncols=3, markerscale=4, handletextpad=0.1)
    return Picture(
        "exp4_seconds",
        "Time of each problem on a log axis; problems with a question stand out.",
        "Inference time per problem, log axis.",
        figure,
    )
