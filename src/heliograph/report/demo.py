"""The demonstration as a person sees it: two tables and a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.table import Table

if TYPE_CHECKING:
    from heliograph.experiments.demo import League, Regression

__all__ = ["draw_demo", "league_table", "regression_table"]


def regression_table(rows: list[Regression]) -> Table:
    """One line per problem: does the posterior's own spread match its distance from the truth?"""
    table = Table(title="Related logistic regressions (prior N(0, I))")
    for name in ("problem", "sweeps", "milliseconds", "error of mean", "posterior sd", "log evidence"):
        table.add_column(name, justify="right")
    for r in rows:
        table.add_row(
            str(r.problem),
            str(r.n_sweeps),
            f"{1e3 * r.seconds:.1f}",
            f"{r.error:.3f}",
            f"{r.sd:.3f}",
            f"{r.log_evidence:.2f}",
        )
    return table


def league_table(league: League) -> Table:
    """Players from best to worst."""
    table = Table(title=f"A league: {league.n_games} games, {league.n_sweeps} sweeps, {1e3 * league.seconds:.0f} ms")
    for name in ("player", "skill", "sd", "true skill"):
        table.add_column(name, justify="right")
    mean, sd = league.skill.mean, np.sqrt(league.skill.variance)
    for k in np.argsort(-mean):
        table.add_row(str(k + 1), f"{mean[k]:.1f}", f"{sd[k]:.1f}", f"{league.true[k]:.1f}")
    return table


def draw_demo(regressions: list[Regression], league: League, path: Path) -> Path:
    """Left: error against posterior sd of every problem. Right: inferred against true skills."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    k = [r.problem for r in regressions]
    left.plot(k, [r.error for r in regressions], "o-", label="distance from the truth")
    left.plot(k, [r.sd for r in regressions], "s--", label="posterior sd")
    left.set(xlabel="logistic regression", ylabel="root mean square", ylim=(0, None), title="Ten related problems")
    left.legend(frameon=False)
    mean, sd = league.skill.mean, np.sqrt(league.skill.variance)
    right.errorbar(league.true, mean, yerr=2 * sd, fmt="o", capsize=3)
    ends = [league.true.min() - 2, league.true.max() + 2]
    right.plot(ends, ends, ":", color="gray")
    right.set(xlabel="true skill", ylabel="posterior (2 sd)", title=f"A league of {len(mean)} players")
    figure.savefig(path, dpi=150)
    return path
