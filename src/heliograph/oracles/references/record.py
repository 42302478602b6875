"""The records of references: the question, the result, and the call of the user's function."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np

from heliograph.oracles.calling import call, evaluate
from heliograph.oracles.sampler import Sampler

__all__ = ["Question", "Reference", "values"]


class Question(NamedTuple):
    """Rows of one factor whose beliefs are wanted."""

    rng: np.random.Generator
    sampler: Sampler
    unknown: Mapping[str, Any]  # the proper messages at the inputs that are not known, by port
    constants: Mapping[str, np.ndarray]  # the inputs that are
    out: Any  # the message at the output
    to: str | None  # the port in question; None asks for log Z

    def some(self, rows: np.ndarray) -> Self:
        """The same about some of the rows."""
        unknown = {p: m[rows] for p, m in self.unknown.items()}
        constants = {p: a[rows] for p, a in self.constants.items()}
        return self._replace(unknown=unknown, constants=constants, out=self.out[rows])


class Reference(NamedTuple):
    """Reference beliefs of one port, as moments on the chart of their family."""

    moments: tuple[np.ndarray, np.ndarray]  # of the port in question: mean and variance (covariance for vectors)
    summaries: np.ndarray  # (n, s) numbers without a unit that say how hard each row is
    log_z: np.ndarray | None  # (n,); None unless that was the question
    doubt: np.ndarray  # (n,) nats by which the reference depends on its resolution
    n_evaluations: int
    # (n,) the doubt in rows where it bounds the error, as the nodes cover everything; None: nowhere
    sure: np.ndarray | None = None


def values(question: Question, inputs: dict[str, np.ndarray], n: int) -> tuple[np.ndarray, np.ndarray | None]:
    """The function at n samples, and where it gave no number (None: nowhere).

    Unlike an oracle, which draws where the mass is, a reference looks far out, where a function may well overflow.
    """
    rng, sampler = question.rng, question.sampler
    out = np.asarray(call(rng, sampler, inputs, n))
    if out.shape != (n,) or out.dtype.kind not in "fiub":
        out = evaluate(rng, sampler, inputs)  # the error that says what is wrong with a value
    out = out.astype(float, copy=False)
    bad = ~np.isfinite(out)
    return (np.where(bad, 1.0, out), bad) if bad.any() else (out, None)
