"""The records of references: the question, the result, and the call of the user's function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self

import numpy as np

from heliograph.oracles.calling import call, evaluate
from heliograph.oracles.references.known_values import KnownValues
from heliograph.oracles.sampler import Sampler

__all__ = ["Question", "Reference", "values", "values_at"]


class Question(NamedTuple):
    """Rows of one factor whose beliefs are wanted."""

    rng: np.random.Generator
    sampler: Sampler
    unknown: Mapping[str, Any]  # the proper messages at the inputs that are not known, by port
    constants: Mapping[str, np.ndarray]  # the inputs that are
    out: Any  # the message at the output
    to: str | None  # the port in question; None asks for log Z
    known: KnownValues | None = None  # what was remembered of the function; None: it is called every time

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
    return _replaced(out.astype(float, copy=False))


def values_at(
    question: Question, u: np.ndarray, step: np.ndarray, inputs_at: Callable[[np.ndarray], dict[str, np.ndarray]]
) -> tuple[np.ndarray, np.ndarray | None, int]:
    """The same at places ``(k, n, d)`` on the charts of what is unknown, and how often the function was called.

    Parameters
    ----------
    question : the rows
    u : where
    step : ``(n, d)``, how far apart the nodes of each row are; a table serves it if it has looked as closely
    inputs_at : the unknown inputs at places ``(m, d)``
    """
    k, n, d = u.shape

    def called(at: np.ndarray, row: np.ndarray) -> np.ndarray:
        inputs = {name: a[row] for name, a in question.constants.items()} | inputs_at(at)
        out, bad = values(question, inputs, len(at))
        return out if bad is None else np.where(bad, np.inf, out)

    if question.known is None:
        inputs = {name: np.tile(a, (k, *[1] * (a.ndim - 1))) for name, a in question.constants.items()}
        out, bad = values(question, inputs | inputs_at(u.reshape(-1, d)), k * n)
        return out.reshape(k, n), None if bad is None else bad.reshape(k, n), k * n
    columns = [np.asarray(a, dtype=float).reshape(n, -1) for a in question.constants.values()]
    constants = np.concatenate(columns, axis=1) if columns else np.zeros((n, 0))
    name = tuple((port, type(m).__name__) for port, m in question.unknown.items())
    out, n_calls = question.known.look(name, question.sampler.output, u, step, constants, called)
    return *_replaced(out), n_calls


def _replaced(out: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    bad = ~np.isfinite(out)
    return (np.where(bad, 1.0, out), bad) if bad.any() else (out, None)
