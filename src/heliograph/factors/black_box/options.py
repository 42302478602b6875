"""How one run treats its black boxes, and what their messages may be wrong by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from heliograph.factors.black_box.auditing import Audit, Predicted, audit
from heliograph.factors.black_box.oracle_calls import Latest
from heliograph.operators.learned.decide import RARE, leverage, shared_unknowns
from heliograph.operators.protocol import Reply, Setting
from heliograph.oracles import Sampler
from heliograph.oracles.references import KnownValues, reference_of

__all__ = ["RunOptions"]


class Sampled(Protocol):
    """The part of a factor that is used here: its sampler, its values, and what is remembered of them."""

    sampler: Sampler
    form: tuple[str, ...]
    form_values: dict[tuple[str, ...], KnownValues]

    def evaluate(self, rng: np.random.Generator, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
        """The function at some inputs."""
        ...


@dataclass
class RunOptions:
    """How one run wants its black boxes to behave, handed to `send` with every call."""

    rng: np.random.Generator
    operator: Any = "learned"
    oracle: Any = None
    tolerance: float = 1e-3
    executor: Any = None
    deadline: float = np.inf  # by time.monotonic(): afterwards no message is asked that can be predicted
    n_factors: int = 1  # messages of black boxes in a sweep of the whole model, among which the tolerance is shared
    compared: bool = False  # whether what is found will be compared with runs at other numbers next to these
    shared: dict[int, Any] = field(default_factory=dict, repr=False)  # id of a factor -> graph.shared.Shared
    checked: set[int] = field(
        default_factory=set, repr=False
    )  # ids of factors whose functions were looked at in this run
    latest: dict[int, Latest] = field(default_factory=dict, repr=False)  # each factor's last answer, for all directions
    # what the messages of each direction may be wrong by, since the last estimate and at it
    _sweep: dict[tuple[int, str], _Errors] = field(default_factory=dict, repr=False)
    _last: dict[tuple[int, str], _Errors] = field(default_factory=dict, repr=False)
    _predicted: dict[tuple[int, str], list[Predicted]] = field(
        default_factory=dict, repr=False
    )  # without a stated error

    def setting(self, factor: Sampled) -> Setting:
        """What an operator needs to know of this run."""
        tolerance = self.tolerance / max(self.n_factors, 1)
        known = self.shared.get(id(factor))
        share, together = (1.0, 1) if known is None else (min(1.0, known.unknowns / known.size), known.together)
        reference = reference_of(factor.sampler, factor.form_values.setdefault(factor.form, KnownValues()))
        known_of = factor.sampler, factor.evaluate, reference
        return Setting(tolerance, *known_of, share, together, self.deadline, self.compared)

    def note(self, factor: Sampled, to: str, incoming: Mapping[str, Any], reply: Reply, setting: Setting) -> None:
        """Remember how wrong the messages of one call may be, which was made with this setting."""
        direction = id(factor), to
        before = self._sweep.get(direction, _NO_ERRORS)
        self._sweep[direction] = now = before.and_those_of(reply, incoming[to], setting)
        if before is _NO_ERRORS:
            self._predicted[direction] = []
        if np.isnan(now.nats):
            self._predicted[direction].append(Predicted(factor, to, incoming, reply))

    def error_estimate(self) -> float:
        """Nats that learned messages may have added to the posterior, by the latest message of every direction.

        Infinite where a message could not be had: what it would have been is unknown. NaN where an operator predicts
        without saying how wrong it may be, as all but the default one do.
        """
        self._last.update(self._sweep)
        self._sweep = {}
        errors = [e.joint() for e in self._last.values()]
        return float(np.inf) if np.inf in errors else float(sum(errors))

    def audits(self) -> list[Audit]:
        """Check some of the latest predictions that came without a stated error; `error_estimate` then knows what was found."""
        found: list[Audit] = []
        for direction, errors in self._last.items():
            checked = audit(self._predicted.get(direction, []), self.oracle) if np.isnan(errors.nats) else None
            if checked is not None:
                found.append(checked)
                sums = {"nats": checked.n_rows * checked.kl, "roots": checked.n_rows * checked.root_kl}
                self._last[direction] = errors._replace(**sums)
        return found


class _Errors(NamedTuple):
    """Sums over the messages of one direction in one sweep."""

    asked: float = 0.0  # nats of messages that an oracle answered: their errors are independent
    nats: float = 0.0  # of predicted messages
    roots: float = 0.0  # of their square roots: predictions of one regression err alike
    unknowns: float = 0.0  # unknowns that the messages share

    def and_those_of(self, reply: Reply, cavity: Any, setting: Setting) -> _Errors:
        """Add the messages of one more call."""
        kl, asked = reply.expected_kl, reply.asked
        if reply.failed.any():
            return self._replace(asked=np.inf)
        if kl is None:
            kl = np.where(asked, 0.0, np.nan)
        predicted = kl[~asked] if asked.any() else kl
        share = leverage(reply.message, cavity) if len(predicted) else None
        return _Errors(
            self.asked + float(kl[asked].sum()),
            self.nats + float(predicted.sum()),
            self.roots + float(np.sqrt(predicted).sum()),
            self.unknowns + shared_unknowns(share, len(kl), setting),
        )

    def joint(self) -> float:
        """The error that they may add to the posterior together."""
        coherent = (
            self.roots**2 / max(self.unknowns, 1e-12) if self.roots else 0.0
        )  # without shared unknowns any error is too large
        return RARE * (self.asked + max(coherent, self.nats) if not np.isnan(self.nats) else self.asked + np.nan)


_NO_ERRORS = _Errors()
