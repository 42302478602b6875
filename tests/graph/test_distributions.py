"""Every likelihood of the language against a grid and SciPy's densities: one datum per score, so that EP must be exact."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, log_expit, ndtr

import heliograph as hg
from heliograph.errors import HeliographError

MEAN, SD = 0.4, 1.3
GRID = np.linspace(MEAN - 14 * SD, MEAN + 14 * SD, 200001)


def weibull(t, shape, z):
    return stats.weibull_min.logpdf(t, shape, scale=np.exp(z))


def survival(t, shape, z):
    return stats.weibull_min.logsf(t, shape, scale=np.exp(z))


def within(a, b, shape, z):
    return np.log(np.exp(survival(a, shape, z)) - np.exp(survival(b, shape, z)))


T = np.array([0.3, 2.0, 9.0])
K = np.array([0.0, 2.0, 7.0])
CUTS = np.array([-1.0, 0.2, 1.5])
CASES = {
    "student_t": (
        lambda m, z: m.student_t("y", z, 0.7, 3.0, observed=T),
        lambda z, i: stats.t.logpdf(T[i], 3.0, z, 0.7),
    ),
    "laplace": (lambda m, z: m.laplace("y", z, 0.7, observed=T), lambda z, i: stats.laplace.logpdf(T[i], z, 0.7)),
    "binomial": (
        lambda m, z: m.binomial("y", 7, logit=z, observed=K),
        lambda z, i: stats.binom.logpmf(K[i], 7, expit(z)),
    ),
    "negative binomial": (
        lambda m, z: m.negative_binomial("y", log_mean=z, dispersion=2.5, observed=K),
        lambda z, i: stats.nbinom.logpmf(K[i], 2.5, 2.5 / (2.5 + np.exp(z))),
    ),
    "poisson": (
        lambda m, z: m.poisson("y", log_rate=z, observed=K),
        lambda z, i: stats.poisson.logpmf(K[i], np.exp(z)),
    ),
    "weibull": (
        lambda m, z: m.weibull("y", 1.7, log_scale=z, observed=T),
        lambda z, i: weibull(T[i], 1.7, z),
    ),
    "weibull, right": (
        lambda m, z: m.weibull("y", 1.7, log_scale=z, observed=T, censored="right"),
        lambda z, i: survival(T[i], 1.7, z),
    ),
    "weibull, left": (
        lambda m, z: m.weibull("y", 1.7, log_scale=z, observed=T, censored="left"),
        lambda z, i: stats.weibull_min.logcdf(T[i], 1.7, scale=np.exp(z)),
    ),
    "weibull, intervals": (
        lambda m, z: m.weibull("y", 0.8, log_scale=z, observed=T, until=2 * T),
        lambda z, i: within(T[i], 2 * T[i], 0.8, z),
    ),
    "weibull, all kinds": (
        lambda m, z: m.weibull("y", 1.2, log_scale=z, observed=T, censored=[0, 1, -1]),
        lambda z, i: [
            weibull(T[0], 1.2, z),
            survival(T[1], 1.2, z),
            stats.weibull_min.logcdf(T[2], 1.2, scale=np.exp(z)),
        ][i],
    ),
    "exponential": (
        lambda m, z: m.exponential("y", log_rate=z, observed=T, censored=[0, 1, 0]),
        lambda z, i: [weibull, survival, weibull][i](T[i], 1.0, -z),
    ),
    "gaussian, censored": (
        lambda m, z: m.gaussian("y", z, sd=0.8, observed=T, censored=[0, 1, -1]),
        lambda z, i: [stats.norm.logpdf, stats.norm.logsf, stats.norm.logcdf][i](T[i], z, 0.8),
    ),
    "gaussian, intervals": (
        lambda m, z: m.gaussian("y", z, sd=0.8, observed=T, until=[np.nan, 3.0, 9.5]),
        lambda z, i: (
            stats.norm.logpdf(T[0], z, 0.8)
            if i == 0
            else np.log(np.maximum(ndtr(([0, 3.0, 9.5][i] - z) / 0.8) - ndtr((T[i] - z) / 0.8), 1e-300))
        ),
    ),
    "ordinal probit": (
        lambda m, z: m.ordinal("y", z, CUTS, observed=[0, 2, 3]),
        lambda z, i: np.log(
            np.maximum(np.diff(ndtr(np.r_[-np.inf, CUTS, np.inf] - z[:, None]))[:, [0, 2, 3][i]], 1e-300)
        ),
    ),
    "ordinal logit": (
        lambda m, z: m.ordinal("y", z, CUTS, link="logit", observed=[0, 2, 3]),
        lambda z, i: np.log(np.diff(expit(np.r_[-np.inf, CUTS, np.inf] - z[:, None]))[:, [0, 2, 3][i]] + 1e-300),
    ),
    "softmax of two": (
        lambda m, z: m.categorical("y", logits=hg.stack([z, np.zeros(3)], axis=-1), observed=[0, 1, 0]),
        lambda z, i: log_expit([z, -z, z][i]),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_one_datum_per_score_is_exact(name):
    write, log_likelihood = CASES[name]
    model = hg.Model()
    z = model.gaussian("z", MEAN, sd=SD, size=3)
    write(model, z)
    posterior = model.infer()
    evidence = 0.0
    with np.errstate(divide="ignore"):
        for i in range(3):
            log_p = stats.norm.logpdf(GRID, MEAN, SD) + log_likelihood(GRID, i)
            p = np.exp(log_p - log_p.max())
            mean = (p * GRID).sum() / p.sum()
            np.testing.assert_allclose(posterior[z].mean[i], mean, atol=1e-6)
            np.testing.assert_allclose(posterior[z].variance[i], (p * (GRID - mean) ** 2).sum() / p.sum(), rtol=1e-5)
            evidence += log_p.max() + np.log(p.sum() * (GRID[1] - GRID[0]))
    np.testing.assert_allclose(posterior.log_evidence, evidence, atol=1e-6)


def test_softmax_of_three_is_exact_on_a_grid():
    model = hg.Model()
    s = model.gaussian("s", [0.2, -0.4, 0.1], covariance=[[1.5, 0.3, 0.0], [0.3, 0.8, -0.2], [0.0, -0.2, 1.1]])
    y = model.categorical("y", logits=s, observed=1)
    free = model.categorical("free", logits=s)
    posterior = model.infer()
    axis = np.linspace(-8, 8, 161)
    u = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1).reshape(-1, 3)
    cov = np.array([[1.5, 0.3, 0.0], [0.3, 0.8, -0.2], [0.0, -0.2, 1.1]])
    p = stats.multivariate_normal([0.2, -0.4, 0.1], cov).pdf(u)
    soft = np.exp(u) / np.exp(u).sum(1, keepdims=True)
    w = p * soft[:, 1]
    z = w.sum() * 0.1**3
    np.testing.assert_allclose(posterior.log_evidence, np.log(z), atol=1e-6)
    mean = (w[:, None] * u).sum(0) / w.sum()
    np.testing.assert_allclose(posterior[s].mean, mean, atol=1e-5)
    covariance = np.einsum("n,ni,nj->ij", w, u - mean, u - mean) / w.sum()
    np.testing.assert_allclose(posterior[s].covariance, covariance, atol=1e-5)
    told = (w[:, None] * soft).sum(0) / w.sum()
    np.testing.assert_allclose(posterior[free].p, told, atol=2e-3)  # of the projected belief
    assert y.shape == ()


def test_counts_of_categories_are_conjugate():
    model = hg.Model()
    p = model.dirichlet("p", [1.0, 2.0, 0.5])
    counts = np.array([[3.0, 0.0, 1.0], [np.nan, 1.0, 2.0], [2.0, 2.0, 5.0]])
    model.multinomial("y", p, observed=counts)
    posterior = model.infer()
    np.testing.assert_allclose(posterior[p].mean, np.array([6.0, 4.0, 6.5]) / 16.5)
    seen = counts[[0, 2]]
    first = stats.dirichlet_multinomial.logpmf(seen[0].astype(int), np.array([1.0, 2.0, 0.5]), 4)
    second = stats.dirichlet_multinomial.logpmf(seen[1].astype(int), np.array([4.0, 2.0, 1.5]), 9)
    np.testing.assert_allclose(posterior.log_evidence, first + second)


def test_lifetimes_with_a_gamma_rate_are_conjugate():
    model = hg.Model()
    rate = model.gamma("rate", 2.0, 3.0)
    model.exponential("t", rate, observed=[1.0, 2.0, 4.0], censored=[0, 1, 1])
    posterior = model.infer()
    np.testing.assert_allclose([posterior[rate].shape_parameter, posterior[rate].rate], [3.0, 10.0])
    np.testing.assert_allclose(posterior.log_evidence, np.log(2.0) + 2 * np.log(3.0) - 3 * np.log(10.0))


def test_a_uniform_variable_meets_a_measurement():
    model = hg.Model()
    x = model.uniform("x", -1.0, 3.0)
    model.gaussian("y", x, sd=1.0, observed=2.5)
    posterior = model.infer()
    cut = stats.truncnorm(-3.5, 0.5, 2.5, 1.0)
    np.testing.assert_allclose([posterior[x].mean, posterior[x].variance], [cut.mean(), cut.var()], rtol=1e-9)
    np.testing.assert_allclose(posterior.log_evidence, np.log((ndtr(0.5) - ndtr(-3.5)) / 4.0), rtol=1e-9)


@pytest.mark.parametrize("word", ["student_t", "laplace"])
def test_noise_between_two_unknowns_of_one_block_is_one_site(word):
    model = hg.Model()
    a = model.gaussian("a", 0.0, sd=2.0)
    x = model.student_t("x", a, 1.0, 3.0) if word == "student_t" else model.laplace("x", a, 1.0)
    model.gaussian("s", a + x, sd=0.5, observed=1.0)
    posterior = model.infer()
    u, v = np.meshgrid(np.linspace(-12, 12, 1201), np.linspace(-60, 60, 6001), indexing="ij")
    noise = stats.t.logpdf(v, 3.0) if word == "student_t" else stats.laplace.logpdf(v)
    log_p = stats.norm.logpdf(u, 0, 2) + noise + stats.norm.logpdf(1.0, 2 * u + v, 0.5)
    p = np.exp(log_p - log_p.max())
    mean = (p * u).sum() / p.sum()
    np.testing.assert_allclose(posterior[a].mean, mean, atol=1e-4)
    np.testing.assert_allclose(posterior[a].variance, (p * (u - mean) ** 2).sum() / p.sum(), rtol=1e-3)


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (lambda m, z: m.binomial("y", 3, logit=z, observed=4.0), "more successes"),
        (lambda m, z: m.binomial("y", 3, observed=1.0), "exactly one of p and logit="),
        (lambda m, z: m.weibull("y", -1.0, log_scale=z, observed=1.0), "its shape must be greater than 0"),
        (lambda m, z: m.weibull("y", 1.0, log_scale=z, observed=-1.0), "lifetimes must be greater than 0"),
        (lambda m, z: m.weibull("y", 1.0, log_scale=z, observed=1.0, censored="up"), "'left', 'right'"),
        (lambda m, z: m.weibull("y", 1.0, log_scale=z, observed=1.0, censored=2), "-1 where it is below"),
        (lambda m, z: m.weibull("y", 1.0, log_scale=z, observed=1.0, until=0.5), "ends above"),
        (lambda m, z: m.ordinal("y", z, [1.0, 0.0]), "rises"),
        (lambda m, z: m.ordinal("y", z, [0.0, 1.0], link="cauchy"), "'probit' or 'logit'"),
        (lambda m, z: m.ordinal("y", z, [0.0, 1.0], observed=3.0), "impossible"),
        (lambda m, z: m.categorical("y", logits=z), "one score per category"),
        (lambda m, z: m.categorical("y"), "exactly one of p and logits="),
        (lambda m, z: m.student_t("y", z, scale=0.0), "its scale must be greater than 0"),
        (lambda m, z: m.uniform("y", 1.0, 1.0), "below its upper bound"),
        (lambda m, z: m.multinomial("y", z, observed=[1.0]), "Dirichlet"),
        (lambda m, z: m.gaussian("y", z, sd=1.0, censored="left"), "observed="),
    ],
)
def test_a_wrong_use_says_what_is_wrong_and_leaves_no_name_behind(write, words):
    model = hg.Model()
    z = model.gaussian("z", 0.0, sd=1.0)
    with pytest.raises(HeliographError) as error:
        write(model, z)
    assert words in str(error.value)
    model.gaussian("y", z, sd=1.0, observed=0.0)  # the cell of a notebook can be run again


PREDICTED = {
    "binomial": (lambda m, z: m.binomial("y", 7, logit=z), lambda z: (7 * expit(z), 7 * expit(z) * expit(-z))),
    "negative binomial": (
        lambda m, z: m.negative_binomial("y", log_mean=z, dispersion=5.0),
        lambda z: (np.exp(z), np.exp(z) + np.exp(2 * z) / 5),
    ),
    "weibull": (
        lambda m, z: m.weibull("y", 2.0, log_scale=z),
        lambda z: (np.exp(z) * stats.weibull_min.mean(2.0), np.exp(2 * z) * stats.weibull_min.var(2.0)),
    ),
    "student_t": (lambda m, z: m.student_t("y", z, 0.5, 9.0), lambda z: (z, 0.25 * 9 / 7 + 0 * z)),
    "ordinal": (
        lambda m, z: m.ordinal("y", z, [0.5], link="logit"),
        lambda z: (expit(z - 0.5), expit(z - 0.5) * expit(0.5 - z)),
    ),
}


@pytest.mark.parametrize("name", PREDICTED)
def test_what_was_not_observed_is_predicted(name):
    write, moments = PREDICTED[name]
    model = hg.Model()
    z = model.gaussian("z", 0.3, sd=0.4)
    write(model, z)
    drawn = np.asarray(model.infer().predict("y", draws=40000, seed=1).samples).reshape(40000, -1)[:, 0]
    score = 0.3 + 0.4 * np.linspace(-8, 8, 2001)
    p = stats.norm.pdf(score, 0.3, 0.4)
    p /= p.sum()
    mean, variance = moments(score)
    total = (p * mean).sum()
    spread = (p * (variance + (mean - total) ** 2)).sum()
    np.testing.assert_allclose(drawn.mean(), total, atol=5 * np.sqrt(spread / 40000))
    np.testing.assert_allclose(drawn.var(), spread, rtol=0.08)  # five errors of the heaviest tail here


def test_missing_entries_of_censored_values_say_nothing():
    """`missing=` beside `censored=` was ignored in silence."""
    found = []
    for more in (
        {"observed": [1.0, 2.0, 3.0, 9.0], "censored": [0, 0, 1, 1], "missing": [0, 0, 0, 1]},
        {"observed": [1.0, 2.0, 3.0, np.nan], "censored": [0, 0, 1, 1], "size": 4},
        {"observed": [1.0, 2.0, 3.0], "censored": [0, 0, 1]},
    ):
        model = hg.Model()
        z = model.gaussian("z", 0.0, sd=2.0)
        model.gaussian("y", z, sd=1.0, **more)
        found.append(model.infer()[z].mean)
    np.testing.assert_allclose(found, found[2], rtol=1e-12)
    with pytest.raises(hg.ModelError, match="does not fit size=3"):
        hg.Model().gaussian("y", 0.0, sd=1.0, observed=[1.0, 2.0], censored=[0, 1], size=3)
