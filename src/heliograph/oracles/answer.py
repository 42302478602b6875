"""The answer of an oracle: beliefs for every direction from one run, and the error of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from heliograph.families import Family, concatenate
from heliograph.oracles.sampler import Sampler

__all__ = ["Answer", "Oracle", "gather", "replace_rows", "take_answer"]


class Answer(NamedTuple):
    """One run of an oracle for a plate of n tuples of incoming messages.

    Where `failed` is True nothing was learned: the beliefs there are the incoming messages (so what would be sent is
    uniform), the errors are infinite and `log_z` is -inf. The mask is authoritative; the rest is only there to be free
    of NaN. Ports are the random inputs (data ports have no belief) and the sampler's `child`.

    A single port can be unknown in a row that did not fail: the output, where most draws rounded onto the edge of its
    support (a sigmoid at 500 is 1.0). Its belief is then the incoming message, and its errors are infinite.

    `covariances` are those of the errors of the expected statistics, flattened. `chart_covariances` are the same
    errors in coordinates that keep their digits when a belief is narrow: (chart mean, log chart variance) for Gaussian,
    Gamma and Beta; (mean, covariance flattened) for MultivariateGaussian; log odds for Bernoulli; log probabilities
    for Categorical; expected logarithms for Dirichlet.
    """

    beliefs: dict[str, Family]  # port -> (n,)
    log_z: np.ndarray  # (n,)
    standard_errors: dict[str, tuple[np.ndarray, ...]]  # port -> like Family.expected_statistics()
    covariances: dict[str, np.ndarray]  # port -> (n, q, q)
    chart_covariances: dict[str, np.ndarray]  # port -> (n, r, r)
    expected_kl: dict[str, np.ndarray]  # port -> (n,): the size of these errors in nats
    log_z_error: np.ndarray  # (n,)
    ess: np.ndarray  # (n,)
    pareto_k: np.ndarray  # (n,)
    failed: np.ndarray  # (n,) bool
    n_evaluations: int  # of the user's function

    def failed_at(self, port: str) -> np.ndarray:
        """The rows (n,) at which this port's belief is unknown: the whole row failed, or this direction alone."""
        return self.failed | ~np.isfinite(self.expected_kl[port])

    @property
    def label_noise(self) -> np.ndarray:
        """The largest relative standard error of a row over its known ports, ``sqrt(2 expected_kl)``; infinite if failed."""
        kl = np.stack(list(self.expected_kl.values()))
        worst = np.max(np.where(np.isfinite(kl), kl, 0.0), axis=0)
        return np.where(self.failed, np.inf, np.sqrt(2 * worst))


class Oracle(Protocol):
    """Whatever can answer for a black-box factor."""

    def ask(self, rng: np.random.Generator, sampler: Sampler, incoming: Mapping[str, Any]) -> Answer:
        """The beliefs of every direction, one row for each incoming tuple."""
        ...


def gather(parts: Sequence[tuple[np.ndarray, Answer]], n: int | None = None) -> Answer:
    """Put answers for disjoint sets of rows back into the order of the plate, and check that they are n if that is given."""
    order = np.argsort(np.concatenate([rows for rows, _ in parts]), kind="stable")
    answers = [a for _, a in parts]
    if n is not None and len(order) != n:
        raise ValueError("the parts do not cover the plate")
    if len(parts) == 1:
        return take_answer(answers[0], order)

    def join(values: list[Any]) -> Any:
        if isinstance(values[0], dict):
            return {k: join([v[k] for v in values]) for k in values[0]}
        if isinstance(values[0], tuple):
            return tuple(join([v[k] for v in values]) for k in range(len(values[0])))
        if isinstance(values[0], Family):
            return concatenate(values)
        return np.concatenate(values)

    joined = Answer(
        *(join([a[k] for a in answers]) for k in range(len(Answer._fields) - 1)),
        n_evaluations=sum(a.n_evaluations for a in answers),
    )
    return take_answer(joined, order)


def replace_rows(answer: Answer, rows: np.ndarray, by: Answer) -> Answer:
    """`answer` with `rows` taken from another answer; the evaluations of both count."""
    rest = np.setdiff1d(np.arange(len(answer.failed)), rows)
    parts = [(rows, by), (rest, take_answer(answer, rest))] if len(rest) else [(rows, by._replace(n_evaluations=0))]
    return gather(parts, len(answer.failed))._replace(n_evaluations=answer.n_evaluations + by.n_evaluations)


def take_answer(answer: Answer, rows: np.ndarray) -> Answer:
    """The answers of some rows."""

    def pick(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: pick(v) for k, v in value.items()}
        return tuple(pick(v) for v in value) if isinstance(value, tuple) else value[rows]

    return Answer(*(pick(v) for v in answer[:-1]), n_evaluations=answer.n_evaluations)
