"""Normals cut to a quadrant, against nested integrals over one coordinate on a fine composite rule, and closed forms."""

import numpy as np
import pytest
from scipy.special import log_ndtr
from scipy.stats import multivariate_normal

from heliograph.numerics.quadrant import quadrant

NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)


def by_rows(mean, covariance):
    """Integrate over x0 > 0; given it, x1 is a normal cut at 0, whose moments follow from its hazard."""
    farthest = max(mean[0], 0.0) + 30.0 * np.sqrt(covariance[0, 0])
    edges = np.unique(np.concatenate([np.linspace(0, farthest, 4001), farthest * np.geomspace(1e-12, 1, 600)]))
    half = 0.5 * np.diff(edges)[:, None]
    x = (edges[:-1, None] + half * (1 + NODES)).ravel()
    slope = covariance[0, 1] / covariance[0, 0]
    v = covariance[1, 1] - slope * covariance[0, 1]
    t = (mean[1] + slope * (x - mean[0])) / np.sqrt(v)
    log_mass = log_ndtr(t)
    hazard = np.exp(-0.5 * t**2 - 0.5 * np.log(2 * np.pi) - log_mass)
    log_p = log_mass - 0.5 * (x - mean[0]) ** 2 / covariance[0, 0] - 0.5 * np.log(2 * np.pi * covariance[0, 0])
    top = log_p.max()
    w = (half * WEIGHTS).ravel() * np.exp(log_p - top)
    total = w.sum()
    w /= total
    y = np.sqrt(v) * (t + hazard)
    spread = v * (1 - hazard * (t + hazard))
    first = np.array([w @ x, w @ y])
    across = w @ ((x - first[0]) * (y - first[1]))
    second = np.array([[w @ (x - first[0]) ** 2, across], [across, w @ (spread + (y - first[1]) ** 2)]])
    return top + np.log(total), first, second


@pytest.mark.parametrize("rho", [-0.999, -0.99, -0.6, -1e-9, 0.0, 0.4, 0.97, 0.999])
def test_moments_agree_with_nested_integrals(rho):
    rng = np.random.default_rng(abs(int(1e5 * rho)))
    n = 12
    sd = 10.0 ** rng.uniform(-2, 2, (n, 2))
    mean = rng.standard_normal((n, 2)) * sd * rng.choice([0.3, 1.0, 3.0], (n, 1))
    covariance = sd[:, :, None] * sd[:, None, :] * np.array([[1.0, rho], [rho, 1.0]])
    found = quadrant(mean, covariance)
    n_compared = 0
    for k in range(n):
        log_mass, first, second = by_rows(mean[k], covariance[k])
        if log_mass < -50:  # the reference's own variances cancel there
            continue
        n_compared += 1
        own = np.sqrt(np.diag(second))
        assert found.log_mass[k] == pytest.approx(log_mass, rel=1e-9, abs=1e-9)
        np.testing.assert_allclose((found.mean[k] - first) / own, 0.0, atol=1e-7)
        np.testing.assert_allclose((found.covariance[k] - second) / np.outer(own, own), 0.0, atol=1e-6)
    assert n_compared >= 5


def test_masses_are_those_of_scipy():
    rng = np.random.default_rng(0)
    half = rng.standard_normal((20, 2, 2))
    covariance = half @ half.transpose(0, 2, 1) + 0.05 * np.eye(2)
    mean = rng.standard_normal((20, 2))
    found = np.exp(quadrant(mean, covariance).log_mass)
    expected = [multivariate_normal(-m, v).cdf(np.zeros(2)) for m, v in zip(mean, covariance, strict=True)]
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_a_far_corner_is_two_exponentials():
    # far out the density falls like exp(-g'x) with g = inv(V) |m|: independent exponentials of mean 1 / g
    covariance = np.array([[[1.0, 0.3], [0.3, 2.0]]])
    mean = np.array([[-4e3, -7e3]])
    rate = np.linalg.solve(covariance[0], -mean[0])
    found = quadrant(mean, covariance)
    np.testing.assert_allclose(found.mean[0] * rate, 1.0, rtol=1e-5)
    np.testing.assert_allclose(np.diag(found.covariance[0]) * rate**2, 1.0, rtol=1e-5)


def test_units_and_order_do_not_matter():
    mean, covariance = np.array([[0.3, -1.2]]), np.array([[[1.0, -0.7], [-0.7, 2.0]]])
    plain = quadrant(mean, covariance)
    unit = np.array([1e-6, 1e5])
    other = quadrant(mean * unit, covariance * unit[:, None] * unit)
    turned = quadrant(mean[:, ::-1], covariance[:, ::-1, ::-1])
    np.testing.assert_allclose(other.mean / unit, plain.mean, rtol=1e-10)
    np.testing.assert_allclose(other.log_mass, plain.log_mass, rtol=1e-10)
    np.testing.assert_allclose(turned.covariance[:, ::-1, ::-1], plain.covariance, rtol=1e-8)


def test_nearly_everything_inside_leaves_the_normal_as_it_is():
    mean, covariance = np.array([[30.0, 25.0]]), np.array([[[1.0, -0.4], [-0.4, 1.5]]])
    found = quadrant(mean, covariance)
    np.testing.assert_allclose(found.log_mass, 0.0, atol=1e-10)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-10)
    np.testing.assert_allclose(found.covariance, covariance, atol=1e-9)
