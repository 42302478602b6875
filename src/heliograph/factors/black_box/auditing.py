"""Messages of operators that predict without saying how wrong they may be, checked against an oracle when a run ends.

A few rows of every direction are asked about, and nothing is learned from the answers. What the predictions of these rows were
wrong by stands for all of them (docs/decisions/0058).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from heliograph.families import concatenate
from heliograph.families.packing import join_plates
from heliograph.operators.protocol import Incoming, Reply, rows_of

__all__ = ["Audit", "Predicted", "audit"]

_ROWS = 8  # of a direction


class Predicted(NamedTuple):
    """A call of which some rows were predicted without a stated error."""

    factor: Any  # a BlackBox
    to: str
    incoming: Incoming
    reply: Reply

    @property
    def rows(self) -> np.ndarray:
        """The rows in question."""
        return np.flatnonzero(~self.reply.asked & ~self.reply.failed)


class Audit(NamedTuple):
    """What an oracle said of some predicted rows of one direction."""

    name: str  # of the factor
    to: str
    n_rows: int  # that were predicted
    n_checked: int
    kl: float  # the mean of what they were wrong by, in nats; infinite where one was no distribution
    root_kl: float  # the mean of its root

    @property
    def sentence(self) -> str:
        """In words."""
        wrong = (
            "not distributions, or beyond any measure"
            if np.isinf(self.kl)
            else f"wrong by {self.kl:.2g} nats on average"
        )
        rows = f"{self.n_checked} predicted message{'' if self.n_checked == 1 else 's'}"
        return f"{rows} of factor {self.name!r} to {self.to!r}, checked with the oracle, were {wrong}"


def audit(calls: Sequence[Predicted], oracle: Any) -> Audit | None:
    """Ask an oracle about some of the rows that were predicted in these calls of one direction; None if there are none."""
    rng = np.random.default_rng(0)  # of its own: whether a run is audited must not change what it draws
    which = np.concatenate([np.full(len(c.rows), k) for k, c in enumerate(calls)] or [np.zeros(0)]).astype(int)
    rows = np.concatenate([c.rows for c in calls] or [np.zeros(0)]).astype(int)
    if not len(rows):
        return None
    some = np.sort(rng.permutation(len(rows))[:_ROWS])
    picked = [(calls[k], rows[some[which[some] == k]]) for k in np.unique(which[some])]
    incoming: Mapping[str, Any] = join_plates([rows_of(c.incoming, r) for c, r in picked])
    sent = concatenate([c.reply.message[r] for c, r in picked])
    factor, to = calls[0].factor, calls[0].to
    answer = factor.ask(incoming, oracle=oracle)
    factor.n_asked += len(some)
    factor.n_evaluations += answer.n_evaluations
    known = ~answer.failed_at(to) & ~incoming[to].is_point
    if not known.any():
        return None
    truth, predicted = answer.beliefs[to][known], (sent * incoming[to])[known]
    proper = predicted.proper
    kl = np.full(int(known.sum()), np.inf)
    kl[proper] = np.maximum(truth[proper].kl(predicted[proper]) - answer.expected_kl[to][known][proper], 0.0)
    kl = np.where(np.isnan(kl), np.inf, kl)
    return Audit(factor.name, to, len(rows), len(kl), float(kl.mean()), float(np.sqrt(kl).mean()))
