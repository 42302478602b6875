"""The default operator: learn the correction to a cheap reference, and ask while that may be wrong by too much.

What is learned is how the belief differs from a reference belief on the chart of its family (`chart.py`), by an exact
Gaussian process on what the operator sees of the messages (`sight.py`, `learned_process.py`). A row is asked about
when its expected KL, corrected by how such expectations fared (`calibration.py`), is above what one message may be wrong
by. Rows of a plate are asked in batches: the worst first, each as if those before it were known already.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from heliograph.errors import ModelError, OracleWarning
from heliograph.families import Family, concatenate
from heliograph.operators.calibration import CalibrationTable
from heliograph.operators.learned_process import Correction, design
from heliograph.operators.packing import part
from heliograph.operators.protocol import NOTHING_MORE, Ask, Incoming, Reply, Setting, State, rows_of
from heliograph.operators.sight import POINT, WILD, Sight, kind_key, kinds_of, look, rows_at

__all__ = ["Learned"]

LOG_Z = "log z"  # the name under which the log normaliser is learned, like one more direction

_BLOCK = 8192  # rows seen at once, so that a plate of millions needs bounded memory
_AUDITED_SHARE = 0.1  # audits at most, for every label


class Learned:
    """Ask, learn, and soon hardly ask, to a tolerance in nats.

    `reference` is "auto" (what the factor can have), "none" (the cavity), or a function of (rng, incoming, to) that
    gives moments on the charts. `start` labels are asked by a pivoted design before anything is predicted. Past `budget`
    labels a direction learns no more: what it does not know is asked every time. `audit` is the share of trusted
    messages that are checked by the oracle, as long as there are fewer of them than a tenth of the labels.
    `novelty` is the share of the prior variance above which a row is asked about whatever its expected KL, since the
    prior's size is itself only known where there are labels.
    """

    name: ClassVar[str] = "learned"

    def __init__(
        self,
        *,
        reference: Any = "auto",
        start: int = 20,
        budget: int = 1000,
        audit: float = 0.01,
        novelty: float = 0.3,
        caution: float = 1.0,
    ) -> None:
        if not (callable(reference) or reference in ("auto", "none")):
            raise ModelError(f"reference must be 'auto', 'none' or a function, not {reference!r}")
        if start < 2 or budget < start:
            raise ModelError(f"start must be 2 or more and budget no less than it, not {start} and {budget}")
        self.reference = reference
        self.start, self.budget, self.audit, self.novelty, self.caution = start, budget, audit, novelty, caution
        self.kinds: dict[str, dict[str, Correction]] = {}  # kind -> port -> what is known
        self.n_asked = 0
        self._said: set[str] = set()

    # ---- what a factor needs ------------------------------------------------------------------------------------
    @property
    def settings(self) -> dict[str, Any]:
        """What its maker needs to make it again."""
        named = {"reference": self.reference, "start": self.start, "budget": self.budget, "audit": self.audit}
        return named | {"novelty": self.novelty, "caution": self.caution}

    @property
    def key(self) -> str:
        """Under which a factor keeps it: operators of equal settings share what they learned."""
        plain = Learned().settings if self.settings != _DEFAULTS else self.settings
        told = ", ".join(f"{k}={v!r}" for k, v in self.settings.items() if v != plain[k])
        return f"{self.name}({told})" if told else self.name

    @property
    def empty(self) -> bool:
        """Whether it has not learned anything yet."""
        return not self.kinds

    def fresh(self) -> Learned:
        """One with the same settings that knows nothing."""
        return Learned(**self.settings)

    # ---- messages -----------------------------------------------------------------------------------------------
    def send(
        self, rng: np.random.Generator, to: str, incoming: Incoming, ask: Ask, setting: Setting = NOTHING_MORE
    ) -> Reply:
        """Messages to port `to`: predicted where certain enough for `setting.tolerance`, else asked and learned."""
        return _Call(self, rng, to, incoming, ask, setting).run()

    def correction(self, key: str, to: str, sight: Sight) -> Correction:
        """What is known about one direction of one kind of rows."""
        directions = self.kinds.setdefault(key, {})
        if to not in directions:
            q = sight.charts[to].n_outputs
            directions[to] = Correction(sight.inputs(to).shape[1], q, self.start)
        return directions[to]

    def refer(self, rng: np.random.Generator, incoming: Incoming, setting: Setting, to: str | None = None) -> Any:
        """Reference belief of one port (or all) of a plate of one kind; None where the cavity has to do."""
        if self.reference == "none":
            return None
        make = setting.reference if self.reference == "auto" else self.reference
        return None if make is None else make(rng, incoming, to)

    def learn(self, key: str, sight: Sight, answer: Any) -> None:
        """Take in an oracle's answer: one run teaches every direction. Rows at which it failed are left out."""
        for port, belief in answer.beliefs.items():
            if port not in sight.charts:
                continue
            chart, base, x = sight.charts[port], sight.base(port), sight.inputs(port)
            good = ~answer.failed & belief.proper & ~belief.is_point
            for a in base:
                good &= np.isfinite(a).reshape(len(a), -1).all(axis=1)
            if not good.any():
                continue
            base = tuple(a[good] for a in base)
            y = chart.gap(chart.moments(belief[good]), base)
            noise = chart.noise(belief[good], answer.chart_covariances[port][good], base)
            fine = np.isfinite(y).all(axis=1) & np.isfinite(noise).all(axis=1) & np.isfinite(x[good]).all(axis=1)
            known = self.correction(key, port, sight)
            room = self.budget - len(known)
            fine &= np.cumsum(fine) <= room
            known.learn(x[good][fine], y[fine], noise[fine])

    def say(self, what: str) -> None:
        """Warn, once."""
        if what not in self._said:
            self._said.add(what)
            warnings.warn(what, OracleWarning, stacklevel=4)

    # ---- trust --------------------------------------------------------------------------------------------------
    def calibration(self) -> dict[str, CalibrationTable]:
        """Expected against realised KL for every direction of every kind of rows that was predicted."""
        return {
            f"{to} | {key}": c.calibration.table()
            for key, directions in self.kinds.items()
            for to, c in directions.items()
            if len(c.calibration)
        }

    # ---- keeping ------------------------------------------------------------------------------------------------
    def state(self) -> State:
        """Every label, width and calibration pair."""
        arrays: dict[str, np.ndarray] = {}
        entries = []
        for k, (key, directions) in enumerate(self.kinds.items()):
            entries.append({"key": key, "ports": list(directions)})
            for j, c in enumerate(directions.values()):
                arrays |= {f"{k}/{j}/{name}": a for name, a in c.state().items()}
        return arrays, {"kinds": entries, "n_asked": self.n_asked}

    def restore(self, arrays: Mapping[str, np.ndarray], header: Mapping[str, Any]) -> None:
        """Take the place of the operator that gave this state."""
        kinds: dict[str, dict[str, Correction]] = {}
        for k, entry in enumerate(header["kinds"]):
            kinds[str(entry["key"])] = {
                str(port): Correction.from_state(part(arrays, f"{k}/{j}/"), self.start)
                for j, port in enumerate(entry["ports"])
            }
        self.kinds, self.n_asked = kinds, int(header["n_asked"])

    def __repr__(self) -> str:
        known = "; ".join(f"{to}: {len(c)}" for d in self.kinds.values() for to, c in d.items())
        return f"<operator {self.key}: labels {known or 'none'}>"


