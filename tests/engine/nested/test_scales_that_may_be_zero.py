"""Scales that may be zero: their tails are long on the scale of their logarithms, and were lost in four dimensions."""

import warnings

import numpy as np
import pytest
from scipy import stats

import heliograph as hg
from heliograph.graph.hyper import half_cauchy_prior, half_normal_prior, uniform_prior

PRIORS = {
    "half_normal": (half_normal_prior(2.0, ()), stats.halfnorm(scale=2.0)),
    "half_cauchy": (half_cauchy_prior(2.0, ()), stats.halfcauchy(scale=2.0)),
    "flat": (uniform_prior(-1.0, 3.0, ()), stats.uniform(-1.0, 4.0)),
}


@pytest.mark.parametrize("name", PRIORS)
def test_a_prior_on_its_scale_is_the_prior(name):
    prior, exact = PRIORS[name]
    u = np.linspace(-12.0, 7.5, 40_001)
    density = np.exp(prior.log_density(u[:, None]))
    below = np.r_[0.0, np.cumsum(0.5 * (density[1:] + density[:-1]))] * (u[1] - u[0])
    value = prior.value(u[:, None])
    assert below[-1] == pytest.approx(1.0, abs=1e-6)
    np.testing.assert_allclose(below, exact.cdf(value), atol=1e-6)
    assert (np.diff(value)[np.abs(u[1:]) < 7.0] > 0).all()


@pytest.mark.parametrize("name", PRIORS)
def test_a_prior_on_its_scale_is_as_good_as_normal(name):
    prior, _ = PRIORS[name]
    u = np.linspace(-6.0, 3.0, 91)
    normal = stats.norm.logpdf(u)
    assert np.abs(prior.log_density(u[:, None]) - normal).max() < 0.9  # on the scale of log s it is 12 nats at -6
    assert np.isfinite(prior.log_density(np.array([[-60.0], [60.0]]))).all()
    assert np.isfinite(prior.value(np.array([[-60.0], [60.0]]))).all()


@pytest.mark.parametrize("size", [1e-6, 300.0])
def test_a_scale_that_is_at_odds_with_its_prior_is_found(size):
    rng = np.random.default_rng(0)
    y = size * rng.normal(size=40)
    model = hg.Model()
    s = model.half_normal("s", 1.0)
    model.gaussian("y", np.zeros(40), sd=s, observed=y)
    posterior = model.infer()
    grid = np.linspace(-16.0, 8.0, 24_001)
    log_p = stats.norm(0, np.exp(grid)[:, None]).logpdf(y).sum(axis=1) + stats.halfnorm().logpdf(np.exp(grid)) + grid
    w = np.exp(log_p - log_p.max())
    mean, second = w @ np.exp(grid) / w.sum(), w @ np.exp(2 * grid) / w.sum()
    sd = np.sqrt(second - mean**2)
    assert abs(posterior[s].mean - mean) < 0.03 * sd
    assert posterior[s].sd == pytest.approx(sd, rel=0.03)


def test_four_scales_that_may_be_zero_are_as_each_alone():
    """Groups that have nothing to do with each other: the exact posterior of each scale is one integral on a grid."""
    noise, seen = 0.5, [np.random.default_rng(k).normal(size=6) * (0.5 + 0.2 * k) for k in range(4)]
    model = hg.Model()
    scales = [model.half_normal(f"s{k}", 1.0) for k in range(4)]
    for k, (s, y) in enumerate(zip(scales, seen, strict=True)):
        model.gaussian(f"y{k}", model.gaussian(f"x{k}", 0.0, sd=s, size=6), sd=noise, observed=y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        posterior = model.infer()
    grid = np.linspace(0.0, 6.0, 6001)[1:]
    log_evidence = 0.0
    for s, y in zip(scales, seen, strict=True):
        log_p = stats.norm(0, np.sqrt(grid**2 + noise**2)[:, None]).logpdf(y).sum(axis=1) + stats.halfnorm().logpdf(
            grid
        )
        w = np.exp(log_p) * (grid[1] - grid[0])
        log_evidence += np.log(w.sum())
        mean = w @ grid / w.sum()
        sd = np.sqrt(w @ (grid - mean) ** 2 / w.sum())
        assert abs(posterior[s].mean - mean) < 0.03 * sd
        assert posterior[s].sd == pytest.approx(sd, rel=0.03)
    assert posterior.log_evidence == pytest.approx(log_evidence, abs=0.02)
