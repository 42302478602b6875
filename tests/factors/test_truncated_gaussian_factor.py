"""Gaussian values that were recorded only between bounds: against SciPy, grids, and the model that they come from."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm, truncnorm

import heliograph as hg
from heliograph.factors import TruncatedGaussian

BOUNDS = {"below": (-np.inf, 1.0), "above": (-0.5, np.inf), "both": (-0.5, 2.0), "far": (-1e3, 1e3)}


def log_density(x, z, sd, low, high):
    return truncnorm.logpdf(x, (low - z) / sd, (high - z) / sd, loc=z, scale=sd)


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize(("m", "v"), [(0.3, 1.5), (-4.0, 9.0), (2.0, 1e-4)])
def test_moments_are_those_of_a_grid(bounds, m, v):
    low, high = BOUNDS[bounds]
    rows = {"variance": 0.49, "lower": low, "upper": high, "x": 0.2}
    z = np.linspace(m - 10 * np.sqrt(v), m + 10 * np.sqrt(v), 20_001)
    log_p = norm.logpdf(z, m, np.sqrt(v)) + log_density(0.2, z, 0.7, low, high)
    log_p = np.where(np.isfinite(log_p), log_p, -np.inf)
    p = np.exp(log_p - logsumexp(log_p))
    f, cavity = TruncatedGaussian(), hg.Gaussian(m, v)
    belief = f.belief("z", {"z": cavity, **rows})
    assert f.log_z({"z": cavity, **rows}) == pytest.approx(logsumexp(log_p) + np.log(z[1] - z[0]), abs=1e-6)
    assert belief.mean == pytest.approx((p * z).sum(), abs=1e-6)
    assert belief.variance == pytest.approx((p * (z - (p * z).sum()) ** 2).sum(), rel=1e-5)


def test_a_regression_of_recorded_values_is_that_of_a_grid():
    rng = np.random.default_rng(18)
    x = rng.standard_normal(200)
    y = 0.5 + x + rng.standard_normal(200)
    x, y = x[y > 0], y[y > 0]
    model = hg.Model()
    a, b = model.gaussian("a", 0.0, sd=3.0), model.gaussian("b", 0.0, sd=3.0)
    at = model.data("x", x)
    model.truncated_gaussian("y", a + b * at, sd=1.0, lower=0.0, observed=y)
    posterior = model.infer()
    u, v = np.meshgrid(np.linspace(-0.3, 1.7, 161), np.linspace(0.1, 1.9, 161), indexing="ij")
    log_p = norm.logpdf(u, 0, 3) + norm.logpdf(v, 0, 3)
    for xi, yi in zip(x, y, strict=True):
        log_p = log_p + norm.logpdf(yi, u + v * xi) - norm.logcdf(u + v * xi)
    p = np.exp(log_p - logsumexp(log_p))
    for w, belief in ((u, posterior[a]), (v, posterior[b])):
        mean = (p * w).sum()
        sd = np.sqrt((p * (w - mean) ** 2).sum())
        assert belief.mean == pytest.approx(mean, abs=0.01 * sd)
        assert belief.sd == pytest.approx(sd, rel=0.01)
    assert posterior.log_evidence == pytest.approx(logsumexp(log_p) + np.log(2 / 160 * 1.8 / 160), abs=5e-3)
    predicted = posterior.predict("y", x=[0.0, -3.0], draws=20_000)
    draws = posterior.sample(20_000, ["a", "b"], seed=3)
    for k, at in enumerate([0.0, -3.0]):
        z = draws["a"] + draws["b"] * at
        assert predicted.mean[k] == pytest.approx(truncnorm.mean(-z, np.inf, loc=z).mean(), abs=0.02)
    assert posterior.log_likelihood() < 0


def test_missing_values_say_nothing_and_an_unknown_scale_is_integrated_over():
    model = hg.Model()
    z, s = model.gaussian("z", 0.0, sd=3.0), model.half_normal("s", 2.0)
    model.truncated_gaussian("y", z, sd=s, lower=0.0, upper=5.0, observed=[0.2, np.nan, 1.5, 3.0, 0.4])
    posterior = model.infer()
    u, w = np.meshgrid(np.linspace(-14, 14, 701), np.linspace(0.02, 9, 500), indexing="ij")
    log_p = norm.logpdf(u, 0, 3) + norm.logpdf(w, 0, 2)
    for y in (0.2, 1.5, 3.0, 0.4):
        log_p = log_p + log_density(y, u, w, 0.0, 5.0)
    p = np.exp(log_p - logsumexp(log_p))
    assert posterior[z].mean == pytest.approx((p * u).sum(), abs=0.1)
    assert posterior[s].mean == pytest.approx((p * w).sum(), abs=0.1)


def test_what_is_wrong_is_said():
    model = hg.Model()
    z, g = model.gaussian("z", 0.0, sd=1.0), model.gamma("g", 1.0, 1.0)
    with pytest.raises(hg.ModelError, match=r"could not have been recorded.*censored="):
        model.truncated_gaussian("y", z, sd=1.0, lower=1.0, observed=[0.5])
    with pytest.raises(hg.ModelError, match="lower below upper"):
        model.truncated_gaussian("y", z, sd=1.0, observed=[0.5])
    with pytest.raises(hg.ModelError, match="exactly one of variance=, sd="):
        model.truncated_gaussian("y", z, lower=0.0, observed=[0.5])
    with pytest.raises(hg.HeliographError):
        model.truncated_gaussian("y", g, sd=1.0, lower=0.0, observed=[0.5])
    with pytest.raises(AttributeError, match="here it is called truncated_gaussian"):
        _ = model.truncated_normal
