"""Logistic regression by EP, one problem after another, with every method that the paper compares: experiments 3 and 5.

A method that learns keeps what it learned from problem to problem, as in the paper, so its whole sequence is one part.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from heliograph.engine import Model, Posterior, Trace, after
from heliograph.errors import AccuracyWarning, ConvergenceWarning, OracleWarning
from heliograph.factors.black_box import BlackBox, factor
from heliograph.families import Beta, Gaussian, MultivariateGaussian
from heliograph.operators.kjit.kernel_learner import Kjit
from heliograph.operators.learned import Learned
from heliograph.oracles import ImportanceOracle
from heliograph.paper.batch.messages import recorded_messages
from heliograph.paper.columns import KJIT
from heliograph.paper.datasets import load as load_dataset
from heliograph.paper.datasets import logistic_regression_problem, read_splits, split
from heliograph.paper.rivals.neural import Neural

__all__ = [
    "METHODS",
    "PAPER_PROPOSAL",
    "Problem",
    "logistic_factor",
    "solve_sequence",
    "synthetic_sequence",
    "uci_sequence",
]

METHODS = ("exact", "learned", "learned bare", *KJIT, "forest", "neural", "sampling")
PAPER_PROPOSAL = (0.0, 200.0)  # mean and variance of the authors' proposal


class Problem(NamedTuple):
    """Training data, and test rows with the labels to be met."""

    name: str
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def logistic_factor() -> BlackBox:
    """The logistic function as a black box with Beta messages on its output."""

    @factor(output=Beta)
    def logistic(z: np.ndarray) -> np.ndarray:
        return expit(z)

    return logistic


def solve_sequence(
    problems: Sequence[Problem],
    method: str,
    seed: int,
    sweeps: int,
    particles: int,
    operator: dict[str, Any] | None = None,
    oracle: str = "paper",
) -> dict[str, Any]:
    """Solve problems in order with one method; a list entry per problem for every figure of its row.

    `operator` holds arguments for the method's operator (of KJIT its whole column), `oracle` is "paper" (the fixed proposal
    and plain draws of its sampler) or "sobol" (randomised quasi-Monte-Carlo draws from the cavity), both with `particles`
    draws per message.
    """
    box = logistic_factor()
    settings = _settings(method, box, seed, particles, operator or {}, oracle)
    rows: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
    series: dict[str, list[Any]] = {"log_variance": [], "asked": [], "sweep": [], "problem": []}
    per_sweep = []
    for k, problem in enumerate(problems):
        exact, _, seconds_exact = _infer(problem, None, sweeps, seed, {})
        belief, posterior, seconds = _infer(problem, box if method != "exact" else None, sweeps, seed + k, settings)
        trace = posterior.trace
        rows["disagreement"].append(_disagreement(problem, belief))
        rows["posterior_kl"].append(float(exact.kl(belief)) if method != "exact" else 0.0)
        rows["oracle_calls"].append(trace.n_asked)
        rows["evaluations"].append(int(trace.total("n_evaluations")))
        rows["improper"].append(int(trace.total("n_improper")))
        rows["failed"].append(int(trace.total("n_failed")))
        rows["messages"].append(sweeps * len(problem.y))
        rows["seconds"].append(seconds)
        rows["seconds_exact"].append(
            seconds_exact
        )  # just before, in the same process: times are compared by their ratio
        for part in ("oracle", "learning", "prediction"):
            rows[f"seconds_{part}"].append(float(trace.total(f"seconds_{part}")))
        rows["seconds_rest"].append(
            seconds - sum(rows[f"seconds_{p}"][-1] for p in ("oracle", "learning", "prediction"))
        )
        per_sweep.append([info.n_asked for info in trace.sweeps])
        _add_calls(series, trace, k)
    kept = {name: np.concatenate(parts) for name, parts in series.items() if parts}
    return {**rows, "asked_per_sweep": per_sweep, "names": [p.name for p in problems], "series": kept}


_COLUMNS = (
    "disagreement", "posterior_kl", "oracle_calls", "evaluations", "improper", "failed", "messages",
    "seconds", "seconds_exact", "seconds_oracle", "seconds_learning", "seconds_prediction", "seconds_rest",
)  # fmt: skip


def _add_calls(series: dict[str, list[Any]], trace: Trace, problem: int) -> None:
    """Take in what each call for messages to z was uncertain about and asked."""
    for call in trace.invocations:
        if call.to == "z":
            n = len(call.asked)
            # of the first output, the mean, as in the paper's trace; what is asked may be due to another
            level = np.full(n, np.nan) if call.log_variance is None else call.log_variance[:, 0]
            series["log_variance"].append(level.astype(np.float32))
            series["asked"].append(call.asked)
            series["sweep"].append(np.full(n, call.sweep, dtype=np.int16))
            series["problem"].append(np.full(n, problem, dtype=np.int32))


def _settings(
    method: str, box: BlackBox, seed: int, particles: int, given: dict[str, Any], oracle: str
) -> dict[str, Any]:
    if method == "exact":
        return {}
    answering = (
        ImportanceOracle(particles, proposal=Gaussian(*PAPER_PROPOSAL), draws="random", adapt=False)
        if oracle == "paper"
        else ImportanceOracle(particles)
    )
    if method == "sampling":
        return {"operator": "ask", "oracle": answering}
    if method in KJIT:  # `given` is the whole column, from the one record of them
        return {"operator": Kjit(**given), "oracle": answering}
    if method == "neural":
        size = {"messages": 5000, "max_iter": 1000, **given}
        incoming = recorded_messages(seed + 10_000, n_problems=8, most=size["messages"])
        network = Neural(max_iter=size["max_iter"])
        box.train(np.random.default_rng(seed), incoming, network, ImportanceOracle(2048))
        return {"operator": box.operator(network), "oracle": answering}
    if method == "learned":
        return {"operator": "learned", "oracle": ImportanceOracle(), **given}
    if method == "learned bare":
        return {"operator": Learned(reference="none"), "oracle": ImportanceOracle(), **given}
    return {"operator": method, "oracle": answering}


def _infer(
    problem: Problem, box: BlackBox | None, sweeps: int, seed: int, settings: dict[str, Any]
) -> tuple[MultivariateGaussian, Posterior, float]:
    d = problem.X.shape[1]
    start = time.perf_counter()
    model = Model()
    w = model.gaussian("w", np.zeros(d), covariance=np.eye(d))
    z = problem.X @ w
    if box is None:
        model.bernoulli("y", logit=z, observed=problem.y)
    else:
        model.bernoulli("y", box(z), observed=problem.y)
    with warnings.catch_warnings():
        for kind in (OracleWarning, ConvergenceWarning, AccuracyWarning):  # the row counts and measures all of these
            warnings.simplefilter("ignore", kind)
        posterior = model.infer(stop=after(sweeps), seed=seed, progress=False, audit=False, **settings)
    seconds = time.perf_counter() - start
    belief = posterior[w]
    assert isinstance(belief, MultivariateGaussian)
    assert isinstance(posterior, Posterior)
    return belief, posterior, seconds


def _disagreement(problem: Problem, belief: MultivariateGaussian) -> float:
    """Share of test rows where the sign of the posterior mean's score is not the label."""
    return float(np.mean((problem.X_test @ belief.mean > 0) != (problem.y_test > 0)))


