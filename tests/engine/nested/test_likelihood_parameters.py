"""Degrees of freedom and dispersion of likelihoods as hyper-parameters, beside grids over all unknowns."""

import numpy as np
import pytest
from scipy import stats

import heliograph as hg


def moments(log_p, cell, *values):
    """The log of the integral over a grid, and mean and standard deviation of every value under it."""
    top = log_p.max()
    weight = np.exp(log_p - top)
    evidence = top + np.log(weight.sum() * cell)
    weight /= weight.sum()
    means = [(weight * v).sum() for v in values]
    return evidence, [(m, np.sqrt((weight * v**2).sum() - m**2)) for m, v in zip(means, values, strict=True)]


def test_scale_and_degrees_of_freedom_of_students_t_agree_with_a_grid():
    y = 1.0 + 0.7 * np.random.default_rng(3).standard_t(3, 80)
    model = hg.Model()
    s, nu = model.half_normal("s", 2.0), model.log_normal("nu", np.log(6.0), 0.7)
    mu = model.gaussian("mu", 0.0, sd=3.0)
    model.student_t("y", mu, scale=s, dof=nu, observed=y)
    posterior = model.infer()
    m, u, v = np.meshgrid(
        np.linspace(0.4, 1.8, 41), np.linspace(-1.4, 0.6, 41), np.linspace(-0.5, 4.5, 41), indexing="ij"
    )
    log_p = stats.t(np.exp(v)[..., None], m[..., None], np.exp(u)[..., None]).logpdf(y).sum(axis=-1)
    log_p += stats.norm(0, 3).logpdf(m) + stats.halfnorm(0, 2).logpdf(np.exp(u)) + u
    log_p += stats.norm(np.log(6), 0.7).logpdf(v)
    evidence, (of_mu, of_s, of_nu) = moments(log_p, (1.4 / 40) * (2.0 / 40) * (5.0 / 40), m, np.exp(u), np.exp(v))
    assert posterior.log_evidence == pytest.approx(evidence, abs=0.03)  # EP's own share is about .01
    for x, (mean, sd) in ((mu, of_mu), (s, of_s), (nu, of_nu)):
        assert posterior[x].mean == pytest.approx(mean, abs=0.05 * sd)
        assert posterior[x].sd == pytest.approx(sd, rel=0.05)


def test_the_dispersion_of_counts_agrees_with_a_grid():
    rng = np.random.default_rng(4)
    y = stats.nbinom(1.5, 1.5 / (1.5 + 4.0)).rvs(60, random_state=rng).astype(float)
    model = hg.Model()
    r, mu = model.log_normal("r", 0.0, 1.0), model.gaussian("mu", 0.0, sd=3.0)
    model.negative_binomial("y", log_mean=mu + np.zeros(60), dispersion=r, observed=y)
    posterior = model.infer()
    m, v = np.meshgrid(np.linspace(0.3, 2.5, 301), np.linspace(-2.0, 3.0, 301), indexing="ij")
    a, mean = np.exp(v)[..., None], np.exp(m)[..., None]
    log_p = stats.nbinom(a, a / (a + mean)).logpmf(y).sum(axis=-1)
    log_p += stats.norm(0, 3).logpdf(m) + stats.norm(0, 1).logpdf(v)
    evidence, (of_mu, of_r) = moments(log_p, (2.2 / 300) * (5.0 / 300), m, np.exp(v))
    assert posterior.log_evidence == pytest.approx(evidence, abs=0.02)
    for x, (centre, sd) in ((mu, of_mu), (r, of_r)):
        assert posterior[x].mean == pytest.approx(centre, abs=0.03 * sd)
        assert posterior[x].sd == pytest.approx(sd, rel=0.03)


def test_a_dispersion_of_which_few_counts_say_nothing_keeps_its_prior_and_says_so():
    model = hg.Model()
    r = model.log_normal("r", 2.0, 0.5)
    mu = model.gaussian("mu", 0.0, sd=0.1, size=2)
    model.negative_binomial("y", log_mean=mu, dispersion=r, observed=[1.0, 1.0])
    posterior = model.infer()
    assert "next to nothing about 'r'" in posterior.status
    assert posterior[r].mean == pytest.approx(np.exp(2.0 + 0.5 * 0.5**2), rel=0.05)
