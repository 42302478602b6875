"""A Beta around an unknown mean, against grids: the factor, a hierarchy of proportions, and an unknown concentration."""

import numpy as np
import pytest
from scipy.special import betaln, expit
from scipy.stats import beta

import heliograph as hg
from heliograph.factors import BetaMean
from heliograph.families import Beta

Z = np.linspace(-60.0, 60.0, 24_001)
M, Q = expit(Z), expit(-Z)


def tilted(a, b, log_f):
    """Log Z and normalised weights over the logit of the mean."""
    log_p = a * np.log(M) + b * np.log(Q) - betaln(a, b) + log_f
    p = np.exp(log_p - log_p.max())
    return np.log(p.sum() * (Z[1] - Z[0])) + log_p.max(), p / p.sum()


@pytest.mark.parametrize("a,b", [(1.0, 1.0), (0.7, 3.0), (40.0, 25.0)])
@pytest.mark.parametrize("k", [0.3, 5.0, 300.0])
@pytest.mark.parametrize("c,d", [(0.0, 4.0), (7.0, 3.0), (200.0, 900.0)])
def test_both_directions_have_the_moments_of_a_fine_grid(a, b, k, c, d):
    log_z, p = tilted(a, b, betaln(M * k + c, Q * k + d) - betaln(M * k, Q * k) - betaln(c + 1, d + 1))
    incoming = {"mean": Beta(a, b), "concentration": k, "p": Beta(c + 1, d + 1)}
    factor = BetaMean()
    np.testing.assert_allclose(factor.log_z(incoming), log_z, atol=1e-7)
    for got, grid in zip(factor.belief("mean", incoming).expected_statistics(), (np.log(M), np.log(Q)), strict=True):
        np.testing.assert_allclose(got, p @ grid, rtol=1e-6)
    first, total = (M * k + c) / (k + c + d), k + c + d
    second = first * (M * k + c + 1.0) / (total + 1.0)
    belief = factor.belief("p", incoming)
    np.testing.assert_allclose(belief.mean, p @ first, rtol=1e-6)
    np.testing.assert_allclose(belief.variance, p @ second - (p @ first) ** 2, rtol=1e-5)


@pytest.mark.parametrize("k", [0.5, 20.0, 5000.0])
def test_an_observed_proportion_tells_of_its_mean_what_a_grid_says(k):
    log_z, p = tilted(2.0, 3.0, beta.logpdf(0.3, M * k, Q * k))
    incoming = {"mean": Beta(2.0, 3.0), "concentration": k, "p": Beta.point_mass(0.3)}
    np.testing.assert_allclose(BetaMean().log_z(incoming), log_z, atol=1e-7)
    got = BetaMean().belief("mean", incoming).expected_statistics()
    np.testing.assert_allclose(got, [p @ np.log(M), p @ np.log(Q)], rtol=1e-6)


HITS, BATS = np.array([18, 17, 3, 15, 14, 9, 0, 12]), np.array([45, 45, 20, 45, 44, 45, 6, 30])


def hierarchy(concentration):
    model = hg.Model()
    m = model.beta("m", 2.0, 2.0)
    k = concentration(model)
    p = model.beta("p", mean=m, concentration=k, size=len(HITS))
    model.binomial("hits", BATS, p, observed=HITS)
    return model, m, p


def log_marginal(k):
    """The log likelihood of the counts without their binomial coefficients, for each mean of the grid."""
    return sum(betaln(M * k + y, Q * k + n - y) - betaln(M * k, Q * k) for y, n in zip(HITS, BATS, strict=True))


def test_a_hierarchy_of_proportions_is_that_of_a_grid():
    model, m, p = hierarchy(lambda model: 12.0)
    posterior = model.infer()
    _, w = tilted(2.0, 2.0, log_marginal(12.0))
    mean = w @ M
    assert posterior.converged
    np.testing.assert_allclose(posterior[m].mean, mean, atol=0.02 * np.sqrt(w @ (M - mean) ** 2))
    np.testing.assert_allclose(posterior[m].variance, w @ (M - mean) ** 2, rtol=0.03)
    each = [w @ ((M * 12.0 + y) / (12.0 + n)) for y, n in zip(HITS, BATS, strict=True)]
    np.testing.assert_allclose(posterior[p].mean, each, atol=2e-3)


def test_an_unknown_concentration_is_integrated_over():
    model, m, _ = hierarchy(lambda model: model.log_normal("k", 2.0, 1.0))
    posterior = model.infer()
    logs = np.linspace(-3.0, 7.0, 41)
    found = [tilted(2.0, 2.0, log_marginal(np.exp(u))) for u in logs]
    w = np.exp(np.array([z for z, _ in found]) - 0.5 * (logs - 2.0) ** 2)
    w /= w.sum()
    np.testing.assert_allclose(posterior["k"].mean, w @ np.exp(logs), rtol=0.03)
    np.testing.assert_allclose(posterior[m].mean, w @ [p @ M for _, p in found], atol=2e-3)


def test_what_a_beta_cannot_take_says_what_it_can():
    model = hg.Model()
    m, z = model.beta("m", 1.0, 1.0), model.gaussian("z", 0.0, sd=1.0)
    for write, words in (
        (lambda: model.beta("p", mean=m), "concentration="),
        (lambda: model.beta("p", 1.0, 1.0, mean=m, concentration=3.0), "or mean="),
        (lambda: model.beta("p", m, 1.0), "mean="),
        (lambda: model.beta("p", mean=z, concentration=3.0), "model.sigmoid"),
        (lambda: model.beta("p", mean=m, concentration=-3.0), "concentration"),
        (lambda: model.beta("p", mean=0.0, concentration=3.0), "between 0 and 1"),
    ):
        with pytest.raises(hg.HeliographError, match=words):
            write()
    known = model.beta("known", mean=0.25, concentration=8.0)
    assert float(model.infer()[known].a) == 2.0
    p = model.beta("p", mean=model.sigmoid(z), concentration=30.0)
    model.binomial("y", 20, p, observed=15.0)
    posterior = model.infer()
    log_p = -0.5 * Z**2 + betaln(M * 30 + 15, Q * 30 + 5) - betaln(M * 30, Q * 30)
    w = np.exp(log_p - log_p.max())
    w /= w.sum()
    np.testing.assert_allclose(posterior[z].mean, w @ Z, atol=0.02)
