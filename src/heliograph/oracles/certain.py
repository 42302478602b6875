"""The answer when there is nothing to integrate: a deterministic function of known inputs."""

from __future__ import annotations

import numpy as np

from heliograph.oracles.answer import Answer
from heliograph.oracles.answering import blank, choose, exact_errors
from heliograph.oracles.calling import evaluate
from heliograph.oracles.problem import Problem

__all__ = ["answer_if_certain"]


def answer_if_certain(rng: np.random.Generator, problem: Problem) -> Answer:
    """A point mass at the function's value; a row fails where the message on the output holds that value impossible."""
    n, out = problem.n, problem.output
    value = evaluate(rng, problem.sampler, problem.constants, size=n)
    belief = out.message.point_like(value)
    log_z = out.axis.log_message(out.message, out.axis.coordinates(value)[:, None])[:, 0]
    failed = ~np.isfinite(log_z)

    beliefs = {**problem.fixed, out.name: choose(failed, out.message, belief)}
    order = [k for k in problem.sampler.ports if k in beliefs]
    known = {k: exact_errors(beliefs[k], failed) for k in order}
    square = {k: covariance for k, (_, covariance) in known.items()}
    return Answer(
        beliefs={k: beliefs[k] for k in order},
        log_z=np.where(failed, -np.inf, log_z),
        standard_errors={k: errors for k, (errors, _) in known.items()},
        covariances=square,
        chart_covariances=square,
        expected_kl={k: blank(np.zeros(n), failed, False) for k in order},
        log_z_error=blank(np.zeros(n), failed, False),
        ess=np.where(failed, 0.0, 1.0),
        pareto_k=np.full(n, -1.0),
        failed=failed,
        n_evaluations=n,
    )
