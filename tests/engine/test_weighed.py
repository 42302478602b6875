"""A settled run of few unknowns looks at itself: draws of its belief, weighed by the model, against integrals on grids."""

import re
import warnings

import numpy as np
import pytest
from scipy import stats
from scipy.special import log_expit, log_ndtr

import heliograph as hg
from heliograph.errors import AccuracyWarning

X = np.linspace(-12.0, 16.0, 28_001)


def _moments(log_density):
    top = log_density.max()
    weight = np.exp(log_density - top)
    log_z = np.log(weight.sum() * (X[1] - X[0])) + top
    weight /= weight.sum()
    mean = weight @ X
    return mean, np.sqrt(weight @ (X - mean) ** 2), log_z


def _ratio(text):
    return float(re.search(r"standard deviation is ([\d.e+-]+) times", text).group(1))


def _said(build, **settings):
    model = hg.Model()
    build(model)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        posterior = model.infer(**settings)
    assert posterior.converged
    return posterior, [str(w.message) for w in caught if issubclass(w.category, AccuracyWarning)]


def test_labels_that_all_agree_are_said_with_the_true_ratio():
    def build(m):
        a = m.gaussian("a", -1.43, variance=9.0)
        m.binomial("wins", [3, 2, 7, 1, 3], logit=2.0 * a, observed=[3, 2, 7, 1, 3])
        m.bernoulli("y", probit=1.066 * a - 1.5, observed=1)

    posterior, said = _said(build)
    log_density = stats.norm.logpdf(X, -1.43, 3.0) + 16 * log_expit(2.0 * X) + log_ndtr(1.066 * X - 1.5)
    _, sd, _ = _moments(log_density)
    assert sd / posterior["a"].sd > 1.15
    assert len(said) == 1 and _ratio(said[0]) == pytest.approx(sd / posterior["a"].sd, abs=0.08)


def test_a_statement_made_three_times_about_almost_the_same_is_said():
    def build(m):
        a = m.gaussian("a", 0.0, sd=3.0)
        m.constrain(m.between(m.gaussian("near", a + np.zeros(3), sd=0.01), 0.26, 2.2))

    posterior, said = _said(build)
    inside = stats.norm.cdf((X - 0.26) / 0.01) - stats.norm.cdf((X - 2.2) / 0.01)
    _, sd, _ = _moments(stats.norm.logpdf(X, 0.0, 3.0) + 3 * np.log(np.maximum(inside, 1e-300)))
    assert sd / posterior["a"].sd > 1.15
    assert _ratio(said[0]) == pytest.approx(sd / posterior["a"].sd, abs=0.08)


def test_labels_behind_a_magnitude_are_followed_through():
    def build(m):
        a = m.gaussian("a", 0.0, sd=1.0)
        m.gaussian("y", abs(a), sd=1.0, observed=[1.1, 2.3, 0.5])
        m.bernoulli("label", logit=4.0 * a - 0.15, observed=[1, 1])

    posterior, said = _said(build)
    log_density = stats.norm.logpdf(X) + 2 * log_expit(4.0 * X - 0.15)
    log_density += sum(stats.norm.logpdf(y, np.abs(X), 1.0) for y in (1.1, 2.3, 0.5))
    _, sd, _ = _moments(log_density)
    assert sd / posterior["a"].sd < 0.87
    assert len(said) == 1 and _ratio(said[0]) == pytest.approx(sd / posterior["a"].sd, abs=0.08)


def test_a_scale_times_a_vector_is_said_evidence_and_all():
    y, x = np.array([-0.4346, -3.705, 0.2173, -2.03]), np.array([0.61, -3.0, -2.3, 0.84])

    def build(m):
        w, a, t = m.gaussian("w", -0.77, variance=0.301), m.gaussian("a", 0.0, sd=1.0), m.gamma("t", 1.5, 1.0)
        m.student_t("y", t * (w + a * x), 1.0, 4.0, observed=y)

    posterior, said = _said(build)
    u, w, a = np.meshgrid(np.linspace(-9, 2.5, 116), np.linspace(-3.8, 2.2, 61), np.linspace(-5, 5, 101), indexing="ij")
    log_density = (
        stats.gamma.logpdf(np.exp(u), 1.5) + u + stats.norm.logpdf(w, -0.77, np.sqrt(0.301)) + stats.norm.logpdf(a)
    )
    for yi, xi in zip(y, x, strict=True):
        log_density += stats.t.logpdf(yi, 4.0, np.exp(u) * (w + a * xi), 1.0)
    log_z = np.log(np.exp(log_density).sum() * 0.1**3)
    assert posterior.log_evidence - log_z > 0.3
    assert said and float(re.search(r"evidence (-[\d.]+) nats", said[0]).group(1)) == pytest.approx(
        log_z - posterior.log_evidence, abs=0.12
    )


