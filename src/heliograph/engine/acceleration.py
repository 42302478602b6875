"""Acceleration of slow runs: jumps to where the beliefs of the last sweeps are heading (Anderson 1965).

Sweeps that creep, or circle, around a fixed point move by nearly linear maps. The combination of the last few states (weights
that add up to 1) whose moves cancel best is near to it. Messages are combined as their natural parameters; the weights come
from the moves of the beliefs, in units of their own widths, so that no unit matters (docs/decisions/0046).

A jump is a proposal. Between two of them are two plain sweeps, by which convergence is judged as ever; a jump after which a
sweep breaks a belief, or moves the beliefs more than before, is undone, and the next one waits.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple, TypeVar

import numpy as np

from heliograph.engine.convergence import Nats
from heliograph.engine.sweep_info import SweepInfo
from heliograph.engine.tables import Snapshot, Tables
from heliograph.families import Family
from heliograph.numerics.least_squares import least_squares

__all__ = ["Jumps"]

F = TypeVar("F", bound=Family)

_PAIRS = 6  # sweeps that are remembered
_FEWEST = 4  # of these, the fewest that a jump is computed from
_BETWEEN = 2  # plain sweeps between two jumps
_AT_THE_END = 4  # the same where the run could end: what is still to come must show in plain sweeps
_SLOW = 0.1  # the change of a sweep over that of the sweep before it, from which on a run is slow
_SAVED = 3  # a jump must save so many plain sweeps: it costs one, and the time of another
# nats: a sweep that moves a belief more is not near to any fixed point, and shows nothing about the way there
_NEAR = 0.5
_WAIT = 6  # sweeps without a jump after one that was undone
_WORSE = 2.0  # times the change before a jump, above which it is undone
_RIDGE = 1e-8  # of the largest singular value of the moves: less than this is rounding
_LEAST_MOVES = 3  # sweeps that a jump uses where the weights of all remembered ones are too large
_LARGEST = 1e3  # larger weights extrapolate too far to be trusted
_ENTRIES = 20_000  # entries that the weights are found from: in a larger model, those that the last sweep moved most


class _Pair(NamedTuple):
    """One sweep: the beliefs before and after it, the messages after it, and the step."""

    before: list[Family]
    after: list[Family]
    sent: Snapshot
    step: float
    change: float
    nats: Nats  # by which it moved every entry


class Jumps:
    """The memory of a run's last sweeps, and the state that it suggests."""

    def __init__(self, enabled: bool) -> None:
        self._enabled = enabled
        self._pairs: deque[_Pair] = deque(maxlen=_PAIRS)
        self._since = 0  # plain sweeps since the last jump
        self._wait = 0
        self._change = np.inf  # before the last jump

    def note(
        self, before: list[Family], after: list[Family], tables: Tables, step: float, info: SweepInfo, nats: Nats
    ) -> None:
        """Remember a sweep that was not undone; where messages were shortened, it shows nothing about the way.

        `nats` is what the sweep moved every entry by.
        """
        if not self._enabled:
            return
        if info.n_shortened:
            self._pairs.clear()
        else:
            self._pairs.append(_Pair(before, after, tables.snapshot(copy=False), step, info.change, nats))
        self._since += 1
        self._wait = max(self._wait - 1, 0)

    def suggested(self, limit: float) -> Snapshot | None:
        """The state to jump to, or None where it is not time for one; `limit` is the change at which beliefs have settled."""
        pairs = [p for p in self._pairs if p.change < _NEAR]
        if len(pairs) < _FEWEST or pairs[-1] is not self._pairs[-1] or self._wait:
            return None
        if self._since < (_BETWEEN if pairs[-1].change > limit else _AT_THE_END):
            return None
        if not _worth_while(pairs[-3].change, pairs[-1].change, limit):
            return None
        chosen = _that_moved_most(pairs[-1])
        known: _Moments = {}
        weights = _weights([_move(p, pairs[-1].after, chosen, known) for p in pairs])
        if weights is None:
            return None
        self._change, self._since = pairs[-1].change, 0
        return _combined([p.sent for p in pairs], weights)

    def missed(self, change: float, broken: bool) -> bool:
        """Return whether the sweep after a jump shows that it missed; the memory is cleared then."""
        if self._since or not (broken or change > _WORSE * self._change):
            return False
        self.forget()
        return True

    def forget(self) -> None:
        """Forget all sweeps, and wait for a while before the next jump."""
        self._pairs.clear()
        self._wait, self._since, self._change = _WAIT, 1, np.inf


