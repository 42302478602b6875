"""Ordered categories: a Gaussian score cut into intervals, at known cut points or at random ones."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.special import expit, log_expit, log_ndtr

from heliograph.factors.base import Factor, Incoming
from heliograph.factors.incoming import as_data, as_message
from heliograph.factors.integrals.log_concave import log_concave_tilt
from heliograph.factors.integrals.tilt import Tilt, cavity_of, gaussian_site
from heliograph.families import Categorical, Family, Gaussian
from heliograph.numerics.truncated_normal import interval

__all__ = ["OrdinalLogit", "OrdinalProbit"]

_WIDEST, _FARTHEST = 1e12, 1e8  # variance and mean of a score with logistic noise, beyond which there is no answer
_ROOT_2PI = float(np.sqrt(2 * np.pi))


class _Ordinal(Factor):
    """What the two links share: K - 1 known cut points, and a tilt for each of the K intervals between them."""

    families: ClassVar = {"z": (Gaussian,), "cuts": (), "y": (Categorical,)}
    data_ranks: ClassVar = {"cuts": 1}
    ignores_own = ("y",)

    def interval_tilt(self, m: np.ndarray, v: np.ndarray, low: np.ndarray, high: np.ndarray) -> Tilt:
        """The tilt of N(m, v) and the probability of the interval; v may be 0, and a bound infinite."""
        raise NotImplementedError  # pragma: no cover

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        z, y, ends = self._read(incoming)
        m, v, known = (x.reshape(-1) for x in cavity_of(z))
        if to == "y":
            logs = [self.interval_tilt(m, v, low, high).log_z for low, high in _pairs(ends)]
            log_p = np.where(known[:, None], np.stack(logs, axis=1), 0.0)
            return Categorical.from_naturals((log_p.reshape(*z.shape, -1),))
        tilt = self._tilt(m, v, y, ends)
        shift, precision = gaussian_site(m, v, tilt)
        good = known & ~(y.is_uniform & ~y.is_point).reshape(-1)
        naturals = (np.where(good, a, 0.0).reshape(z.shape) for a in (shift, precision))
        return Gaussian.from_naturals(tuple(naturals))

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the probability of the message at y."""
        z, y, ends = self._read(incoming)
        m, v, known = (x.reshape(-1) for x in cavity_of(z))
        return np.where(known, self._tilt(m, v, y, ends).log_z, np.inf).reshape(z.shape)

    def _tilt(self, m: np.ndarray, v: np.ndarray, y: Categorical, ends: np.ndarray) -> Tilt:
        """The tilt under labels that may be soft."""
        n, k = m.size, ends.shape[1] - 1
        log_w = y.log_p.reshape(n, k)
        if y.point is not None and y.is_point.all():
            label = y.point.reshape(-1).astype(int)
            rows = np.arange(n)
            return self.interval_tilt(m, v, ends[rows, label], ends[rows, label + 1])
        tilts = [self.interval_tilt(m, v, low, high) for low, high in _pairs(ends)]
        return _mixed(tilts, log_w, v)

    def _read(self, incoming: Incoming) -> tuple[Gaussian, Categorical, np.ndarray]:
        z, y, cuts = as_message(self, incoming, "z"), as_message(self, incoming, "y"), as_data(self, incoming, "cuts")
        cuts = np.broadcast_to(cuts, (*z.shape, cuts.shape[-1])).reshape(z.size, -1)
        far = np.full((z.size, 1), np.inf)
        return z, y.broadcast_to(z.shape), np.concatenate([-far, cuts, far], axis=1)


def _pairs(ends: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(ends[:, k], ends[:, k + 1]) for k in range(ends.shape[1] - 1)]


def _mixed(tilts: list[Tilt], log_weight: np.ndarray, v: np.ndarray) -> Tilt:
    """The tilt of a weighted sum of factors, ``log_weight`` (n, k)."""
    log_w = np.stack([t.log_z for t in tilts], axis=1) + log_weight
    top = log_w.max(axis=1)
    w = np.exp(log_w - top[:, None])
    total = w.sum(axis=1)
    w /= total[:, None]
    mean, slope = (sum(w[:, k] * t[j] for k, t in enumerate(tilts)) for j in (1, 3))
    bend = sum(w[:, k] * (t.bend + (t.slope - slope) ** 2) for k, t in enumerate(tilts))
    ratio = sum(w[:, k] * (t.ratio + v * (t.slope - slope) ** 2) for k, t in enumerate(tilts))
    return Tilt(top + np.log(total), *(np.asarray(a) for a in (mean, ratio, slope, bend)))


