"""Experiment 4: the compound gamma, one message a problem, over 1,500 problems.

The factor ``(1 + tau)^-2`` is written as a black box that anybody could write: ``p = 1 / (1 + tau)`` with the message
Beta(3, 1) on p, whose density is proportional to ``p^2``.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from heliograph.factors import CompoundGamma
from heliograph.factors.black_box import BlackBox, RunOptions, factor
from heliograph.families import Beta, Family, Gamma, concatenate
from heliograph.operators.kjit.kernel_learner import Kjit
from heliograph.operators.kjit.targets import OutgoingRate
from heliograph.operators.learned import Learned
from heliograph.operators.protocol import Incoming, Setting
from heliograph.oracles import ImportanceOracle, QuadratureOracle
from heliograph.oracles.references import reference_of
from heliograph.paper.columns import KJIT, kjit_settings, published
from heliograph.paper.datasets import compound_gamma_problem
from heliograph.paper.rivals.forest import Forest
from heliograph.paper.running.parts import Outcome, Part, plain_settings, split_by_method

__all__ = [
    "FULL",
    "METHODS",
    "QUICK",
    "assemble",
    "compound_gamma_factor",
    "headlines",
    "incoming_messages",
    "parts_of",
    "solve_problems",
]

METHODS = ("exact", "learned", "learned sampled", *KJIT, "forest")
MARKS = (50, 100, 200, 500, 1000, 1500)

FULL: dict[str, Any] = {
    "methods": METHODS,
    "n_problems": 1500,
    "particles": 16_384,
    "columns": {name: kjit_settings("exp4", name) for name in KJIT},
    "operators": {"forest": {"minibatch": 20, "threshold": -6.0}},
    "tolerance": 1e-3,  # nats, of the default operator
    # the paper's oracle was quadrature, and so is that of all methods but one
    "oracles": {m: "sampling" if m == "learned sampled" else "quadrature" for m in METHODS if m != "exact"},
}
QUICK: dict[str, Any] = {**FULL, "n_problems": 150}


def compound_gamma_factor() -> BlackBox:
    """``p = 1 / (1 + tau)``; with Beta(3, 1) on p it says ``(1 + tau)^-2`` of tau."""

    @factor(output=Beta)
    def compound_gamma(tau: np.ndarray) -> np.ndarray:
        return 1 / (1 + tau)

    return compound_gamma


def incoming_messages(seed: int, n_problems: int) -> Gamma:
    """The message of each problem's data to its precision, ``Gamma(n/2 + 1, sum x^2 / 2)``."""
    problems = [compound_gamma_problem(np.random.default_rng([seed, k])) for k in range(n_problems)]
    return Gamma(np.array([p.shape for p in problems]), np.array([p.rate for p in problems]))


# ---- parts -----------------------------------------------------------------------------------------------------------
def _operator(method: str, box: BlackBox, given: Mapping[str, Any]) -> Any:
    if method.startswith("learned"):
        # set, not measured: by the clock, one row at a time may look too slow for a reference, and numbers must not depend
        # on how busy the machine is
        return Learned(reference=reference_of(box.sampler))
    if method == "forest":
        return Forest(**given)
    operator = Kjit(**given)
    operator.view = _tau_alone
    return operator


def _tau_alone(rng: np.random.Generator, incoming: Incoming, setting: Setting) -> tuple[Incoming, int]:
    """Leave out the messages to p, which the paper's factor does not have: p only expresses ``(1 + tau)^-2``."""
    return {"tau": incoming["tau"]}, 0


