"""The logistic factors: ``p = sigmoid(z)`` as a deterministic node, and the Bernoulli likelihood it makes for a label."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.special import betaln, expit, log_expit, polygamma, psi

from heliograph.factors.base import Factor, Incoming
from heliograph.factors.incoming import as_message
from heliograph.factors.integrals.label import label_log_z, label_site
from heliograph.factors.integrals.logistic import logistic_gap, logistic_tilt
from heliograph.factors.integrals.tilt import Tilt, cavity_of, gaussian_site, mixed
from heliograph.factors.labelled import OfScore
from heliograph.families import Bernoulli, Beta, Family, Gaussian

__all__ = ["Logistic", "LogisticBernoulli"]

_FARTHEST = 300.0
_SMALLEST = 1e-130
_ROUGH = 9.0  # digits of a rough integral (chosen after six had left 7e-4 nats of 1e4 x 50, decision 0048)


class LogisticBernoulli(OfScore):
    """``P(y = 1) = sigmoid(z)``.

    A soft y mixes both labels. An improper cavity of z leaves nothing to normalise (the sigmoid tends to 1 on one
    side), unless its precision is 0 and its shift falls there more slowly than the label rises on the other: then the
    integral is a Beta function.

    >>> LogisticBernoulli().belief("z", {"z": Gaussian(-1.0, 1.0), "y": Bernoulli(1.0)})
    Gaussian(mean -0.4132, variance 0.8292)
    """

    name = "logistic_bernoulli"
    how: ClassVar = {"z": "quadrature", "y": "quadrature"}

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        z, y = as_message(self, incoming, "z"), as_message(self, incoming, "y")
        if to == "y":
            m, v, known = (a.reshape(-1) for a in cavity_of(z))
            yes, no = _both_labels(m, v, power)
            odds = np.where(known, yes.log_z - no.log_z, 0.0)
            return Bernoulli.from_log_odds(odds.reshape(z.shape), strict=False)
        if power == 1.0 and y.point is not None:
            label = 2.0 * y.point - 1.0
            cavity = _all_alike(z)
            # the fast path of a logistic regression; a missing label is NaN, which a sum of squares shows
            if cavity is not None and np.vdot(label, label) == label.size:
                m, v = cavity
                if m.ndim == 1 == label.ndim:
                    return Gaussian.from_naturals(label_site(m, v, label))
                flat = label_site(m.reshape(-1), v.reshape(-1), label.reshape(-1))
                return Gaussian.from_naturals(tuple(a.reshape(z.shape) for a in flat))
        return self._slow_message(z, y, power)

    def rough_site(self, incoming: Incoming, m: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """By a rule of a quarter of the nodes."""
        label = 2.0 * incoming["y"].point - 1.0
        return label_site(m, v, label, _ROUGH) if np.vdot(label, label) == label.size else None

    def _slow_message(self, z: Gaussian, y: Bernoulli, power: float) -> Gaussian:
        """Soft or missing labels, point masses and improper cavities of z, powers."""
        m, v, known = (a.reshape(-1) for a in cavity_of(z))
        odds = np.broadcast_to(y.log_odds, z.shape).reshape(-1)
        shift, precision = np.zeros(m.size), np.zeros(m.size)
        hard = known & np.isinf(odds)
        if hard.any():
            label = np.sign(odds[hard])
            if power == 1.0:
                shift[hard], precision[hard] = label_site(m[hard], v[hard], label)
            else:
                tilt = logistic_tilt(m[hard], v[hard], power * (label > 0), power * (label < 0))
                shift[hard], precision[hard] = gaussian_site(m[hard], v[hard], tilt)
        soft = known & ~hard & ((odds != 0) | (power != 1.0))  # y unknown: sigmoid(z) + sigmoid(-z) = 1 says nothing
        if soft.any():
            tilt = _soft(m[soft], v[soft], odds[soft], power)
            shift[soft], precision[soft] = gaussian_site(m[soft], v[soft], tilt)
        if not known.all():
            label = np.where(np.isinf(odds), np.sign(odds), 0.0)
            wild = _wild_site(z, power * (label > 0), power * (label < 0))
            shift, precision = np.where(known, shift, wild[0]), np.where(known, precision, wild[1])
        return Gaussian.from_naturals((shift.reshape(z.shape), precision.reshape(z.shape)))

    def draw(self, rng: np.random.Generator, incoming: Incoming) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Labels given the score, without the quadrature that a message to y takes."""
        z = incoming["z"].mean
        p = expit(z)
        return (rng.random(p.shape) < p) * 1.0, p, p * expit(-z)

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the probability of y."""
        z, y = as_message(self, incoming, "z"), as_message(self, incoming, "y")
        m, v, known = (a.reshape(-1) for a in cavity_of(z))
        odds = np.broadcast_to(y.log_odds, z.shape).reshape(-1)
        if np.isinf(odds).all() and power == 1.0:
            log_z = label_log_z(m, v, np.sign(odds))
        else:
            yes, no = _both_labels(m, v, power)
            log_z = np.logaddexp(log_expit(odds) + yes.log_z, log_expit(-odds) + no.log_z)
        if not known.all():
            label = np.where(np.isinf(odds), np.sign(odds), 0.0)
            log_z = np.where(known, log_z, _wild_log_z(z, power * (label > 0), power * (label < 0)))
        return log_z.reshape(z.shape)


class Logistic(Factor):
    """``p = sigmoid(z)``: the belief of z is its cavity times the Beta message at sigmoid(z), without a Jacobian.

    Under a uniform cavity of z the integrals are Beta functions of a - 1 and b - 1; where these do not exist, and for a
    cavity of negative precision, the message is uniform.

    >>> Logistic().belief("z", {"z": Gaussian(1.2, 2.5), "p": Beta(0.2, 1.8)})  # a + b = 2: the cavity, moved
    Gaussian(mean -0.8, variance 2.5)
    """

    name = "logistic"
    families: ClassVar = {"z": (Gaussian,), "p": (Beta,)}
    how: ClassVar = {"z": "quadrature", "p": "quadrature"}

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        z, p = as_message(self, incoming, "z"), as_message(self, incoming, "p")
        return self._belief_of_p(z, p) / p if to == "p" else self._to_z(z, p)

    def _to_z(self, z: Gaussian, p: Beta) -> Gaussian:
        m, v, known = (a.reshape(-1) for a in cavity_of(z))
        a, b = (np.broadcast_to(n, z.shape).reshape(-1) for n in p.naturals)
        shift, precision = np.zeros(m.size), np.zeros(m.size)
        labels = _labels(a, b)
        fast, slow = known & labels, known & ~labels & ((a != 0) | (b != 0))
        if fast.all():
            shift, precision = label_site(m, v, a - b)
        elif fast.any():
            shift[fast], precision[fast] = label_site(m[fast], v[fast], (a - b)[fast])
        if slow.any():
            tilt = logistic_tilt(m[slow], v[slow], a[slow], b[slow])
            shift[slow], precision[slow] = gaussian_site(m[slow], v[slow], tilt)
        if not known.all():
            wild = _wild_site(z, a, b)
            shift, precision = np.where(known, shift, wild[0]), np.where(known, precision, wild[1])
        point = None
        if p.point is not None:
            at = p.point.reshape(-1)
            point = (_log(at) - _log(1.0 - at)).reshape(z.shape)
            shift, precision = np.where(np.isnan(at), shift, 0.0), np.where(np.isnan(at), precision, 0.0)
        return Gaussian.from_naturals((shift.reshape(z.shape), precision.reshape(z.shape)), point)

    def belief(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        """The projected tilted distribution of z or p."""
        if to == "p":
            return self._belief_of_p(as_message(self, incoming, "z"), as_message(self, incoming, "p"))
        return super().belief(to, incoming, power)

    def _belief_of_p(self, z: Gaussian, p: Beta) -> Beta:
        """Matches ``E log p`` and ``E log(1 - p)``; where the tilted density cannot be normalised, the message p itself."""
        m, v, known = (x.reshape(-1) for x in cavity_of(z))
        a, b = (np.broadcast_to(n, z.shape).reshape(-1) for n in p.naturals)
        mean, gap = logistic_gap(m, v, a, b)
        soft = ~(known & (v == 0))
        # a probability below exp(-300) is held there: the other parameter of its Beta would overflow
        mean = np.where(soft, np.clip(mean, -_FARTHEST, _FARTHEST), mean)
        belief = Beta.from_mean_logit_and_gap(mean, np.where(soft, np.maximum(gap, _SMALLEST), 0.0), strict=False)
        if not known.all():
            # exp(shift z) times the Beta message is a Beta on the logit's axis
            _, good, wild_a, wild_b = _wild(z, a, b)
            naturals = np.where(good, wild_a - 1.0, a), np.where(good, wild_b - 1.0, b)
            mixed_in = tuple(np.where(known, n, w) for n, w in zip(belief.naturals, naturals, strict=True))
            belief = Beta.from_naturals(mixed_in, belief.point)
        belief = belief.reshape(z.shape)
        if p.point is None:
            return belief
        hard = p.is_point
        naturals = tuple(np.where(hard, 0.0, n) for n in belief.naturals)
        soft = np.nan if belief.point is None else belief.point
        return Beta.from_naturals(naturals, np.where(hard, p.point, soft))

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the integral of both messages at ``p = sigmoid(z)``; infinite where it diverges."""
        z, p = as_message(self, incoming, "z"), as_message(self, incoming, "p")
        m, v, known = (x.reshape(-1) for x in cavity_of(z))
        a, b = (np.broadcast_to(n, z.shape).reshape(-1) for n in p.naturals)
        if _labels(a, b).all():
            log_z = label_log_z(m, v, a - b)
        else:
            log_z = logistic_tilt(m, v, a, b).log_z
        log_z = log_z - p.log_normaliser().reshape(-1)
        if not known.all():
            log_z = np.where(known, log_z, _wild_log_z(z, a, b) - p.log_normaliser().reshape(-1))
        log_z = log_z.reshape(z.shape)
        if p.point is None:
            return log_z
        # a delta in p: the cavity's density at logit p, over |dp / dz| = p (1 - p)
        hard = p.is_point
        at = np.where(hard, p.point, 0.5)
        inside = (at > 0) & (at < 1)
        safe = np.where(inside, at, 0.5)
        log_p, log_q = np.log(safe), np.log1p(-safe)
        delta = np.where(inside, z.log_density(log_p - log_q) - log_p - log_q, -np.inf)
        return np.where(hard, delta, log_z)