# ---- the two sequences, as parts -----------------------------------------------------------------------------------
def synthetic_sequence(
    method: str, seed: int, n_problems: int, d: int, n: int, n_test: int, first: int = 0, **settings: Any
) -> dict[str, Any]:
    """Experiment 3: problems drawn from the model with one w for all, compared with the noise-free Bayes label."""
    w = np.random.default_rng([seed, 2**31]).standard_normal(d)
    problems = []
    for k in range(first, first + n_problems):
        drawn = logistic_regression_problem(np.random.default_rng([seed, k]), d=d, n=n, n_test=n_test, w=w)
        problems.append(Problem(f"problem {k + 1}", drawn.X, drawn.y, drawn.X_test, drawn.bayes_label))
    return solve_sequence(problems, method, seed, **settings)


def uci_sequence(
    method: str, seed: int, names: Sequence[str], standardise: str, splits: str | None, **settings: Any
) -> dict[str, Any]:
    """Experiment 5: four real data sets one after another, compared with the test labels."""
    given = read_splits(splits, tuple(names)) if splits else None
    problems = []
    for name in names:
        part = given[name] if given else split(load_dataset(name), seed=seed, standardise=standardise)
        problems.append(Problem(name, part.X_train, part.y_train, part.X_test, part.y_test))
    return solve_sequence(problems, method, seed, **settings)