_DEFAULTS = Learned().settings


class _Call:
    """One call of `send`: what has been decided about each row so far."""

    def __init__(
        self, operator: Learned, rng: np.random.Generator, to: str, incoming: Incoming, ask: Ask, setting: Setting
    ) -> None:
        self.operator, self.rng, self.to, self.ask, self.setting = operator, rng, to, ask, setting
        self.incoming = incoming
        self.cavity: Family = incoming[to]
        self.n = len(self.cavity)
        self.tolerance = setting.tolerance * operator.caution
        self.parts: list[tuple[np.ndarray, Family]] = []  # rows and their beliefs
        self.asked = np.zeros(self.n, dtype=bool)
        self.failed = np.zeros(self.n, dtype=bool)
        self.expected_kl = np.zeros(self.n)
        self.log_variance: np.ndarray | None = None
        self.n_evaluations = 0
        self.learning, self.prediction = 0.0, 0.0

    def run(self) -> Reply:
        for start in range(0, self.n, _BLOCK):
            block = None if self.n <= _BLOCK else np.arange(start, min(start + _BLOCK, self.n))
            seen = rows_at(self.incoming, block)
            for kind, some in kinds_of(seen):
                rows = some if block is None else block if some is None else block[some]
                rows = np.arange(self.n) if rows is None else rows
                self._kind(kind, rows, rows_at(seen, some))
        return self._reply()

    def _kind(self, kind: dict[str, str], rows: np.ndarray, incoming: Incoming) -> None:
        if WILD in kind.values() or kind[self.to] == POINT:
            self._ask(rows, incoming)  # nothing to learn from: what an oracle makes of it is all there is
            return
        Plate(self, kind, rows, incoming).run()

    def _ask(self, rows: np.ndarray, incoming: Incoming, precision: float | None = None) -> Any:
        """Ask about rows; their beliefs are kept as the oracle gave them."""
        answer = self.ask(incoming) if precision is None else self.ask(incoming, precision)  # type: ignore[call-arg]
        self.take(rows, answer)
        return answer

    def take(self, rows: np.ndarray, answer: Any) -> None:
        """Keep what the oracle says of rows."""
        self.operator.n_asked += len(rows)
        self.asked[rows] = True
        self.failed[rows] = answer.failed
        self.expected_kl[rows] = np.where(answer.failed, 0.0, answer.expected_kl[self.to])
        self.parts.append((rows, answer.beliefs[self.to]))

    def _reply(self) -> Reply:
        if len(self.parts) == 1:
            belief = self.parts[0][1]
        else:
            order = np.concatenate([rows for rows, _ in self.parts])
            place = np.empty(self.n, dtype=int)
            place[order] = np.arange(len(order))  # of rows kept twice the later counts
            belief = concatenate([b for _, b in self.parts])[place] if self.n else self.cavity
        return Reply(
            belief / self.cavity,
            self.failed,
            self.asked,
            self.log_variance,
            self.expected_kl,
            n_evaluations=self.n_evaluations,
            seconds_learning=self.learning,
            seconds_prediction=self.prediction,
        )


