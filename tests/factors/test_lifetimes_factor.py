"""Lifetimes that contradict a narrow cavity, against the trapezoidal rule with 60 digits; and random messages by the thousand."""

from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext

import numpy as np
import pytest

from heliograph.factors import Weibull
from heliograph.families import Gaussian

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
