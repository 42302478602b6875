"""The derivatives of Student's log Z by its numbers, against quadrature of the density itself."""

import numpy as np
import pytest
from scipy import integrate, stats

from heliograph.factors import StudentT
from heliograph.families import Gaussian

CASES = [(0.4, 0.0, 0.3, 0.7, 4.0), (6.0, 0.0, 1.5, 0.5, 2.5), (-1.0, 2.0, 0.01, 2.0, 30.0)]  # y, m, v, scale, dof


def by_quadrature(y, m, v, scale, dof):
    def density(z):
        return stats.norm.pdf(z, m, np.sqrt(v)) * stats.t.pdf(y, dof, z, scale)

    low, high = min(m, y) - 12 * np.sqrt(v), max(m, y) + 12 * np.sqrt(v)
    return np.log(integrate.quad(density, low, high, epsabs=0, epsrel=1e-12, points=[m, y], limit=500)[0])


@pytest.mark.parametrize("case", CASES)
def test_slopes_are_the_differences_of_an_integral_over_the_mean(case):
    y, m, v, scale, dof = case
    incoming = {"x": Gaussian.point_mass(np.array([y])), "mean": Gaussian(np.array([m]), np.array([v]))}
    slopes = StudentT().log_z_slopes({**incoming, "scale": np.array([scale]), "dof": np.array([dof])})
    h = 1e-3  # relative, for differences of fourth order
    for port, at in (("scale", 3), ("dof", 4)):
        step = h * case[at]
        ends = [by_quadrature(*(c + k * step * (i == at) for i, c in enumerate(case))) for k in (-2, -1, 1, 2)]
        expected = (ends[0] - 8 * ends[1] + 8 * ends[2] - ends[3]) / (12 * step)
        assert slopes[port][0] == pytest.approx(expected, rel=1e-6, abs=1e-7)


def test_slopes_of_known_ends_are_those_of_the_density():
    incoming = {"x": Gaussian.point_mass(np.array([3.0])), "mean": Gaussian.point_mass(np.array([1.0]))}
    slopes = StudentT().log_z_slopes({**incoming, "scale": np.array([2.0]), "dof": np.array([4.0])})
    h = 1e-6
    by_scale = (stats.t.logpdf(3, 4, 1, 2 + h) - stats.t.logpdf(3, 4, 1, 2 - h)) / (2 * h)
    by_dof = (stats.t.logpdf(3, 4 + h, 1, 2) - stats.t.logpdf(3, 4 - h, 1, 2)) / (2 * h)
    assert slopes["scale"][0] == pytest.approx(by_scale, abs=1e-8)
    assert slopes["dof"][0] == pytest.approx(by_dof, abs=1e-8)


def test_beside_a_uniform_end_there_are_no_slopes():
    incoming = {"x": Gaussian.uniform((1,)), "mean": Gaussian(np.array([0.0]), np.array([1.0]))}
    slopes = StudentT().log_z_slopes({**incoming, "scale": np.array([2.0]), "dof": np.array([4.0])})
    assert np.isnan(slopes["scale"]).all()