class Plate:
    """The rows of one kind in one call: predict, ask for the worst, learn, and again until all are certain."""

    def __init__(self, call: _Call, kind: dict[str, str], rows: np.ndarray, incoming: Incoming) -> None:
        self.call, self.operator, self.to = call, call.operator, call.to
        self.rows, self.incoming = rows, incoming
        started = time.perf_counter()
        reference = self.operator.refer(call.rng, incoming, call.setting, self.to)
        if reference is not None:
            call.n_evaluations += reference.n_evaluations
        self.kind = kind
        self.sight = look(kind, incoming, reference)
        self.key = kind_key(kind, incoming, reference is not None)
        self.chart = self.sight.charts[self.to]
        self.x, self.base = self.sight.inputs(self.to), self.sight.base(self.to)
        self.known = self.operator.correction(self.key, self.to, self.sight)
        self.known.use()
        self.tolerance = call.tolerance
        self.open = np.ones(len(rows), dtype=bool)  # not asked in this call
        self.whole = True
        call.prediction += time.perf_counter() - started

    def run(self) -> None:
        """Settle every row."""
        audited = False
        while True:
            here = np.flatnonzero(self.open) if not self.whole else slice(None)
            if self.known.process is None:
                missing = self.operator.start - len(self.known)
                self._ask(np.flatnonzero(self.open)[self._design(here, missing)])
            else:
                chosen = self._predict(here)
                if not len(chosen) and not audited:
                    chosen, audited = self._audit(), True
                if not len(chosen):
                    break
                self._ask(chosen)
            if not self.open.any():
                return
        self._keep()

    def _design(self, here: Any, missing: int) -> np.ndarray:
        return design(self.x[here], self.known.inputs, missing)

    def _predict(self, here: Any) -> np.ndarray:
        """Predict the open rows; the numbers of those to ask about."""
        started = time.perf_counter()
        known, call = self.known, self.call
        x = self.x[here]
        base = tuple(a[here] for a in self.base)
        mean, variance, left = known.predict(x)
        factor = known.calibration.factor
        weights = self.chart.weights(mean, base)
        kl = np.einsum("nq,nq->n", weights, variance)
        kl *= factor
        self.mean, self.variance, self.kl, self.here = mean, variance, kl, here
        doubtful = (kl > self.tolerance) | (left > self.operator.novelty)
        call.prediction += time.perf_counter() - started
        if not doubtful.any():
            return np.zeros(0, dtype=int)
        room = max(1, known.due - len(known))  # the widths are chosen anew then, and with them who is uncertain
        limit = min(room, max(8, len(known) // 2))
        started = time.perf_counter()
        # both reasons to ask in one number that is linear in the variances, as the pivoting needs it
        signal = known.process.widths.signal  # type: ignore[union-attr]
        tolerance = max(self.tolerance, 1e-300)
        scores = weights * (factor / tolerance) + 1 / (self.operator.novelty * signal * signal.size)
        some = np.flatnonzero(doubtful)
        chosen = some[known.choose(x[some], scores[some], 1.0, limit)]
        if not len(chosen):
            chosen = some[[int(np.argmax(kl[some]))]]
        call.learning += time.perf_counter() - started
        return np.flatnonzero(self.open)[chosen] if not self.whole else chosen

    def _audit(self) -> np.ndarray:
        """Now and then a row that would be trusted."""
        operator, known = self.operator, self.known
        room = int(_AUDITED_SHARE * len(known)) - known.calibration.n_audits
        n = int(self.open.sum())
        if room <= 0 or not self.call.rng.random() < operator.audit * n:
            return np.zeros(0, dtype=int)
        self.auditing = True
        return self.call.rng.choice(np.flatnonzero(self.open), 1)

    auditing = False

    def _ask(self, chosen: np.ndarray) -> None:
        call, known = self.call, self.known
        incoming = rows_of(self.incoming, chosen)
        precision = np.sqrt(2 * self.tolerance / 10) if self.tolerance > 0 else None
        answer = call._ask(self.rows[chosen], incoming, precision)
        started = time.perf_counter()
        if known.process is not None:
            self._compare(chosen, answer)
        reference = self.sight.reference
        if reference is not None:  # of these rows, for every direction
            reference = self.operator.refer(call.rng, incoming, call.setting)
            call.n_evaluations += reference.n_evaluations
        self.operator.learn(self.key, look(self.kind, incoming, reference), answer)
        self.open[chosen] = False
        self.whole = False
        self.auditing = False
        call.learning += time.perf_counter() - started

    def _compare(self, chosen: np.ndarray, answer: Any) -> None:
        """What was expected of predictions, beside what the oracle says."""
        at = np.full(len(self.rows), -1)
        at[self.here] = np.arange(len(self.kl))
        place = at[chosen]
        belief = self.chart.belief(self.mean[place], tuple(a[chosen] for a in self.base))
        told = answer.beliefs[self.to]
        good = ~answer.failed & told.proper & ~told.is_point
        if not good.any():
            return
        realised = told[good].kl(belief[good])
        expected = self.kl[place][good] / self.known.calibration.factor + answer.expected_kl[self.to][good]
        self.known.calibration.note(expected, realised, self.auditing)

    def _keep(self) -> None:
        call = self.call
        started = time.perf_counter()
        base = tuple(a[self.here] for a in self.base)
        belief = self.chart.belief(self.mean, base)
        rows = self.rows if isinstance(self.here, slice) else self.rows[self.here]
        call.parts.append((rows, belief))
        call.expected_kl[rows] = self.kl
        if call.log_variance is None:
            call.log_variance = np.full((call.n, self.variance.shape[1]), np.nan)
        call.log_variance[rows] = np.log(np.maximum(self.variance, 1e-300))
        call.prediction += time.perf_counter() - started
