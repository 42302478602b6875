"""What is left of a normal distribution above 0, against fifty decimal digits."""

from decimal import Decimal, getcontext

import numpy as np
import pytest

from heliograph.numerics.truncated_normal import FAR, tail

PI = Decimal("3.14159265358979323846264338327950288419716939937511")


def in_decimals(t):
    """Hazard, mean and variance by the power series of the distribution function."""
    getcontext().prec = 70
    t = Decimal(float(t))
    term = total = t
    k = 0
    while abs(term) > Decimal(10) ** -65:
        k += 1
        term *= t * t / (2 * k + 1)
        total += term
    density = (-t * t / 2).exp() / (2 * PI).sqrt()
    hazard = density / (Decimal("0.5") + density * total)
    return hazard, t + hazard, 1 - hazard * (t + hazard)


@pytest.mark.parametrize("t", [*np.linspace(-8.0, 6.0, 57), -FAR, -FAR * (1 + 1e-15), -FAR * (1 - 1e-15)])
def test_the_tail_has_all_but_its_last_digits(t):
    cut = tail(np.array([t]), mass=False)
    for found, truth, error in zip(cut[1:], in_decimals(t), (3e-15, 2e-14, 2e-13), strict=True):
        assert abs(float(Decimal(float(found[0])) / truth - 1)) < error


def test_what_is_far_away_costs_no_warning_and_what_is_missing_stays_missing():
    cut = tail(np.array([-1e100, -40.0, 40.0, 1e100, np.nan]))
    assert cut.variance[:4] == pytest.approx([1e-200, 1 / 40.0**2, 1.0, 1.0], rel=4e-3)
    assert cut.mean[:4] == pytest.approx([1e-100, 1 / 40.0, 40.0, 1e100], rel=2e-3)
    assert all(np.isnan(a[4]) for a in cut)
