"""Figures of the appendix on features."""

from __future__ import annotations

from typing import Any

import numpy as np

from heliograph.paper.report.style import Picture, colour, marker, new_figure

__all__ = ["draw"]

_ERRORS = {
    "max_abs_error": ("features_largest_error", "largest |approximation - kernel|",
                      "The largest entry difference, the appendix's first figure (its kernel is the expected product)."),
    "mean_abs_error": ("features_error", "mean |approximation - kernel|", "How well random features approximate each kernel."),
}  # fmt: skip


def draw(result: dict[str, Any], series: dict[str, Any]) -> list[Picture]:
    """The kernel's errors against D, maps over D_in and D_out, and more than 1,000 features."""
    pictures = [_errors(result["methods"], key) for key in _ERRORS] if result.get("methods") else []
    grid = result.get("grid") or {}
    for key, title in (
        ("frobenius", "Frobenius error of the kernel matrix"),
        ("mean_log_kl", "mean log KL of predictions"),
    ):
        if grid.get(key):
            pictures.append(_map(grid, key, title))
    return pictures + ([_beyond(result["beyond"])] if result.get("beyond") else [])


def _errors(methods: dict[str, Any], key: str) -> Picture:
    name, ylabel, caption = _ERRORS[key]
    figure, axis = new_figure()
    for method, row in methods.items():
        axis.loglog(row["D"], row[key], marker=marker(method), color=colour(method), label=method, ms=4)
    first = next(iter(methods.values()))
    D = np.array(first["D"], dtype=float)
    axis.loglog(D, first[key][0] * np.sqrt(D[0] / D), "k:", lw=1, label="one over root D")
    axis.set(xlabel="number of features D", ylabel=ylabel)
    axis.legend()
    alt = f"The {ylabel} of random features against D on two log axes: straight falling lines."
    return Picture(name, alt, caption, figure)


def _beyond(wider: dict[str, Any]) -> Picture:
    figure, axis = new_figure()
    for (against, row), c in zip(wider.items(), ("#E69F00", "#0072B2"), strict=False):
        scores = np.array(row["mean_log_kl"], dtype=float)
        axis.semilogx(row["D_out"], scores.mean(axis=1), "o-", color=c, label=f"{against} labels")
        axis.semilogx(np.repeat(row["D_out"], scores.shape[1]), scores.ravel(), ".", color=c, ms=4)
    axis.axvline(1000, color="black", ls=":", lw=1, label="the paper's 1,000")
    axis.set(xlabel="D_out", ylabel="mean log KL")
    axis.legend()
    text = "; ".join(
        f"{a} {np.mean(r['mean_log_kl'][0]):.1f} to {np.mean(r['mean_log_kl'][-1]):.1f}" for a, r in wider.items()
    )
    return Picture(
        "features_beyond",
        f"Mean log KL of batch learning against the number of outer features: {text}.",
        "Batch learning with more features than the paper's 1,000, against its sampled labels and against exact ones.",
        figure,
    )


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
