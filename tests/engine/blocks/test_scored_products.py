"""Likelihoods of a score with a product of two unknowns in it: against grids of the whole posterior."""

import numpy as np
import pytest
from scipy.special import expit, gammaln, logsumexp
from scipy.stats import binom, nbinom, norm, poisson

import heliograph as hg


def label(z, y):
    return np.log(np.where(y > 0, expit(z), expit(-z)))


LIKELIHOODS = {
    "logit": (lambda m, z, y: m.bernoulli("y", logit=z, observed=(y > 0) * 1.0), label),
    "probit": (
        lambda m, z, y: m.bernoulli("y", probit=z, observed=(y > 0) * 1.0),
        lambda z, y: norm.logcdf(np.where(y > 0, z, -z)),
    ),
    "binomial": (
        lambda m, z, y: m.binomial("y", 6, logit=z, observed=np.minimum(y, 6.0)),
        lambda z, y: binom.logpmf(np.minimum(y, 6.0), 6, expit(z)),
    ),
    "poisson": (lambda m, z, y: m.poisson("y", log_rate=z, observed=y), lambda z, y: poisson.logpmf(y, np.exp(z))),
    "negative binomial": (
        lambda m, z, y: m.negative_binomial("y", log_mean=z, dispersion=2.0, observed=y),
        lambda z, y: nbinom.logpmf(y, 2.0, 2.0 / (2.0 + np.exp(z))),
    ),
    "ordinal": (
        lambda m, z, y: m.ordinal("y", z, [0.0, 1.0], link="logit", observed=np.minimum(y, 2.0)),
        lambda z, y: np.log(
            np.diff([np.zeros_like(z), expit(-z), expit(1.0 - z), np.ones_like(z)], axis=0)[int(min(y, 2.0))]
        ),
    ),
}
SCORES = {
    "product": lambda a, b, x: a * b,
    "shifted": lambda a, b, x: b * (x - a),
    "minus": lambda a, b, x: 1.0 - a * b,
    "scaled": lambda a, b, x: 0.5 * (x * a - a * b * 1.5 + 0.3),
    "sums": lambda a, b, x: (x * b - 2.0) - (a * b + 0.4 * a),
}
MEAN, SD = (0.5, 1.0), (0.8, 0.6)


def on_a_grid(score, log_likelihood, x, y):
    """Evidence, means and sds of a and b."""
    a, b = np.meshgrid(*(np.linspace(m - 7 * s, m + 7 * s, 701) for m, s in zip(MEAN, SD, strict=True)), indexing="ij")
    log_p = norm.logpdf(a, MEAN[0], SD[0]) + norm.logpdf(b, MEAN[1], SD[1])
    for xi, yi in zip(x, y, strict=True):
        if not np.isnan(yi):
            with np.errstate(divide="ignore"):
                log_p = log_p + log_likelihood(score(a, b, xi), yi)
    p = np.exp(log_p - logsumexp(log_p))
    means = np.array([(p * v).sum() for v in (a, b)])
    sds = np.sqrt([(p * (v - m) ** 2).sum() for v, m in zip((a, b), means, strict=True)])
    return logsumexp(log_p) + 2 * np.log(14 / 700) + np.log(SD).sum(), means, sds


def written(score, observe, x, y):
    model = hg.Model()
    a = model.gaussian("a", MEAN[0], sd=SD[0])
    b = model.gaussian("b", MEAN[1], sd=SD[1])
    z = score(a, b, x)
    observe(model, z, y)
    return model, a, b, z


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("score", SCORES)
def test_one_row_is_exact(score, likelihood):
    observe, log_likelihood = LIKELIHOODS[likelihood]
    x, y = np.array([0.7]), np.array([2.0])
    evidence, means, sds = on_a_grid(SCORES[score], log_likelihood, x, y)
    model, a, b, _ = written(SCORES[score], observe, x, y)
    posterior = model.infer()
    assert posterior.converged
    assert posterior.log_evidence == pytest.approx(evidence, abs=1e-6)
    np.testing.assert_allclose([posterior[a].mean, posterior[b].mean], means, atol=1e-6)
    np.testing.assert_allclose([posterior[a].sd, posterior[b].sd], sds, rtol=1e-6)