class OrdinalProbit(_Ordinal):
    """``P(y = k) = Phi(cut_(k+1) - z) - Phi(cut_k - z)``: the score with standard Gaussian noise falls between two cuts.

    >>> from scipy.stats import norm
    >>> incoming = {"z": Gaussian([0.5], 3.0), "cuts": np.array([[-1.0, 1.0]]), "y": Categorical.point_mass([1], 3)}
    >>> exact = norm.cdf(0.5 / 2) - norm.cdf(-1.5 / 2)
    >>> bool(np.isclose(np.exp(OrdinalProbit().log_z(incoming))[0], exact))
    True
    """

    name = "ordinal_probit"
    how: ClassVar = {"z": "closed form", "y": "closed form"}

    def interval_tilt(self, m: np.ndarray, v: np.ndarray, low: np.ndarray, high: np.ndarray) -> Tilt:
        """From the Gaussian of the score with its noise, cut at the bounds."""
        wide = v + 1.0
        sd = np.sqrt(wide)
        cut = interval(low, high, m / wide, 1.0 / wide)
        a, b = (low - m) / sd, (high - m) / sd
        # what is outside, where that is little: then all is known from the densities at the bounds
        outside = np.logaddexp(log_ndtr(a), log_ndtr(-b))
        near = outside < -0.7
        log_z = np.where(near, np.log(-np.expm1(np.where(near, outside, -1.0))), cut.log_mass)
        at_a, at_b = (np.exp(-0.5 * np.minimum(t * t, 1400.0)) / _ROOT_2PI * np.isfinite(t) for t in (a, b))
        mass = np.where(near, np.exp(log_z), 1.0)
        pull = (at_a - at_b) / mass
        sides = (np.where(np.isfinite(a), a, 0.0) * at_a - np.where(np.isfinite(b), b, 0.0) * at_b) / mass
        slope = np.where(near, pull / sd, (cut.mean - m) / wide)
        bend = np.where(near, (sides - pull * pull) / wide, (cut.variance / wide - 1.0) / wide)
        return Tilt(log_z, m + v * slope, 1.0 + v * bend, slope, bend)


class OrdinalLogit(_Ordinal):
    """``P(y = k) = sigmoid(z - cut_k) - sigmoid(z - cut_(k+1))``: the score with logistic noise falls between two cuts.

    >>> incoming = {"z": Gaussian([0.5], 0.0), "cuts": np.array([[-1.0, 1.0]]), "y": Categorical.point_mass([1], 3)}
    >>> bool(np.isclose(np.exp(OrdinalLogit().log_z(incoming))[0], expit(1.5) - expit(-0.5)))
    True
    """

    name = "ordinal_logit"
    how: ClassVar = {"z": "quadrature", "y": "quadrature"}

    def interval_tilt(self, m: np.ndarray, v: np.ndarray, low: np.ndarray, high: np.ndarray) -> Tilt:
        """The difference is ``sigmoid(z - low) sigmoid(high - z) (1 - exp(low - high))``, which is log-concave."""
        width = high - low
        constant = np.where(np.isinf(width), 0.0, np.log(-np.expm1(-np.where(np.isinf(width), 1.0, width))))

        def curve(z: np.ndarray, k: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            a, b = z - low[k], high[k] - z
            p, q = expit(-a), expit(-b)
            return constant[k] + log_expit(a) + log_expit(b), p - q, -p * expit(a) - q * expit(b)

        lost = (v > _WIDEST) | (np.abs(m) > _FARTHEST)
        tilt = log_concave_tilt(np.where(lost, 0.0, m), np.where(lost, 1.0, v), curve)
        return Tilt(*(np.where(lost, np.nan, field) for field in tilt))
