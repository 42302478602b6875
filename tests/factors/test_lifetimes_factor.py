"""Lifetimes that contradict a narrow cavity, against the trapezoidal rule with 60 digits; and random messages by the thousand."""

from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext

import numpy as np
import pytest

import heliograph as hg
from heliograph.factors import ExponentialInterval, Weibull
from heliograph.families import Gamma, Gaussian

DIGITS = Context(prec=60, Emax=MAX_EMAX, Emin=MIN_EMIN)


def with_sixty_digits(m, v, shape, low, high):
    """Log Z, mean and standard deviation of a cavity times ``exp(-A) - exp(-B)``."""
    with localcontext(DIGITS):
        m, v, s, low, high = map(Decimal, (m, v, shape, low, high))
        log_low, one = low.ln(), Decimal(1)
        more = (s * (high.ln() - log_low)).exp() - 1  # (B - A) / A

        def slope(z):
            a = (s * (log_low - z)).exp()
            d = a * more
            return s * (a - (d / (d.exp() - 1) if d < 10_000 else 0)) - (z - m) / v

        def log_density(z):
            a = (s * (log_low - z)).exp()
            return -a + (one - (-a * more).exp()).ln() - (z - m) ** 2 / (2 * v)

        left, right = m - 1, max(m + 1, log_low + 50 / s)  # the slope falls
        for _ in range(180):
            middle = (left + right) / 2
            left, right = (middle, right) if slope(middle) > 0 else (left, middle)
        h = 1 / (1 / v + s * s * (s * (log_low - left)).exp()).sqrt() / 6
        z = [left + k * h for k in range(-60, 61)]
        top = log_density(left)
        p = [(log_density(x) - top).exp() for x in z]
        mean = sum(w * x for w, x in zip(p, z, strict=True)) / sum(p)
        sd = (sum(w * (x - mean) ** 2 for w, x in zip(p, z, strict=True)) / sum(p)).sqrt()
        log_z = top + (sum(p) * h).ln() - (2 * v * Decimal(np.pi)).ln() / 2
        return float(log_z), float(mean), float(sd)


@pytest.mark.parametrize(
    "row",
    [
        (-1809.4452928128349, 1.0434245370958769e-08, 0.11511868587282717, 205.85990089557046, 7128.8789665297945),
        (-8000.416440751703, 6.299508158180686e-10, 0.017270414699619572, 0.0010633135511307363, 0.0010633186173771509),
        (-790.3928049436721, 3.1515964672814415e-09, 0.2208242554439374, 4.441060249896901e-06, 0.0003926117437586575),
        (0.3, 0.5, 1.5, 2.0, 3.0),
    ],
)
def test_an_interval_that_contradicts_a_narrow_cavity_has_its_digits(row):
    m, v, shape, low, high = row
    log_z, mean, sd = with_sixty_digits(*row)
    tilt = Weibull().tilt(
        *(np.array([x]) for x in (m, v)),
        {"shape": np.array([shape]), "lower": np.array([low]), "upper": np.array([high])},
        1.0,
    )
    np.testing.assert_allclose(tilt.log_z, log_z, rtol=1e-11)
    assert abs(tilt.mean[0] - mean) <= 1e-4 * sd + 4e-16 * abs(mean)
    np.testing.assert_allclose(np.sqrt(tilt.ratio * v), sd, rtol=1e-6)


@pytest.mark.parametrize("power", [1.0, 0.5])
def test_ten_thousand_random_messages_have_no_nan(power):
    rng, n = np.random.default_rng(0), 10_000
    shape, low = 10.0 ** rng.uniform(-2, 2, n), 10.0 ** rng.uniform(-6, 6, n)
    # log hazards at the cavity's mean of hundreds either way: lifetimes that are impossible, and far too likely
    mean = np.log(low) - rng.uniform(-700, 700, n) / shape * 10.0 ** rng.uniform(-3, 0, n)
    kind = rng.integers(0, 4, n)
    upper = np.choose(kind, [low, np.full(n, np.inf), low * (1 + 10.0 ** rng.uniform(-8, 3, n)), low])
    incoming = {
        "z": Gaussian(mean, 10.0 ** rng.uniform(-10, 6, n)),
        "shape": shape,
        "lower": np.where(kind == 3, 0.0, low),
        "upper": upper,
    }
    shift, precision = Weibull().message("z", incoming, power).naturals
    assert np.isfinite(shift).all() and np.isfinite(precision).all()
    assert not np.isnan(Weibull().log_z(incoming, power)).any()