def solve_problems(
    method: str,
    seed: int,
    n_problems: int,
    particles: int,
    tolerance: float,
    oracle: str | None = "quadrature",
    operator: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Infer the precision of every problem in turn; a method that learns keeps what it learned."""
    tau = incoming_messages(seed, n_problems)
    start = time.perf_counter()
    exact = CompoundGamma().belief("tau", {"tau": tau})
    seconds_exact = time.perf_counter() - start
    assert isinstance(exact, Gamma)
    if method == "exact":
        spent = np.full(n_problems, seconds_exact / n_problems)
        asked = np.ones(n_problems, dtype=bool)
        return _row(exact, exact, asked, spent, np.zeros((n_problems, 3)), 0, 0)
    box = compound_gamma_factor()
    options = RunOptions(
        np.random.default_rng([seed, 4]),
        _operator(method, box, operator or {}),
        QuadratureOracle() if oracle == "quadrature" else ImportanceOracle(particles),
        tolerance,
    )
    found, asked, spent, split = _solve_in_turn(box, tau, options, method == "kjit (program)")
    row = _row(exact, found, asked, spent, split, int((~found.proper).sum()), box.n_evaluations)
    if method == "kjit (program)":  # the imitated program sends messages of shape 1 too; the KL is still from exact EP
        alike = _of_shape_1(exact, tau) * tau
        assert isinstance(alike, Gamma)
        row |= _correlations(alike, found)
    return row


def _solve_in_turn(
    box: BlackBox, tau: Gamma, options: RunOptions, of_shape_1: bool
) -> tuple[Gamma, np.ndarray, np.ndarray, np.ndarray]:
    """Posteriors, which problems were asked about, and the seconds each took, in all and by what they went into."""
    on_p = Beta(np.array([3.0]), 1.0)
    posteriors, asked, spent, split = [], [], [], []
    for k in range(len(tau)):
        start = time.perf_counter()
        reply = box.send("tau", {"tau": tau[k : k + 1], "out": on_p}, options)
        message = reply.message
        if of_shape_1 and reply.asked.any():  # what the oracle gives has a shape of its own
            message = _of_shape_1(message * tau[k : k + 1], tau[k : k + 1])
        posteriors.append(message * tau[k : k + 1])
        spent.append(time.perf_counter() - start)
        asked.append(bool(reply.asked[0]))
        split.append((reply.seconds_oracle, reply.seconds_learning, reply.seconds_prediction))
    found = concatenate(posteriors)
    assert isinstance(found, Gamma)
    return found, np.array(asked), np.array(spent), np.array(split)


def _of_shape_1(belief: Family, cavity: Family) -> Family:
    target = OutgoingRate()
    return target.inverse(target.forward(belief, cavity)[0], cavity)[0]


def _row(
    exact: Gamma,
    found: Gamma,
    asked: np.ndarray,
    spent: np.ndarray,
    split: np.ndarray,
    n_improper: int,
    n_evaluations: int,
) -> dict[str, Any]:
    kl = np.where(found.proper, exact.kl(found), np.inf)
    so_far = np.cumsum(asked)
    seconds = {
        f"seconds_{name}": float(s) for name, s in zip(("oracle", "learning", "prediction"), split.sum(0), strict=True)
    }
    return {
        **_correlations(exact, found),
        "oracle_calls": int(asked.sum()),
        "oracle_calls_after": {str(k): int(so_far[k - 1]) for k in MARKS if k <= len(asked)},
        "worst_posterior_kl": float(kl.max()),
        "mean_posterior_kl": float(kl.mean()),
        "improper": n_improper,
        "evaluations": n_evaluations,
        "seconds": float(spent.sum()),
        **seconds,
        "seconds_rest": float(spent.sum() - split.sum()),
        "seconds_when_asked": float(spent[asked].mean()) if asked.any() else None,
        "seconds_when_certain": float(spent[~asked].mean()) if (~asked).any() else None,
        "series": {"shape": found.shape_parameter, "rate": found.rate, "asked": asked, "seconds": spent},
    }


def _correlations(exact: Gamma, found: Gamma) -> dict[str, float]:
    good = found.proper
    pairs = {"shape": (exact.shape_parameter, found.shape_parameter), "rate": (exact.rate, found.rate)}
    return {
        f"correlation_log_{name}": float(np.corrcoef(np.log(a[good]), np.log(b[good]))[0, 1])
        for name, (a, b) in pairs.items()
    }


def incoming_part(seed: int, n_problems: int) -> dict[str, Any]:
    """The messages that come in, for the figure."""
    tau = incoming_messages(seed, n_problems)
    return {"series": {"shape": tau.shape_parameter, "rate": tau.rate}}


def parts_of(settings: Mapping[str, Any], seed: int) -> list[Part]:
    """The data, and a method each."""
    shared = {k: settings[k] for k in ("n_problems", "particles", "tolerance")}
    made = [Part("exp4 data", incoming_part, {"seed": seed, "n_problems": settings["n_problems"]})]
    for method in settings["methods"]:
        given = settings["columns" if method in KJIT else "operators"].get(method)
        own = {"seed": seed, "method": method, "oracle": settings["oracles"].get(method), "operator": given}
        made.append(Part(f"exp4 {method}", solve_problems, {**shared, **own}))
    return made


def assemble(settings: Mapping[str, Any], seed: int, results: Mapping[str, dict[str, Any]]) -> Outcome:
    """Methods, each over all problems."""
    methods, series = split_by_method(settings, results, "exp4")
    if "exp4 data" in results:
        series = {"data": results["exp4 data"]["series"], **series}
    json = {"experiment": "exp4", "settings": plain_settings(settings, seed), "methods": methods}
    return Outcome({**json, "paper": published("exp4")}, series)


def headlines(json: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What is shown as a spread over seeds."""
    found = {}
    for method, row in json["methods"].items():
        found[method] = {"oracle calls": row["oracle_calls"]}
        found[method] |= {f"after {k}": v for k, v in row["oracle_calls_after"].items()}
        found[method] |= {
            "correlation, log rate": row["correlation_log_rate"],
            "log shape": row["correlation_log_shape"],
        }
        found[method] |= {"KL, mean": row["mean_posterior_kl"], "KL, worst": row["worst_posterior_kl"]}
        asked, certain = row["seconds_when_asked"], row["seconds_when_certain"]
        found[method]["asked over certain, seconds"] = asked / certain if asked and certain else None
    return found
