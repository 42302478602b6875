"""Likelihoods of one Gaussian score: their base class, and counts with a logit or a log mean.

A subclass of `OfScore` has a Gaussian port ``z`` and data; it gives the tilt of a cavity, and the rest follows.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
from scipy.special import betaln, expit, gammaln, polygamma, psi

from heliograph.factors.base import Factor, Incoming
from heliograph.factors.incoming import as_data, as_message
from heliograph.factors.integrals.logistic import logistic_tilt
from heliograph.factors.integrals.tilt import Tilt, cavity_of, gaussian_site
from heliograph.families import Family, Gaussian
from heliograph.numerics.count_masses import drawn_counts, log_binomial, log_choose

__all__ = ["BinomialLogit", "NegativeBinomial", "OfScore"]

Rows = dict[str, np.ndarray]  # data port -> flat values


class OfScore(Factor):
    """A likelihood of data given one Gaussian score z; NaN in the last port's data is missing and says nothing.

    An improper cavity gets the uniform message, unless a subclass defines `flat`.
    """

    powers = True
    smooth = True

    def tilt(self, m: np.ndarray, v: np.ndarray, rows: Rows, power: float) -> Tilt:
        """The tilt of N(m, v) and the likelihood to this power, all flat."""
        raise NotImplementedError  # pragma: no cover

    def flat(self, s: np.ndarray, rows: Rows, power: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Of cavities ``exp(s z)``: where they have a tilted distribution, its mean and variance, and log Z."""
        none = np.zeros(s.size)
        return np.zeros(s.size, dtype=bool), none, none + 1.0, none

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        z, rows, missing = self._read(incoming)
        m, v, known = (x.reshape(-1) for x in cavity_of(z))
        shift, precision = gaussian_site(m, v, self.tilt(m, v, rows, power))
        if not known.all():
            s, tau = (n.reshape(-1) for n in z.naturals)
            good, mean, variance, _ = self.flat(s, rows, power)
            good &= tau == 0
            shift = np.where(known, shift, np.where(good, mean / variance - s, 0.0))
            precision = np.where(known, precision, np.where(good, 1.0 / variance, 0.0))
        naturals = (np.where(missing, 0.0, a).reshape(z.shape) for a in (shift, precision))
        return Gaussian.from_naturals(tuple(naturals))

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the probability of the data."""
        z, rows, missing = self._read(incoming)
        m, v, known = (x.reshape(-1) for x in cavity_of(z))
        log_z = self.tilt(m, v, rows, power).log_z
        if not known.all():
            s, tau = (n.reshape(-1) for n in z.naturals)
            good, _, _, wild = self.flat(s, rows, power)
            log_z = np.where(known, log_z, np.where(good & (tau == 0), wild, np.inf))
        return np.where(missing, 0.0, log_z).reshape(z.shape)

    def _read(self, incoming: Incoming) -> tuple[Gaussian, Rows, np.ndarray]:
        z = as_message(self, incoming, "z")
        data = [p for p in self.ports if p != "z"]
        rows = {p: np.broadcast_to(as_data(self, incoming, p), z.shape).reshape(-1) for p in data}
        missing = np.isnan(rows[data[-1]])
        return z, {p: np.where(missing, 1.0, a) for p, a in rows.items()}, missing


class _Powers(NamedTuple):
    """The likelihood ``exp(log_c) sigmoid(z - at)^a sigmoid(at - z)^b``."""

    a: np.ndarray
    b: np.ndarray
    log_c: np.ndarray
    at: np.ndarray | float = 0.0


class _LogisticCount(OfScore):
    """A count that is a logistic integral; a subclass says which."""

    how: ClassVar = {"z": "quadrature"}

    def powers_of(self, rows: Rows) -> _Powers:
        """The powers of the two sigmoids, and the constant."""
        raise NotImplementedError  # pragma: no cover

    def tilt(self, m: np.ndarray, v: np.ndarray, rows: Rows, power: float) -> Tilt:
        """That of the two sigmoids, moved, and the constant."""
        a, b, log_c, at = self.powers_of(rows)
        tilt = logistic_tilt(m - at, v, power * a, power * b)
        return tilt._replace(log_z=tilt.log_z + power * log_c, mean=tilt.mean + at)

    def flat(self, s: np.ndarray, rows: Rows, power: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """A Beta on the logit's axis, where there is one."""
        a, b, log_c, at = self.powers_of(rows)
        a, b = power * a + s, power * b - s
        good = (a > 0) & (b > 0)
        a, b = np.where(good, a, 1.0), np.where(good, b, 1.0)
        return good, psi(a) - psi(b) + at, polygamma(1, a) + polygamma(1, b), betaln(a, b) + power * log_c + s * at