def test_what_stands_beside_a_scale_to_be_integrated_is_looked_at_too():
    def build(m):
        a, h = m.gaussian("a", -1.43, variance=9.0), m.half_normal("h", 1.0)
        m.gaussian("z", m.gaussian("b", 0.0, sd=1.0), sd=h, observed=[0.3, 0.1])
        m.binomial("wins", [3, 2, 7, 1, 3], logit=2.0 * a, observed=[3, 2, 7, 1, 3])

    _, said = _said(build)
    assert any(text.startswith("the belief of a ") for text in said)


@pytest.mark.parametrize("n", [1, 2, 3, 8, 30])
def test_ordinary_models_are_not_warned_of(n):
    rng = np.random.default_rng(n)
    z = rng.standard_normal(n)

    def build(m):
        a, b = m.gaussian("a", 0.0, sd=1.0), m.gaussian("b", 0.0, sd=1.0)
        m.bernoulli("y", logit=a + b * z, observed=rng.random(n) < 0.5)
        m.poisson("count", log_rate=0.5 * a, observed=[1, 2])
        m.poisson("other", m.gamma("g", 2.0, 1.0), observed=[np.nan, 3])
        m.bernoulli("unseen", probit=b, observed=[np.nan, 1])

    posterior, said = _said(build)
    assert said == []
    assert np.isfinite(posterior.log_evidence)


def test_gaussian_rows_beside_a_label_and_missing_entries_give_the_evidence_of_the_grid():
    def build(m):
        a = m.gaussian("a", 0.3, sd=1.2)
        m.gaussian("y", a, sd=0.7, observed=[1.0, np.nan])
        m.bernoulli("label", logit=a, observed=[1, 0, np.nan])

    posterior, said = _said(build)
    log_density = stats.norm.logpdf(X, 0.3, 1.2) + stats.norm.logpdf(1.0, X, 0.7) + log_expit(X) + log_expit(-X)
    assert posterior.log_evidence == pytest.approx(_moments(log_density)[2], abs=0.02)
    assert said == []


def _expected(log_density, *values):
    """Means and standard deviations under a density on a grid."""
    weight = np.exp(log_density - log_density.max())
    weight /= weight.sum()
    means = [np.sum(weight * v) for v in values]
    return means, [np.sqrt(np.sum(weight * (v - m) ** 2)) for v, m in zip(values, means, strict=True)]


def test_a_mode_that_the_run_missed_is_found_by_draws_that_follow_the_weight():
    y = np.array([0.0835, -1.151, -2.666, -2.657])

    def build(m):
        a, b = m.gaussian("a", 1.8, sd=0.3), m.gaussian("b", -1.7, sd=1.0)
        m.poisson("count", log_rate=0.7 * b, observed=0)
        m.student_t("y", b + np.zeros(4), 1.0, 3.0, observed=y)
        m.gaussian("far", abs(a - b), sd=0.3, observed=[7.257], censored=[True])

    posterior, said = _said(build)
    a, b = np.meshgrid(np.linspace(-3, 4, 351), np.linspace(-9, 9, 901), indexing="ij")
    log_density = stats.norm.logpdf(a, 1.8, 0.3) + stats.norm.logpdf(b, -1.7) - np.exp(0.7 * b)
    log_density += sum(stats.t.logpdf(v, 3.0, b) for v in y) + stats.norm.logsf(7.257, np.abs(a - b), 0.3)
    log_z = np.log(np.exp(log_density).sum() * 0.02**2)
    (_, mean), _ = _expected(log_density, a, b)
    assert mean < -4.0 and posterior["b"].mean > 0
    assert len(said) == 3
    found = float(re.search(r"evidence \+([\d.e+]+) nats", said[0]).group(1))
    assert found == pytest.approx(log_z - posterior.log_evidence, rel=0.05)  # printed with two digits