def _all_alike(z: Gaussian) -> tuple[np.ndarray, np.ndarray] | None:
    """Means and variances of cavities that are all distributions with a density, or all point masses; None of others."""
    shift, tau = z.naturals
    if z.point is not None:
        return (z.point, np.zeros(z.shape)) if np.isfinite(z.point).all() else None
    if not tau.min(initial=1.0) > 0:
        return None
    v = 1.0 / tau
    return shift * v, v


def _labels(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Where a Beta message is what an observed Bernoulli sends, p or 1 - p: there is a fast way."""
    return (a + b == 1.0) & ((a == 1.0) | (b == 1.0))


def _both_labels(m: np.ndarray, v: np.ndarray, power: float) -> tuple[Tilt, Tilt]:
    """The tilts of ``sigmoid(z)^power`` and ``sigmoid(-z)^power``."""
    one, none = np.full(m.size, power), np.zeros(m.size)
    return logistic_tilt(m, v, one, none), logistic_tilt(m, v, none, one)


def _soft(m: np.ndarray, v: np.ndarray, odds: np.ndarray, power: float) -> Tilt:
    yes, no = _both_labels(m, v, power)
    tilt = mixed(yes, no, odds, v)
    if power != 1.0:
        return tilt
    # sigmoid(z) + sigmoid(-z) = 1, so the two slopes are one: taken from the likelier label it loses no digits
    likely = np.where(odds > 0, yes.slope, no.slope)
    log_likely = log_expit(np.abs(odds)) + np.where(odds > 0, yes.log_z, no.log_z) - tilt.log_z
    return tilt._replace(slope=-np.expm1(-np.abs(odds)) * np.exp(log_likely) * likely)


def _wild_site(z: Gaussian, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The message for a cavity ``exp(shift z)``: a Beta(a + shift, b - shift) on the logit's axis, if there is one."""
    s, good, a, b = _wild(z, a, b)
    variance = polygamma(1, a) + polygamma(1, b)
    precision = 1.0 / variance
    return np.where(good, (psi(a) - psi(b)) * precision - s, 0.0), np.where(good, precision, 0.0)


def _wild_log_z(z: Gaussian, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    _, good, a, b = _wild(z, a, b)
    return np.where(good, betaln(a, b), np.inf)


def _wild(z: Gaussian, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    s, tau = (n.reshape(-1) for n in z.naturals)
    good = (tau == 0) & (a + s > 0) & (b - s > 0)
    return s, good, np.where(good, a + s, 1.0), np.where(good, b - s, 1.0)


def _log(x: np.ndarray) -> np.ndarray:
    """``log x``, -inf at 0, NaN kept."""
    return np.log(x, out=np.where(np.isnan(x), np.nan, -np.inf), where=x > 0)
