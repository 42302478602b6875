"""The default operator: learn the correction to a cheap reference, and ask while that may be wrong by too much.

What is learned is how the belief differs from a reference belief on the chart of its family (`chart.py`), by an exact
Gaussian process on what the operator sees of the messages (`sight.py`, `learned_process.py`). A row is asked about
when its expected KL, corrected by how such expectations fared (`calibration.py`), is above what one message may be wrong
by. The loop over a plate is in `learned_call.py`.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from heliograph.errors import ModelError, OracleWarning
from heliograph.operators.calibration import Calibration
from heliograph.operators.learned_call import EvidenceCall, MessageCall
from heliograph.operators.learned_process import Correction
from heliograph.operators.packing import part
from heliograph.operators.protocol import NOTHING_MORE, Ask, Incoming, Reply, Setting, State, rows_of
from heliograph.operators.sight import Sight, look

__all__ = ["Learned"]

LOG_Z = "log z"  # the name under which the log normaliser is kept, like one more port

_SLOW_CALL = 2.0  # seconds of processor time for the reference of one message: hopeless at every message
_SLOW_EVALUATION = (
    1e-4  # seconds of processor time an evaluation; far from both sides, so that a busy machine decides nothing
)


class Learned:
    """Ask, learn, and soon hardly ask, to a tolerance in nats.

    `reference` is "auto" (what the factor can have, unless it is too slow), "none" (the cavity), or a function of (rng,
    incoming, to) that gives moments on the chart and summaries. `start` labels are asked by a pivoted design before
    anything is predicted. Beyond `landmarks` labels a direction is a process on as many landmarks, helped by the nearest
    labels. Past `budget` labels it learns no more: what it does not know is asked every time.
    `audit` is the share of trusted messages that are checked by the oracle, as long as they are fewer than a tenth of
    the labels, and one more for every tenfold of trusted messages. A row whose best correlation c with a label's row has
    ``1 - c^2`` above `novelty` is asked about whatever its expected KL, since how large corrections are is itself only
    known where there are labels.
    """

    name: ClassVar[str] = "learned"

    def __init__(
        self,
        *,
        reference: Any = "auto",
        start: int = 20,
        budget: int = 20_000,
        landmarks: int = 800,
        audit: float = 0.01,
        novelty: float = 0.6,
    ) -> None:
        if not (callable(reference) or reference in ("auto", "none")):
            raise ModelError(f"reference must be 'auto', 'none' or a function, not {reference!r}")
        if start < 2 or budget < start or landmarks < start:
            raise ModelError(
                f"start must be 2 or more, budget and landmarks no less than it, not {start}, {budget} and {landmarks}"
            )
        if not (0 <= audit <= 1 and novelty > 0):
            raise ModelError(f"audit must lie in [0, 1] and novelty be positive, not {audit} and {novelty}")
        self.reference = reference
        self.start, self.budget, self.landmarks = start, budget, landmarks
        self.audit, self.novelty = audit, novelty
        self.kinds: dict[str, dict[str, Correction]] = {}  # kind -> port -> what is known
        self.n_asked = 0
        self.dear: bool | None = None  # whether the function is too slow to have a reference; None: not yet measured
        self.shortcuts: dict[str, Any] = {}  # port -> what answers plates that nothing is asked about any more
        self._said: set[str] = set()

    # ---- what a factor needs ------------------------------------------------------------------------------------
    @property
    def settings(self) -> dict[str, Any]:
        """What its maker needs to make it again."""
        named = {"reference": self.reference, "start": self.start, "budget": self.budget}
        return named | {"landmarks": self.landmarks, "audit": self.audit, "novelty": self.novelty}

    @property
    def key(self) -> str:
        """Under which a factor keeps it: operators of equal settings share what they learned."""
        told = ", ".join(f"{k}={v!r}" for k, v in self.settings.items() if v != _DEFAULTS[k])
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
        return MessageCall(self, rng, to, incoming, ask, setting).run()

    def log_z(
        self, rng: np.random.Generator, incoming: Incoming, ask: Ask, setting: Setting = NOTHING_MORE
    ) -> np.ndarray:
        """The log normaliser of every tuple, learned from the same answers; asked where its error may be too large."""
        return EvidenceCall(self, rng, incoming, ask, setting).run()

    def correction(self, key: str, to: str | None, sight: Sight) -> Correction:
        """What is known about one direction of one kind of rows."""
        directions = self.kinds.setdefault(key, {})
        name = LOG_Z if to is None else to
        if name not in directions:
            directions[name] = Correction(sight.inputs.shape[1], sight.chart.n_outputs, self.start, self.landmarks)
        return directions[name]

    def refer(self, rng: np.random.Generator, incoming: Incoming, setting: Setting, to: str | None) -> Any:
        """Reference of one port (None: of log Z) of a plate of one kind; None where the cavity has to do."""
        if self.reference == "none":
            return None
        if callable(self.reference):
            return self.reference(rng, incoming, to)
        if setting.reference is None or self.dear:
            return None
        if self.dear is None:
            self.dear = _too_slow(rng, incoming, setting.reference, to)
            if self.dear:
                return None
        return setting.reference(rng, incoming, to)

    def learn(
        self,
        rng: np.random.Generator,
        key: str,
        kind: dict[str, str],
        incoming: Incoming,
        answer: Any,
        setting: Setting,
        referred: bool,
    ) -> int:
        """Take in an oracle's answer: one run teaches every direction. Rows at which it failed are left out.

        Gives the number of evaluations that the references of these rows cost.
        """
        n_evaluations = 0
        for to in (*answer.beliefs, None):
            if to is not None and (to not in kind or kind[to] == "point"):
                continue
            reference = self.refer(rng, incoming, setting, to) if referred else None
            if reference is not None:
                n_evaluations += reference.n_evaluations
            sight = look(kind, incoming, to, reference)
            chart = sight.chart
            if to is None:
                told, errors, kl = answer.log_z, answer.log_z_error**2, answer.log_z_error**2
                good = ~answer.failed & np.isfinite(told)
            else:
                told, errors, kl = answer.beliefs[to], answer.chart_covariances[to], answer.expected_kl[to]
                good = ~answer.failed_at(to) & told.proper & ~told.is_point
            known = self.correction(key, to, sight)
            good &= np.isfinite(sight.inputs).all(axis=1)
            good &= np.cumsum(good) <= self.budget - len(known)
            if not good.any():
                continue
            base = tuple(a[good] for a in sight.base)
            y = chart.gap(chart.moments(told[good]), base)
            noise = chart.noise(told[good], errors[good], base)
            fine = np.isfinite(y).all(axis=1) & np.isfinite(noise).all(axis=1)
            excess = None if sight.excess is None else (sight.excess[good] + y[:, 1])[fine]
            scale = None if sight.scale is None else sight.scale[good][fine]
            known.learn(sight.inputs[good][fine], y[fine], noise[fine], kl[good][fine], scale, excess)
        return n_evaluations

    def say(self, what: str) -> None:
        """Warn, once."""
        if what not in self._said:
            self._said.add(what)
            warnings.warn(what, OracleWarning, stacklevel=6)

    # ---- trust --------------------------------------------------------------------------------------------------
    def calibration(self) -> dict[str, Calibration]:
        """Expected against realised KL for every direction of every kind of rows that was predicted.

        Each prints as a table, and draws itself with ``.plot(axes)``.
        """
        return {
            f"{to} | {key}": c.calibration
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
        return arrays, {"kinds": entries, "n_asked": self.n_asked, "dear": self.dear}

    def restore(self, arrays: Mapping[str, np.ndarray], header: Mapping[str, Any]) -> None:
        """Take the place of the operator that gave this state."""
        kinds: dict[str, dict[str, Correction]] = {}
        for k, entry in enumerate(header["kinds"]):
            kinds[str(entry["key"])] = {
                str(port): Correction.from_state(part(arrays, f"{k}/{j}/"), self.start, self.landmarks)
                for j, port in enumerate(entry["ports"])
            }
        dear = header["dear"]
        self.shortcuts = {}
        self.kinds, self.n_asked, self.dear = kinds, int(header["n_asked"]), None if dear is None else bool(dear)

    def __repr__(self) -> str:
        known = "; ".join(f"{to}: {len(c)}" for d in self.kinds.values() for to, c in d.items())
        return f"<operator {self.key}: labels {known or 'none'}>"


_DEFAULTS = Learned().settings


def _too_slow(rng: np.random.Generator, incoming: Incoming, refer: Any, to: str | None) -> bool:
    """Whether a reference at every message would cost more than it saves: one row first, then a handful.

    The limits are far from what a function of a few array operations takes, so that a busy machine changes nothing.
    """
    for rows in (1, 32):
        some = rows_of(incoming, slice(0, rows))
        started = time.perf_counter()
        reference = refer(rng, some, to)
        seconds = time.perf_counter() - started
        if reference is None:
            return False
        limit = max(_SLOW_CALL, _SLOW_EVALUATION * reference.n_evaluations)
        if seconds > limit:  # once more: the first call of a function may load or compile something
            started = time.perf_counter()
            refer(rng, some, to)
            if time.perf_counter() - started > limit:
                return True
    return False
