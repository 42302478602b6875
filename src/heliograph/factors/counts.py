"""Likelihoods of counts: Bernoulli and Binomial with a Beta probability, Poisson with a Gamma or a log-Gaussian rate."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.special import digamma, gammaln, log_expit, xlogy

from heliograph.factors.base import Factor, Incoming
from heliograph.factors.incoming import as_data, as_message
from heliograph.factors.integrals.exponential import exponential_tilt
from heliograph.factors.integrals.tilt import cavity_of, gaussian_site
from heliograph.families import Bernoulli, Beta, Family, Gamma, Gaussian
from heliograph.numerics.count_masses import (
    digamma_rise,
    drawn_counts,
    log_beta_binomial,
    log_binomial,
    log_choose,
    log_poisson,
    log_rise,
)
from heliograph.numerics.gamma_function import trigamma
from heliograph.numerics.inverse_dirichlet import raised_centre
from heliograph.numerics.logarithms import log_or_minus_inf

__all__ = ["BernoulliBeta", "Binomial", "Poisson", "PoissonLog"]


class BernoulliBeta(Factor):
    """``p^y (1 - p)^(1 - y)``.

    A known y adds one to a or to b; a soft y mixes both, which the projection turns back into one Beta. With an improper
    Beta there is no mixture: the message of a soft y is then uniform, and so is the one to y.

    >>> BernoulliBeta().message("p", {"p": Beta(3.0, 2.0), "y": Bernoulli(1.0)})
    Beta(a 2., b 1.)
    """

    name = "bernoulli_beta"
    families: ClassVar = {"p": (Beta,), "y": (Bernoulli,)}
    how: ClassVar = {"p": "closed form", "y": "closed form"}
    ignores_own = ("y",)
    exact_given: ClassVar = {"p": ("y",)}
    powers = True

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        p, y = as_message(self, incoming, "p"), as_message(self, incoming, "y")
        if to == "y":
            return Bernoulli.from_log_odds(self._log_odds(p, power), strict=False)
        one = np.full(p.shape, power)
        if y.point is not None:
            yes = np.where(y.point == 1, one, 0.0)
            no = np.where(y.point == 0, one, 0.0)
        else:
            yes, no = np.zeros(p.shape), np.zeros(p.shape)
        soft = ~y.is_point & p.proper & ~p.is_point & ((y.naturals[0] != 0) | (power != 1.0))
        if not soft.any():
            return Beta.from_naturals((yes, no))
        a, b = np.where(soft, p.a, 1.0), np.where(soft, p.b, 1.0)
        w, u, _ = self._weights(a, b, np.where(soft, y.naturals[0], 0.0), power)
        # the rise of E log p and E log(1 - p) over the cavity's, from which logit and gap follow
        total = digamma_rise(a + b, power)
        first, second = w * digamma_rise(a, power) - total, u * digamma_rise(b, power) - total
        log_centre, gap = raised_centre(np.stack([a, b], axis=-1), np.stack([first, second], axis=-1))
        belief = Beta.from_mean_logit_and_gap(log_centre[..., 0] - log_centre[..., 1], gap, strict=False)
        fill = zip((yes, no), belief.naturals, p.naturals, strict=True)
        return Beta.from_naturals(tuple(np.where(soft, n - c, hard) for hard, n, c in fill))

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the probability of y."""
        p, y = as_message(self, incoming, "p"), as_message(self, incoming, "y")
        odds = y.log_odds
        soft = p.proper & ~p.is_point
        log_z = self._weights(np.where(soft, p.a, 1.0), np.where(soft, p.b, 1.0), odds, power)[2]
        if not np.all(soft):
            # with an improper Beta the integral of exp(naturals . statistics) times the factor, if it exists
            wild = Beta.from_naturals(p.naturals)
            yes = Beta.from_naturals((p.naturals[0] + power, p.naturals[1]))
            no = Beta.from_naturals((p.naturals[0], p.naturals[1] + power))
            parts = (
                np.where(
                    np.isneginf(l), -np.inf, np.where(b.proper, np.maximum(l, -1e300) + b.log_normaliser(), np.inf)
                )
                for l, b in ((log_expit(odds), yes), (log_expit(-odds), no))
            )
            log_z = np.where(soft, log_z, np.logaddexp(*parts) - np.where(wild.proper, wild.log_normaliser(), 0.0))
        if p.point is not None:
            at = np.where(p.is_point, p.point, 0.5)
            terms = log_expit(odds) + xlogy(power, at), log_expit(-odds) + xlogy(power, 1.0 - at)
            log_z = np.where(p.is_point, np.logaddexp(*terms), log_z)
        return log_z

    @staticmethod
    def _weights(
        a: np.ndarray, b: np.ndarray, odds: np.ndarray, power: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """How much of the tilted mixture has y = 1 and y = 0, and the log of the total."""
        log_yes, log_no = log_expit(odds) + log_rise(a, a + b, power), log_expit(-odds) + log_rise(b, a + b, power)
        total = np.logaddexp(log_yes, log_no)
        return np.exp(log_yes - total), np.exp(log_no - total), total

    @staticmethod
    def _log_odds(p: Beta, power: float) -> np.ndarray:
        soft = p.proper & ~p.is_point
        a, b = np.where(soft, p.a, 1.0), np.where(soft, p.b, 1.0)
        odds = np.where(soft, log_rise(a, a + b, power) - log_rise(b, a + b, power), 0.0)
        if p.point is None:
            return odds
        at = np.where(p.is_point, p.point, 0.5)
        return np.where(p.is_point, power * (log_or_minus_inf(at) - log_or_minus_inf(1.0 - at)), odds)


class Binomial(Factor):
    """``C(n, count) p^count (1 - p)^(n - count)``, count and n data; a NaN count is missing and says nothing.

    >>> Binomial().belief("p", {"p": Beta(0.5, 0.5), "n": 5, "count": 2})
    Beta(a 2.5, b 3.5)
    """

    name = "binomial"
    families: ClassVar = {"p": (Beta,), "n": (), "count": ()}
    how: ClassVar = {"p": "closed form"}
    ignores_own = ("p",)
    powers = True

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        """The message to p: successes and failures counted."""
        p, n, k = as_message(self, incoming, "p"), as_data(self, incoming, "n"), as_data(self, incoming, "count")
        yes, no = power * np.where(np.isnan(k), 0.0, k), power * np.where(np.isnan(k), 0.0, n - k)
        return Beta.from_naturals((np.broadcast_to(yes, p.shape), np.broadcast_to(no, p.shape)))

    def draw(self, rng: np.random.Generator, incoming: Incoming) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Counts given the probability."""
        p, n = as_message(self, incoming, "p").mean, as_data(self, incoming, "n")
        return rng.binomial(n.astype(int), p).astype(float), n * p, n * p * (1 - p)

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the probability of the count."""
        p, n, k = as_message(self, incoming, "p"), as_data(self, incoming, "n"), as_data(self, incoming, "count")
        missing = np.isnan(k)
        k = np.where(missing, 0.0, k)
        n = np.where(missing, 0.0, n)
        soft = p.proper & ~p.is_point
        a, b = np.where(soft, p.a, 1.0), np.where(soft, p.b, 1.0)
        if power == 1.0:
            log_z = log_beta_binomial(k, n, a, b)
        else:
            log_z = power * log_choose(n, k)
            # up to the power of the binomial coefficient the powered factor is a binomial of powered counts
            more, less = power * k, power * (n - k)
            log_z = log_z + log_beta_binomial(more, more + less, a, b) - log_choose(more + less, more)
        if not np.all(soft):
            wild = Beta.from_naturals((p.naturals[0] + power * k, p.naturals[1] + power * (n - k)))
            log_wild = np.where(wild.proper, wild.log_normaliser() + power * log_choose(n, k), np.inf)
            log_z = np.where(soft, log_z, log_wild)
        if p.point is not None:
            at = np.where(p.is_point, p.point, 0.5)
            log_z = np.where(p.is_point, power * log_binomial(k, n, at, 1.0 - at), log_z)
        return np.where(missing, 0.0, log_z)


class Poisson(Factor):
    """``Poisson(count; rate)``, the count data; a NaN count is missing and says nothing.

    >>> Poisson().belief("rate", {"rate": Gamma(2.0, 1.0), "count": 3})
    Gamma(shape 5., rate 2.)
    """

    name = "poisson"
    families: ClassVar = {"rate": (Gamma,), "count": ()}
    how: ClassVar = {"rate": "closed form"}
    ignores_own = ("rate",)
    powers = True

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        """The message to the rate: events and exposure counted."""
        rate, k = as_message(self, incoming, "rate"), as_data(self, incoming, "count")
        missing = np.isnan(k)
        naturals = power * np.where(missing, 0.0, k), power * np.where(missing, 0.0, 1.0)
        return Gamma.from_naturals(tuple(np.broadcast_to(a, rate.shape) for a in naturals))

    def draw(self, rng: np.random.Generator, incoming: Incoming) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Counts given the rate."""
        return drawn_counts(rng, as_message(self, incoming, "rate").mean)

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the probability of the count."""
        rate, k = as_message(self, incoming, "rate"), as_data(self, incoming, "count")
        missing = np.isnan(k)
        k = np.where(missing, 0.0, k)
        soft = rate.proper & ~rate.is_point
        s, r = np.where(soft, rate.shape_parameter, 1.0), np.where(soft, rate.rate, 1.0)
        if power == 1.0:
            # negative binomial: s / (s + k) times a binomial of s successes in s + k trials
            log_z = np.log(s / (s + k)) + log_binomial(s, s + k, r / (1.0 + r), 1.0 / (1.0 + r))
        else:
            log_z = gammaln(s + power * k) - gammaln(s) - power * gammaln(k + 1.0)
            log_z = log_z - s * np.log1p(power / r) - power * k * np.log(r + power)
        if not np.all(soft):
            s, r = rate.naturals[0] + 1.0 + power * k, rate.naturals[1] + power
            fine = (s > 0) & (r > 0)
            log_wild = gammaln(np.where(fine, s, 1.0)) - s * np.log(np.where(fine, r, 1.0)) - power * gammaln(k + 1.0)
            log_z = np.where(soft, log_z, np.where(fine, log_wild, np.inf))
        if rate.point is not None:
            at = np.where(rate.is_point, rate.point, 1.0)
            log_z = np.where(rate.is_point, power * log_poisson(k, at, log_or_minus_inf(at)), log_z)
        return np.where(missing, 0.0, log_z)


class PoissonLog(Factor):
    """``Poisson(count; exp(z))``, the count data; a NaN count is missing and says nothing.

    Under a cavity of z with precision 0 the tilted density is that of the log of a Gamma, if the shape is positive; any
    other improper cavity gets the uniform message.

    >>> PoissonLog().belief("z", {"z": Gaussian(0.0, 1.0), "count": 1})
    Gaussian(mean -0.1193, variance 0.4993)
    """

    name = "poisson_log"
    families: ClassVar = {"z": (Gaussian,), "count": ()}
    how: ClassVar = {"z": "quadrature"}
    powers = True

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        z, k, missing = self._read(incoming)
        m, v, known = (x.reshape(-1) for x in cavity_of(z))
        tilt, _ = exponential_tilt(m, v, power * k, np.full(m.size, power))
        shift, precision = gaussian_site(m, v, tilt)
        if not known.all():
            s, tau = (n.reshape(-1) for n in z.naturals)
            shape = s + power * k
            wild = (tau == 0) & (shape > 0)
            safe = np.where(wild, shape, 1.0)
            gain = 1.0 / trigamma(safe)
            shift = np.where(known, shift, np.where(wild, (digamma(safe) - np.log(power)) * gain - s, 0.0))
            precision = np.where(known, precision, np.where(wild, gain, 0.0))
        naturals = (np.where(missing, 0.0, a).reshape(z.shape) for a in (shift, precision))
        return Gaussian.from_naturals(tuple(naturals))

    def draw(self, rng: np.random.Generator, incoming: Incoming) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Counts given the rate."""
        return drawn_counts(rng, np.exp(as_message(self, incoming, "z").mean))

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the probability of the count."""
        z, k, missing = self._read(incoming)
        m, v, known = (x.reshape(-1) for x in cavity_of(z))
        tilt, peak = exponential_tilt(m, v, power * k, np.full(m.size, power))
        log_z = tilt.log_z + power * log_poisson(k, np.exp(np.minimum(peak, 700.0)), peak)
        if not known.all():
            s, tau = (n.reshape(-1) for n in z.naturals)
            shape = s + power * k
            wild = (tau == 0) & (shape > 0)
            safe = np.where(wild, shape, 1.0)
            log_wild = gammaln(safe) - safe * np.log(power) - power * gammaln(k + 1.0)
            log_z = np.where(known, log_z, np.where(wild, log_wild, np.inf))
        return np.where(missing, 0.0, log_z).reshape(z.shape)

    def _read(self, incoming: Incoming) -> tuple[Gaussian, np.ndarray, np.ndarray]:
        z = as_message(self, incoming, "z")
        k = np.broadcast_to(as_data(self, incoming, "count"), z.shape).reshape(-1)
        missing = np.isnan(k)
        return z, np.where(missing, 0.0, k), missing