def _worth_while(before: float, now: float, limit: float) -> bool:
    """Return whether plain sweeps at the rate of the last two, which took the change from `before` to `now`, would take long."""
    if not 0.0 < _SLOW**2 * before < now:
        return False
    return not limit < now <= limit * (before / now) ** (0.5 * _SAVED)


def _that_moved_most(pair: _Pair) -> list[np.ndarray | None]:
    """The entries of every belief from which weights are found; None for all of them."""
    if sum(b.size for b in pair.after) <= _ENTRIES:
        return [None] * len(pair.after)
    moved = zip(pair.nats, pair.after, strict=True)
    nats = [np.zeros(b.size) if n is None else np.nan_to_num(n, nan=np.inf).ravel() for n, b in moved]
    every = np.concatenate(nats)
    least = np.partition(every, len(every) - _ENTRIES)[len(every) - _ENTRIES]
    return [np.flatnonzero(one >= least) for one in nats]


_Moments = dict[tuple[int, int], tuple[np.ndarray, np.ndarray]]  # of a belief's chosen entries, by variable and belief


def _move(pair: _Pair, at: list[Family], chosen: list[np.ndarray | None], known: _Moments | None = None) -> np.ndarray:
    """How a whole step would have moved the beliefs: means in units of the sds that they have `at` the last, and log variances.

    `known` keeps moments from one pair to the next: where one sweep ended, the next one began.
    """
    known = {} if known is None else known
    parts: list[np.ndarray] = []
    for k, (some, *beliefs) in enumerate(zip(chosen, pair.before, pair.after, at, strict=True)):
        for x in beliefs:
            if (k, id(x)) not in known:
                known[k, id(x)] = (x if some is None else x.reshape(x.size)[some]).chart_moments()
        (m, v), (n, w), (_, u) = (known[k, id(x)] for x in beliefs)
        if v.shape != m.shape:  # covariances
            v, w, u = (np.diagonal(x, axis1=-2, axis2=-1) for x in (v, w, u))
        fine = (u > 0) & (v > 0) & (w > 0) & np.isfinite(u + v + w + m + n)
        u, v, w = (np.where(fine, x, 1.0) for x in (u, v, w))
        parts += [np.where(fine, (n - m) / np.sqrt(u), 0.0).ravel(), np.where(fine, 0.5 * np.log(w / v), 0.0).ravel()]
    return np.concatenate(parts) / pair.step


def _weights(moves: list[np.ndarray]) -> np.ndarray | None:
    """Numbers that add up to 1 and make the sum of the moves smallest; None where there are none of reasonable size."""
    f = np.stack(moves, axis=1)
    if not np.isfinite(f).all():
        return None
    for first in range(f.shape[1] - _LEAST_MOVES + 1):  # moves that are all alike add only noise
        last = f[:, first:]
        # as differences from each move to the next: nothing is squared, so that slow ways show beside fast ones
        share = least_squares(last[:, 1:] - last[:, :-1], last[:, -1], _RIDGE)
        weights = np.append(share, 1.0) - np.append(0.0, share)
        if np.abs(weights).max() <= _LARGEST:
            return np.append(np.zeros(first), weights)
    return None


def _combined(states: list[Snapshot], weights: np.ndarray) -> Snapshot:
    """The weighted sum of states, as natural parameters; point masses, and what is not finite, as in the last one."""
    sent, scattered = states[-1]
    return Snapshot(
        {k: _sum([s.sent[k] for s in states], weights) for k in sent},
        {k: _sum([s.scattered[k] for s in states], weights) for k in scattered},
    )


def _sum(messages: list[F], weights: np.ndarray) -> F:
    last = messages[-1]
    if any(m.point is not None for m in messages) or all(m is last for m in messages):
        return last
    naturals: list[np.ndarray] = []
    for parts in zip(*(m.naturals for m in messages), strict=True):
        with np.errstate(invalid="ignore"):
            total: np.ndarray = weights[0] * parts[0]
            term = np.empty_like(total)  # fresh memory for each would take longer than the arithmetic
            for w, a in zip(weights[1:], parts[1:], strict=True):
                total += np.multiply(a, w, out=term)
        fine = np.isfinite(total)
        naturals.append(total if fine.all() else np.where(fine, total, parts[-1]))
    return last.from_naturals(tuple(naturals))