@pytest.mark.parametrize("shape,rate", [(0.02, 3.0), (0.7, 0.1), (1.0, 1.0), (30.0, 4.0), (2e4, 1e4)])
@pytest.mark.parametrize("low,high", [(0.0, 0.5), (0.0, 1e3), (1.0, 1.001), (2.0, 9.0)])
def test_an_interval_of_an_exponential_lifetime_has_the_moments_of_a_fine_grid(shape, rate, low, high):
    u = np.linspace(-60.0 / min(shape + 1.0, 30.0) - 10.0, 12.0, 400_001)  # log of the rate
    r = np.exp(u)
    log_p = Gamma(shape, rate).log_density(r) + u - low * r + np.log(-np.expm1(-(high - low) * r))
    p = np.exp(log_p - log_p.max())
    log_z = np.log(p.sum() * (u[1] - u[0])) + log_p.max()
    p /= p.sum()
    incoming = {"rate": Gamma(shape, rate), "lower": low, "upper": high}
    belief = ExponentialInterval().belief("rate", incoming)
    mean, mean_log = belief.expected_statistics()
    np.testing.assert_allclose(ExponentialInterval().log_z(incoming), log_z, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(mean, p @ r, rtol=1e-9)
    np.testing.assert_allclose(mean_log, p @ u, rtol=1e-8, atol=1e-9)


def test_an_interval_in_other_units_is_the_same_to_rounding():
    first = {"rate": Gamma(2.5, 3.0), "lower": 1.0, "upper": 2.5}
    other = {"rate": Gamma(2.5, 3e6), "lower": 1e6, "upper": 2.5e6}
    a, b = (ExponentialInterval().message("rate", incoming) for incoming in (first, other))
    np.testing.assert_allclose(b.naturals[0], a.naturals[0], rtol=1e-12)
    np.testing.assert_allclose(b.naturals[1], 1e6 * a.naturals[1], rtol=1e-12)


def test_a_gamma_rate_of_censored_lifetimes_is_that_of_a_grid():
    rng = np.random.default_rng(3)
    t = rng.exponential(2.0, 60)
    low, high = np.floor(t), np.floor(t) + 1.0  # looked at once in a unit of time
    early, late = t < 1.0, t > 4.0
    observed = np.where(early, 1.0, np.where(late, 4.0, low))
    until = np.where(early | late, np.nan, high)
    model = hg.Model()
    rate = model.gamma("rate", 1.0, 1.0)
    model.exponential("t", rate, observed=observed, censored=np.where(early, -1, np.where(late, 1, 0)), until=until)
    posterior = model.infer()
    r = np.linspace(1e-4, 3.0, 200_001)
    lower, upper = np.where(early, 0.0, np.where(late, 4.0, low)), np.where(early, 1.0, np.where(late, np.inf, high))
    log_p = -r
    for a, b in zip(lower, upper, strict=True):
        log_p = log_p - a * r + np.log(-np.expm1(-(b - a) * r))
    w = np.exp(log_p - log_p.max())
    evidence = np.log(w.sum() * (r[1] - r[0])) + log_p.max()
    w /= w.sum()
    mean, sd = w @ r, np.sqrt(w @ (r - w @ r) ** 2)
    assert posterior.converged
    np.testing.assert_allclose(posterior[rate].mean, mean, atol=2e-3 * sd)  # EP's own error, of 60 projections
    np.testing.assert_allclose(posterior[rate].sd, sd, rtol=2e-3)
    np.testing.assert_allclose(posterior.log_evidence, evidence, atol=2e-3)
