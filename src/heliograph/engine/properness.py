"""The policy for messages that are not distributions, all of it in this file.

``keep mean``: send the nearest message that leaves the belief's mean where it is and adds no negative precision
(clipping the precision alone moves the mean and ruins the posterior). ``skip``: keep the old message. ``allow``: send
it as it is; improper messages are valid values of the algebra, and exact EP has fixed points that contain some. ``auto``:
``allow`` for exact messages; for estimates (sampled or learned) ``keep mean`` where that changes the belief by no more than
the estimate may be wrong by, or where no error is known, and ``allow`` where the message is improper by more than its error
(a tilted distribution of two modes is wider than its cavity).

Whatever the policy, a message that is not finite or would make the receiving belief improper where it was proper is skipped.
And no belief loses more than three quarters of its precision (the shape and rate of a Gamma, the counts of a Beta or Dirichlet) in
one sweep: what a formula sends to such an entry is shortened, and a sweep in which that happened is not the last.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from heliograph.families import Beta, Dirichlet, Family, Gamma, Gaussian, MultivariateGaussian

__all__ = ["POLICIES", "PolicyResult", "allowed_step", "apply_policy", "keeps_enough", "lowers"]

POLICIES = ("auto", "keep mean", "allow", "skip")

_BEYOND_NOISE = 2.0  # times what an estimate may be wrong by: a change of the belief above this is more than its noise
# of its precision, that a belief keeps in a sweep: enough to go anywhere in a few, too much to overshoot
_LEAST_KEPT = 0.25

# the natural parameters that must stay positive, each with what is added to it
_STRENGTHS: dict[type[Family], tuple[tuple[int, float], ...]] = {
    Gaussian: ((1, 0.0),),
    Gamma: ((0, 1.0), (1, 0.0)),
    Beta: ((0, 1.0), (1, 1.0)),
    Dirichlet: ((0, 1.0),),
}


class PolicyResult(NamedTuple):
    """Messages after the policy, and which entries kept their old one."""

    message: Family
    n_improper: int  # messages that were not distributions (uniform ones are fine)
    skipped: np.ndarray | None = None  # entries where the old message was kept; None: nowhere

    @property
    def n_skipped(self) -> int:
        """The number of entries that kept their old message."""
        return 0 if self.skipped is None else int(self.skipped.sum())


def apply_policy(
    new: Family, old: Family, cavity: Family | None, policy: str, error: np.ndarray | None = None
) -> PolicyResult:
    """Apply the policy to a plate of new messages.

    `cavity` is the message that came in from the receiver (None where the factor did not need it). `error` holds the
    nats that each message may be wrong by: with it, the mean is kept only where that changes no more than they are.
    """
    if _all_proper_gaussians(new):
        return PolicyResult(new, 0)
    message, good = new, new.finite
    improper = good & ~new.proper & ~new.is_uniform
    skip = ~good
    if policy == "keep mean":
        if cavity is not None and improper.any():
            message = _keep_mean_within(new, cavity, improper, error)
    elif policy == "skip":
        skip |= improper
    if cavity is not None and improper.any():
        belief = message * cavity
        skip |= good & cavity.proper & ~belief.proper
    if not skip.any():
        return PolicyResult(message, int(improper.sum()))
    return PolicyResult(old.where(skip, message), int(improper.sum()), skip)


def lowers(new: Family, old: Family) -> bool:
    """Return whether a plate of new messages takes precision from any receiver, compared with the old ones."""
    return any((new.naturals[k] < old.naturals[k]).any() for k, _ in _STRENGTHS.get(type(new), ()))


def keeps_enough(new: np.ndarray, old: np.ndarray, rest: np.ndarray) -> bool:
    """Return whether beliefs that hear Gaussian messages of these precisions besides a `rest` certainly keep a quarter of theirs.

    They do where the messages themselves keep as much, and no rest is improper.
    """
    return bool(rest.min(initial=0.0) >= 0.0 and (new >= _LEAST_KEPT * old).all())


def allowed_step(before: Family, now: Family, after: Family) -> np.ndarray | None:
    """How far each entry may go from `now` to `after`, so that it keeps a quarter of its precision; None: all the way.

    Parameters
    ----------
    before
        The beliefs at the beginning of the sweep; those that were improper may go anywhere.
    now
        The beliefs before the new messages of one plate.
    after
        The beliefs with them.
    """
    step: np.ndarray | None = None
    for k, offset in _STRENGTHS.get(type(after), ()):
        a, c = before.naturals[k], after.naturals[k]
        a, c = (a + offset, c + offset) if offset else (a, c)
        low = _LEAST_KEPT * a
        short = c < low
        if not short.any():
            continue
        was = before.proper  # what a prior has not reached yet is of no strength that could be lost
        b = now.naturals[k] + offset
        short &= (c < b) & (was if c.ndim == was.ndim else was[..., None])
        if not short.any():
            continue
        part = np.where(short, np.clip((b - low) / np.where(short, b - c, 1.0), 0.0, 1.0), 1.0)
        part = part.min(axis=-1) if part.ndim > after.ndim else part
        step = part if step is None else np.minimum(step, part)
    return step


def _all_proper_gaussians(message: Family) -> bool:
    """Return whether nothing needs a policy, seen at little cost in the most common case."""
    if not isinstance(message, Gaussian) or message.point is not None:
        return False
    shift, precision = message.naturals
    return precision.min(initial=np.inf) >= 0 and math.isfinite(precision.sum()) and math.isfinite(shift.sum())


def _keep_mean_within(new: Family, cavity: Family, improper: np.ndarray, error: np.ndarray | None) -> Family:
    """Keep the mean where a message is improper, but not where it is so by more than its error."""
    kept = _keep_mean(new, cavity, improper)
    if error is None:
        return kept
    rows = np.flatnonzero(improper)
    belief, instead = (new * cavity)[rows], (kept * cavity)[rows]
    usable = belief.proper & instead.proper
    gap = np.full(len(rows), 0.0)
    gap[usable] = belief[usable].kl(instead[usable])
    certain = np.zeros(len(improper), dtype=bool)
    certain[rows] = gap > _BEYOND_NOISE * error[rows]
    return new.where(certain, kept)


def _keep_mean(new: Family, cavity: Family, improper: np.ndarray) -> Family:
    belief = new * cavity
    if isinstance(new, Gaussian):
        ok = improper & (cavity.naturals[1] > 0) & (belief.naturals[1] > 0)
        mean = np.divide(belief.naturals[0], belief.naturals[1], out=np.zeros(new.shape), where=ok)
        shift = mean * cavity.naturals[1] - cavity.naturals[0]
        return Gaussian.from_naturals(
            (np.where(ok, shift, new.naturals[0]), np.where(ok, 0.0, new.naturals[1])), new.point
        )
    if isinstance(new, MultivariateGaussian):
        return _keep_vector_mean(new, cavity, belief, improper)
    return new  # the others may be improper, which does no harm while the belief is proper


def _keep_vector_mean(new: Family, cavity: Family, belief: Family, improper: np.ndarray) -> Family:
    shift, precision = (a.copy() for a in new.naturals)
    for i in np.argwhere(improper & belief.proper & cavity.proper):
        at = tuple(i)
        unit = np.sqrt(np.diag(cavity.naturals[1][at]))  # what is nearest must not hang on the units of the components
        values, vectors = np.linalg.eigh(precision[at] / unit[:, None] / unit)
        kept = unit[:, None] * ((vectors * np.maximum(values, 0.0)) @ vectors.T) * unit
        mean = np.linalg.solve(belief.naturals[1][at], belief.naturals[0][at])
        precision[at] = kept
        shift[at] = (cavity.naturals[1][at] + kept) @ mean - cavity.naturals[0][at]
    return new.from_naturals((shift, precision), new.point)