class BinomialLogit(_LogisticCount):
    """``C(n, count) p^count (1 - p)^(n - count)`` with ``p = 1 / (1 + exp(-z))``; count and n are data.

    >>> f, z = BinomialLogit(), Gaussian(0.0, 1.0)
    >>> total = sum(np.exp(f.log_z({"z": z, "n": 3.0, "count": k})) for k in range(4))
    >>> bool(np.isclose(total, 1.0))
    True
    """

    name = "binomial_logit"
    families: ClassVar = {"z": (Gaussian,), "n": (), "count": ()}

    def powers_of(self, rows: Rows) -> _Powers:
        """Successes and failures, and the binomial coefficient."""
        k, n = rows["count"], rows["n"]
        return _Powers(k, n - k, _log_coefficient(k, n))

    def draw(self, rng: np.random.Generator, incoming: Incoming) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Counts given the logit."""
        p, n = expit(as_message(self, incoming, "z").mean), as_data(self, incoming, "n")
        return rng.binomial(n.astype(int), p).astype(float), n * p, n * p * (1.0 - p)


def _log_coefficient(k: np.ndarray, n: np.ndarray) -> np.ndarray:
    """``log C(n, k)`` from the mass of the likeliest binomial, where large terms cancel on paper."""
    p = np.clip(k / np.maximum(n, 1.0), 0.0, 1.0)
    inner = (k > 0) & (k < n)
    p = np.where(inner, p, 0.5)
    log_c = log_binomial(np.where(inner, k, 1.0), np.where(inner, n, 2.0), p, 1.0 - p)
    return np.where(inner, log_c - k * np.log(p) - (n - k) * np.log1p(-p), log_choose(n, k))


class NegativeBinomial(_LogisticCount):
    """Counts of mean ``exp(z)`` and variance ``mean + mean^2 / dispersion``; count and dispersion are data.

    With ``p = mean / (mean + dispersion)``, whose logit is ``z - log dispersion``, it is ``p^count (1 - p)^dispersion`` times
    a constant: a logistic integral. A large dispersion is a Poisson.

    >>> f, z = NegativeBinomial(), Gaussian(0.0, 1.0)
    >>> total = sum(np.exp(f.log_z({"z": z, "dispersion": 2.5, "count": k})) for k in range(400))
    >>> bool(np.isclose(total, 1.0, atol=1e-6))
    True
    """

    name = "negative_binomial"
    families: ClassVar = {"z": (Gaussian,), "dispersion": (), "count": ()}

    def powers_of(self, rows: Rows) -> _Powers:
        """The count and the dispersion, moved by the log of the latter."""
        k, r = rows["count"], rows["dispersion"]
        return _Powers(k, r, gammaln(k + r) - gammaln(r) - gammaln(k + 1.0), np.log(r))

    def draw(self, rng: np.random.Generator, incoming: Incoming) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Counts given the log mean."""
        mean, r = np.exp(as_message(self, incoming, "z").mean), as_data(self, incoming, "dispersion")
        drawn, _, _ = drawn_counts(rng, rng.gamma(r, mean / r))
        return drawn, mean, mean + mean**2 / r