def test_modes_behind_squares_that_signs_do_not_reach_are_found():
    x = np.array([[1.3, -0.52], [-1.1, 1.4], [0.11, 0.68], [-1.5, -0.51]])
    u = np.array([[-0.72, -1.6], [-0.23, -0.86], [-0.35, -0.93], [-0.15, -1.7]])
    y, trials, wins = np.array([4.334, 4.712, -0.357, 5.593]), np.array([3, 5, 3, 6]), np.array([0, 1, 0, 2])
    covariance = np.array([[2.356, -0.886], [-0.886, 0.838]])

    def build(m):
        b = m.gaussian("b", np.zeros(2), covariance=covariance)
        m.laplace("y", (x @ b) ** 2, 1.0, observed=y)
        m.binomial("wins", trials, logit=u @ b - 1.6, observed=wins)

    posterior, said = _said(build, damping=0.4)
    b = np.stack(np.meshgrid(np.linspace(-6, 6, 601), np.linspace(-4, 4, 401), indexing="ij"), axis=-1)
    log_density = stats.multivariate_normal(np.zeros(2), covariance).logpdf(b)
    log_density += stats.laplace.logpdf(y, (b @ x.T) ** 2).sum(axis=-1)
    log_density += stats.binom.logpmf(wins, trials, 1 / (1 + np.exp(1.6 - b @ u.T))).sum(axis=-1)
    _, sds = _expected(log_density, b[..., 0], b[..., 1])
    largest = (sds / posterior["b"].sd).max()
    assert largest > 2
    assert len(said) == 1 and _ratio(said[0]) == pytest.approx(largest, rel=0.1)


def test_vectors_and_scales_that_nothing_speaks_of_keep_nobody_from_looking():
    def build(m):
        a = m.gaussian("a", 0.14, sd=1.0)
        m.gaussian("unused", np.zeros(2), covariance=np.eye(2))
        m.gamma("t", 3.0, 1.0)
        m.constrain((a * np.ones(2)) ** 2 > -0.39)
        m.ordinal("y", a**2, [-1.0, 0.2, 1.5], link="logit", observed=1)

    posterior, said = _said(build)
    log_density = stats.norm.logpdf(X, 0.14) + np.log(1 / (1 + np.exp(X**2 - 0.2)) - 1 / (1 + np.exp(X**2 + 1.0)))
    _, sd, _ = _moments(log_density)
    assert sd / posterior["a"].sd > 1.15
    assert len(said) == 1 and _ratio(said[0]) == pytest.approx(sd / posterior["a"].sd, abs=0.08)


@pytest.mark.parametrize(
    ("say", "log_density"),
    [
        (lambda m, a: m.gaussian("y", (a**2) ** 2, sd=1.0, observed=3.0), stats.norm(3.0, 1.0).logpdf(X**4)),
        (lambda m, a: m.constrain(m.maximum(a + 1.5, 0.0) > 1.0), np.where(X > -0.5, 0.0, -np.inf)),
    ],
)
def test_one_statement_about_a_function_of_a_function_is_looked_at(say, log_density):
    posterior, said = _said(lambda m: say(m, m.gaussian("a", -1.5, sd=2.0)))
    mean, sd, _ = _moments(stats.norm.logpdf(X, -1.5, 2.0) + log_density)
    wrong = abs(float(posterior["a"].mean) - mean) / sd > 0.1 or abs(np.log(posterior["a"].sd / sd)) > 0.1
    assert wrong and len(said) == 1


def test_a_function_of_what_only_readers_hear_of_is_drawn_with_it():
    def build(m):  # one unknown whose posterior nobody waits for, behind a square; another that is looked at
        b = m.gaussian("b", 0.0, sd=3.0)
        m.bernoulli("label", logit=b**2, observed=0)
        a = m.gaussian("a", -1.43, variance=9.0)
        m.binomial("wins", [3, 2, 7, 1, 3], logit=2.0 * a, observed=[3, 2, 7, 1, 3])

    _, said = _said(build)
    assert len(said) == 1 and "the belief of a " in said[0]


def test_values_of_functions_are_no_further_unknowns():
    centres = np.linspace(-0.7, 0.7, 20)
    labels = np.arange(20) % 5 > 0

    def build(m):  # twenty unknowns, and the values of a function of one of them each
        a = m.gaussian("a", centres, sd=1.0)
        m.bernoulli("y", logit=a**2, observed=labels)

    posterior, said = _said(build)
    sides = np.where(labels, 1.0, -1.0)
    exact = [_moments(stats.norm.logpdf(X, c, 1.0) + log_expit(s * X**2)) for c, s in zip(centres, sides, strict=True)]
    assert sum(log_z for _, _, log_z in exact) - posterior.log_evidence > 0.35
    assert len(said) == 1
