"""The demonstration: related logistic regressions, and one factor without a formula; a table and a picture."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table
from scipy.special import expit

from heliograph.engine import Model, Posterior, after, steps
from heliograph.factors.black_box import BlackBox, factor
from heliograph.families import Beta, Gamma, MultivariateGaussian
from heliograph.oracles import ImportanceOracle
from heliograph.paper.datasets import logistic_regression_problem

__all__ = ["TOLERANCE", "Solved", "demo_table", "draw_demo", "run_demo"]

TOLERANCE = 1e-3  # nats of posterior error

Tell = Callable[[str, int, int], None]  # what is being done, sweep, oracle calls so far in this problem


class Solved(NamedTuple):
    """One problem solved one way."""

    problem: str
    way: str  # learned (or learned, again), exact or sampling
    n_sweeps: int
    n_asked: int
    n_evaluations: int
    seconds: float
    posterior_kl: float  # nats, from the exact EP posterior of the weights
    error_estimate: float  # nats, the error that the operator states


def run_demo(seed: int, n_problems: int, tell: Tell) -> list[Solved]:
    """Solve the logistic regressions in turn, then the trap counts; each learned, and beside it exact and sampled."""

    @factor(output=Beta)
    def logistic(z: np.ndarray) -> np.ndarray:
        return expit(z)

    @factor(output=Gamma)
    def catch(z: np.ndarray) -> np.ndarray:  # a trap that fills up, and that attracts more animals when there are many
        abundance = np.exp(np.minimum(z, 12.0))
        return 0.05 + 40.0 * -np.expm1(-((abundance / 40.0) ** 1.3)) + 0.2 * np.log1p(abundance)

    solved: list[Solved] = []
    for k in range(n_problems):
        drawn = logistic_regression_problem(np.random.default_rng([seed, k]), d=20, n=300, n_test=1)
        ways = (
            {"learned": logistic, "exact": None, "sampling": logistic}
            if k == 0
            else {"learned": logistic, "exact": None}
        )
        solved += _solve(
            f"logistic {k + 1}", ways, seed, tell, lambda box, drawn=drawn: _logistic(drawn.X, drawn.y, box)
        )
    rng = np.random.default_rng([seed, n_problems])
    x = np.column_stack([np.ones(200), 0.6 * rng.standard_normal((200, 3))])
    counts = rng.poisson(catch(x @ np.array([2.5, 1.0, -0.7, 0.4])))
    ways = {"learned": catch, "learned, again": catch, "exact": catch}
    solved += _solve("traps", ways, seed, tell, lambda box: _traps(x, counts, box))
    return solved


def _logistic(x: np.ndarray, y: np.ndarray, box: BlackBox | None) -> Model:
    model = Model()
    w = model.gaussian("w", np.zeros(x.shape[1]), covariance=np.eye(x.shape[1]))
    if box is None:
        model.bernoulli("y", logit=x @ w, observed=y)
    else:
        model.bernoulli("y", box(x @ w), observed=y)
    return model


def _traps(x: np.ndarray, counts: np.ndarray, box: BlackBox) -> Model:
    model = Model()
    w = model.gaussian("w", np.zeros(x.shape[1]), covariance=4 * np.eye(x.shape[1]))
    model.poisson("counts", box(x @ w), observed=counts)
    return model


def _solve(problem: str, ways: dict[str, Any], seed: int, tell: Tell, build: Callable[[Any], Model]) -> list[Solved]:
    """One problem in every way it can be solved; the exact posterior is the measure of the others."""
    runs: dict[str, tuple[Posterior, float]] = {}
    for way, box in ways.items():
        start = time.perf_counter()
        settings: dict[str, Any] = {"seed": seed, "tolerance": TOLERANCE}
        if way == "sampling":  # draws differ from sweep to sweep, so it would never settle by itself;
            # after four sweeps exact messages are 1e-5 nats from their rest, and the draws 4e-4
            settings |= {"operator": "ask", "oracle": ImportanceOracle(2048), "stop": after(4)}
        elif way == "exact" and box is not None:  # no formula, but quadrature of the function itself
            settings |= {"operator": "ask", "oracle": "quadrature"}
        posterior = None
        for posterior, info in steps(build(box), **settings):
            tell(f"{problem}, {way}", info.sweep, posterior.trace.n_asked)
        assert posterior is not None
        runs[way] = posterior, time.perf_counter() - start
    exact = runs["exact"][0]["w"]
    rows = []
    for way, (posterior, seconds) in runs.items():
        trace, belief = posterior.trace, posterior["w"]
        assert isinstance(belief, MultivariateGaussian) and isinstance(exact, MultivariateGaussian)
        rows.append(
            Solved(
                problem,
                way,
                posterior.n_sweeps,
                trace.n_asked,
                int(trace.total("n_evaluations")),
                seconds,
                float(exact.kl(belief)),
                posterior.error_estimate,
            )
        )
    return rows


# ---- the table and the picture ---------------------------------------------------------------------------------------------
def demo_table(rows: list[Solved]) -> Table:
    """One line per problem and way of solving it."""
    table = Table(
        title="Learned messages beside exact and sampled ones",
        caption="asked: oracle calls; evals: of the factor; KL: nats from exact EP's posterior; own: the estimate of it",
        box=SIMPLE_HEAD,  # eight columns fit into eighty characters
        padding=(0, 0, 0, 1),
        pad_edge=False,
    )
    for name in ("problem", "messages", "sweeps", "asked", "evals", "ms", "KL", "own"):
        table.add_column(name, justify="left" if name in ("problem", "messages") else "right", no_wrap=True)
    last = None
    for r in rows:
        learned = r.way.startswith("learned")
        table.add_row(
            r.problem if r.problem != last else "",
            r.way,
            str(r.n_sweeps),
            f"{r.n_asked:,}" if r.way != "exact" or r.n_asked else "",
            f"{r.n_evaluations:,}" if r.n_evaluations else "",
            f"{1e3 * r.seconds:,.0f}",
            f"{r.posterior_kl:.1e}" if r.way != "exact" else "",
            f"{r.error_estimate:.1e}" if learned else "",
        )
        last = r.problem
    return table


def draw_demo(rows: list[Solved], tolerance: float, path: Path) -> Path:
    """Left: oracle calls, falling to zero. Middle: time per problem. Right: distance from the exact posterior."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullLocator, StrMethodFormatter

    logistic = [r for r in rows if r.problem.startswith("logistic")]
    learned = [r for r in logistic if r.way == "learned"]
    exact = [r for r in logistic if r.way == "exact"]
    sampling = [r for r in logistic if r.way == "sampling"]
    k = np.arange(1, len(learned) + 1)
    figure = Figure(figsize=(10.5, 3.4))
    asks, times, errors = figure.subplots(1, 3)
    # a layout engine draws it all twice; titles without a place, mathematical labels and minor ticks take as long
    figure.subplots_adjust(left=0.045, right=0.99, bottom=0.14, top=0.91, wspace=0.22)
    asks.bar(k, [r.n_asked for r in learned], color="#0072b2")
    messages = 300 * np.mean([r.n_sweeps for r in learned])
    asks.set_title(f"Oracle calls (of {messages:,.0f} messages each)", y=1.0)
    times.semilogy(k, [1e3 * r.seconds for r in learned], "o-", color="#0072b2", label="learned")
    times.semilogy(k, [1e3 * r.seconds for r in exact], "s--", color="#009e73", label="hand-made factor")
    if sampling:
        times.axhline(1e3 * sampling[0].seconds, color="#d55e00", ls=":", label="sampling, 2,048 draws")
    times.set_title("Milliseconds per problem", y=1.0)
    times.legend(frameon=False, fontsize=8)
    errors.semilogy(k, [max(r.posterior_kl, 1e-12) for r in learned], "o-", color="#0072b2", label="learned")
    errors.axhline(tolerance, color="black", lw=1, label="tolerance asked for")
    if sampling:
        errors.axhline(sampling[0].posterior_kl, color="#d55e00", ls=":", label="sampling")
    errors.set_title("KL(exact EP || learned), nats", y=1.0)
    errors.legend(frameon=False, fontsize=8)
    for axes in (asks, times, errors):
        axes.set(xlabel="logistic regression", xticks=k)
    for axis, form in ((times.yaxis, "{x:g}"), (errors.yaxis, "{x:.0e}")):
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(StrMethodFormatter(form))
    figure.savefig(path, dpi=150)
    return path