@pytest.mark.filterwarnings("ignore:.* bend their posterior")
@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_many_rows_are_near_the_grid(likelihood):
    observe, log_likelihood = LIKELIHOODS[likelihood]
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, 30)
    y = rng.poisson(np.exp(0.4 * (x - 0.5))).astype(float)
    y[::7] = np.nan
    if likelihood in ("logit", "probit"):
        y = np.where(np.isnan(y), np.nan, (y > 0) * 1.0)
        observe = {
            "logit": lambda m, z, y: m.bernoulli("y", logit=z, observed=y),
            "probit": lambda m, z, y: m.bernoulli("y", probit=z, observed=y),
        }[likelihood]
    evidence, means, sds = on_a_grid(SCORES["shifted"], log_likelihood, x, y)
    model, a, b, _ = written(SCORES["shifted"], observe, x, y)
    posterior = model.infer()
    assert posterior.log_evidence == pytest.approx(evidence, abs=0.1)  # all rows share two numbers: EP's own error
    np.testing.assert_allclose(([posterior[a].mean, posterior[b].mean] - means) / sds, 0.0, atol=0.1)
    np.testing.assert_allclose([posterior[a].sd, posterior[b].sd], sds, rtol=0.13)


def test_the_score_and_all_on_the_way_can_be_read():
    """Leaves: moments of ``a b + rest`` under the joint belief, their correlation included."""
    rng = np.random.default_rng(1)
    x = rng.uniform(-2, 2, 12)
    model, _, _, z = written(SCORES["sums"], LIKELIHOODS["logit"][0], x, rng.integers(0, 2, 12) * 1.0)
    posterior = model.infer()
    draws = posterior.sample(200_000, ["a", "b"], seed=0)
    expected = SCORES["sums"](draws["a"][:, None], draws["b"][:, None], x)
    np.testing.assert_allclose(posterior[z].mean, expected.mean(axis=0), atol=0.02)
    np.testing.assert_allclose(posterior[z].sd, expected.std(axis=0), rtol=0.02)


def test_a_posterior_that_is_bent_is_said():
    """Counts that know the product well, and neither unknown: the posterior lies along a hyperbola."""
    model = hg.Model()
    a, b = model.gaussian("a", 0.5, sd=1.0), model.gaussian("b", 1.0, sd=1.0)
    model.poisson("y", log_rate=a * b + np.zeros(15), observed=np.full(15, 3.0))
    with pytest.warns(hg.AccuracyWarning, match="bend their posterior"):
        model.infer()


def test_rows_in_another_order_say_the_same():
    rng = np.random.default_rng(2)
    x, y = rng.uniform(-2, 2, 20), rng.integers(0, 2, 20) * 1.0
    order = rng.permutation(20)
    one, other = (written(SCORES["shifted"], LIKELIHOODS["logit"][0], x[k], y[k]) for k in (np.arange(20), order))
    p, q = one[0].infer(), other[0].infer()
    assert p[one[1]].mean == pytest.approx(q[other[1]].mean, abs=1e-9)
    assert p.log_evidence == pytest.approx(q.log_evidence, abs=1e-9)


def test_counts_that_are_sharp_take_the_adaptive_rule():
    """A count of 3,000 says far more of b than its prior: fixed nodes would miss it."""
    x, y = np.array([2.0]), np.array([3000.0])
    model = hg.Model()
    a = model.gaussian("a", 2.0, sd=0.01)
    b = model.gaussian("b", 3.0, sd=1.0)
    model.poisson("y", log_rate=a * b + x * 0.0, observed=y)
    posterior = model.infer()
    u, v = np.meshgrid(np.linspace(1.9, 2.1, 801), np.linspace(3.6, 4.4, 4001), indexing="ij")
    log_p = norm.logpdf(u, 2.0, 0.01) + norm.logpdf(v, 3.0) + 3000.0 * u * v - np.exp(u * v) - gammaln(3001.0)
    p = np.exp(log_p - logsumexp(log_p))
    mean = (p * v).sum()
    assert posterior[b].mean == pytest.approx(mean, abs=1e-6)
    assert posterior[b].sd == pytest.approx(np.sqrt((p * (v - mean) ** 2).sum()), rel=1e-4)
    assert posterior.log_evidence == pytest.approx(logsumexp(log_p) + np.log(0.2 / 800 * 0.8 / 4000), abs=1e-6)
    assert posterior[a].sd < 0.0101


@pytest.mark.filterwarnings("ignore:.* bend their posterior")
def test_a_table_of_labels_with_centred_factors_leaves_its_saddle():
    """Signs may be exchanged: a run that stayed between the modes would predict a half everywhere."""
    rng = np.random.default_rng(3)
    u, v = rng.standard_normal(20) * 2, rng.standard_normal(15) * 2
    y = (rng.random((20, 15)) < expit(np.outer(u, v))) * 1.0
    model = hg.Model()
    a = model.gaussian("a", 0.0, sd=2.0, size=20)
    b = model.gaussian("b", 0.0, sd=2.0, size=15)
    model.bernoulli("y", logit=a.reshape(20, 1) * b, observed=y)
    posterior = model.infer()
    guess = np.outer(posterior[a].mean, posterior[b].mean)
    assert np.corrcoef(guess.ravel(), np.outer(u, v).ravel())[0, 1] > 0.75
