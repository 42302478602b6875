"""Variables with a prior of their own in `infer(integrate=[...])`: they are numbers wherever the model uses them."""

import warnings

import numpy as np
import pytest
from scipy import stats

import heliograph as hg

Y = np.array([1.2, 3.0, 2.0])
sine = hg.factor(np.sin, output=hg.Gaussian)


def on_a_grid(log_prior, evidence, low, high, n=4001):
    """Mean, standard deviation and log evidence of one number, of which all else is Gaussian."""
    a = np.linspace(low, high, n)
    log_p = np.array([log_prior(v) + evidence(v) for v in a])
    p = np.exp(log_p - log_p.max())
    total, p = p.sum() * (a[1] - a[0]), p / p.sum()
    mean = p @ a
    return mean, np.sqrt(p @ (a - mean) ** 2), log_p.max() + np.log(total)


def normal(mean, covariance, y=Y):
    return float(stats.multivariate_normal.logpdf(y, np.full(len(y), mean), covariance))


NOISE, EVERY = 0.25 * np.eye(3), np.ones((3, 3))
EXPRESSIONS = {  # of a ~ N(1, 1) and b ~ N(.5, 4); where a is known, the mean, and the coefficient of b
    "2 * a + b": (lambda a, b: 2 * a + b, lambda a: (2 * a + 0.5, 1.0)),
    "-a + b": (lambda a, b: -a + b, lambda a: (0.5 - a, 1.0)),
    "a ** 2 + b": (lambda a, b: a**2 + b, lambda a: (a**2 + 0.5, 1.0)),
    "abs(a) + b": (lambda a, b: abs(a) + b, lambda a: (abs(a) + 0.5, 1.0)),
    "(a / 5 + 2) * b": (lambda a, b: (a / 5 + 2) * b, lambda a: ((a / 5 + 2) / 2, a / 5 + 2)),
    "(a / 5 + 2) * (b + 3)": (lambda a, b: (a / 5 + 2) * (b + 3), lambda a: (3.5 * (a / 5 + 2), a / 5 + 2)),
    "sine(a) + b": (lambda a, b: sine(a) + b, lambda a: (np.sin(a) + 0.5, 1.0)),
    "sine(a / 2) + b": (lambda a, b: sine(a / 2) + b, lambda a: (np.sin(a / 2) + 0.5, 1.0)),
}


def evidence_at(mean, coefficient):
    return normal(mean, NOISE + 4 * coefficient**2 * EVERY)


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_operators_take_a_gaussian_that_is_integrated_over(text):
    write, said = EXPRESSIONS[text]
    model = hg.Model()
    a, b = model.gaussian("a", 1.0, sd=1.0), model.gaussian("b", 0.5, sd=2.0)
    model.gaussian("y", write(a, b), sd=0.5, observed=Y)
    posterior = model.infer(integrate=[a], seed=0)
    mean, sd, evidence = on_a_grid(lambda v: stats.norm.logpdf(v, 1, 1), lambda v: evidence_at(*said(v)), -5, 7)
    assert posterior[a].mean == pytest.approx(mean, abs=0.03 * sd)
    assert posterior[a].sd == pytest.approx(sd, rel=0.03)
    assert posterior.log_evidence == pytest.approx(evidence, abs=0.03)


def test_entries_of_a_variable_that_is_integrated_over_are_told_apart():
    model = hg.Model()
    w = model.gaussian("w", [0.5, -1.0], sd=1.0)
    later, first = w[1], w[0]
    model.gaussian("y", 2 * first - later, sd=0.5, observed=2.0)
    model.gaussian("z", first + w[np.array([1, 0])], sd=0.5, observed=[0.0, 1.0])
    posterior, exact = model.infer(integrate=[w]), model.infer()
    np.testing.assert_allclose(posterior[w].mean, exact[w].mean, atol=0.01)
    np.testing.assert_allclose(posterior[w].sd, exact[w].sd, rtol=0.02)
    np.testing.assert_allclose(posterior[w.T[1]].mean, exact[w[1]].mean, atol=0.01)
    assert posterior.log_evidence == pytest.approx(exact.log_evidence, abs=0.01)


def walk(spreads, weight=1.0, y=None):
    """The log density of a walk from N(0, 1), seen with noise of variance .09."""
    n = len(spreads) + 1
    step = np.eye(n)
    for k in range(1, n):
        step[k:, :k] = 0.0
        step[k, :k] = weight * step[k - 1, :k]
    return normal(0.0, step @ np.diag([1.0, *spreads]) @ step.T + 0.09 * np.eye(n), y)


SEEN = np.array([0.5, 1.2, 0.3, 0.9, 2.0, 1.5, 1.9])


def test_functions_that_a_chain_calls_take_the_number_too():
    model = hg.Model()
    tau = model.gamma("tau", 2.0, 1.0)
    double = 2.0 * tau
    x = model.chain("x", 7, hg.Gaussian(0.0, 1.0), lambda before: model.gaussian("x", before, precision=double))
    model.gaussian("y", x, sd=0.3, observed=SEEN)
    posterior = model.infer(integrate=[tau])
    truth = on_a_grid(lambda v: stats.gamma.logpdf(v, 2), lambda v: walk(np.full(6, 0.5 / v), y=SEEN), 1e-3, 20)
    np.testing.assert_allclose([posterior[tau].mean, posterior[tau].sd], truth[:2], rtol=0.01)
    assert posterior.log_evidence == pytest.approx(truth[2], abs=0.01)


def test_a_coefficient_of_a_chain_is_a_gaussian_that_is_integrated_over():
    model = hg.Model()
    phi = model.gaussian("phi", 0.5, sd=0.5)
    x = model.chain("x", 7, hg.Gaussian(0.0, 1.0), lambda before: model.gaussian("x", phi * before, sd=0.5))
    model.gaussian("y", x, sd=0.3, observed=SEEN)
    posterior = model.infer(integrate=[phi])
    prior = stats.norm(0.5, 0.5).logpdf
    mean, sd, evidence = on_a_grid(prior, lambda v: walk(np.full(6, 0.25), v, SEEN), -3, 4)
    assert posterior[phi].mean == pytest.approx(mean, abs=0.03 * sd)
    assert posterior[phi].sd == pytest.approx(sd, rel=0.03)
    assert posterior.log_evidence == pytest.approx(evidence, abs=0.02)


def test_the_slope_of_the_evidence_follows_functions_of_numbers_only():
    """What a factor of numbers sends is a point, which moves with them: the messages around it are not those of a fixed point."""
    model = hg.Model()
    t, b = model.flat("t", -3.0, 3.0), model.gaussian("b", 0.5, sd=2.0)
    model.gaussian("y", sine(t) + b, sd=0.5, observed=Y)
    posterior = model.infer(seed=0)
    truth = on_a_grid(lambda v: -np.log(6), lambda v: evidence_at(np.sin(v) + 0.5, 1.0), -3, 3)
    assert posterior[t].mean == pytest.approx(truth[0], abs=0.02 * truth[1])
    assert posterior.log_evidence == pytest.approx(truth[2], abs=0.01)


def test_mass_that_ends_where_the_model_is_impossible_is_said():
    model = hg.Model()
    a, b = model.gaussian("a", 1.0, sd=1.0), model.gaussian("b", 0.5, sd=2.0)
    model.constrain(a > 0)
    model.gaussian("y", a + b, sd=0.5, observed=Y)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        posterior = model.infer(integrate=[a])
    assert not posterior.converged
    assert "impossible" in posterior.status
    assert any(issubclass(w.category, hg.AccuracyWarning) for w in said)


def test_what_is_read_of_such_a_posterior_against_a_grid():
    """Marginals of what was computed of numbers, covariances, draws, predictions, likelihoods of the data."""
    x = np.array([1.0, 2.0, 3.0])
    model = hg.Model()
    a, b = model.gaussian("a", 1.0, sd=1.0), model.gaussian("b", 0.5, sd=2.0)
    tau = model.gamma("tau", 2.0, 1.0)
    double, precise = 2 * a, 3.0 * tau
    line = double * model.data("x", x) + b
    model.gaussian("y", line, precision=precise, observed=Y)
    posterior = model.infer(integrate=[a, tau], seed=0)

    t, v = np.geomspace(1e-3, 12, 300), np.linspace(-4, 5, 400)[:, None]
    rest = Y - 2 * v[..., None] * x
    spread = 1 / (0.25 + 9 * t)  # of b, given both
    mean = (0.125 + 3 * t * rest.sum(axis=-1)) * spread
    log_p = (
        stats.norm.logpdf(v, 1, 1) + stats.gamma.logpdf(t, 2) + stats.norm.logpdf(mean, 0.5, 2) + 0.5 * np.log(spread)
    )
    log_p = log_p + stats.norm.logpdf(rest, mean[..., None], 1 / np.sqrt(3 * t[:, None])).sum(axis=-1)
    p = np.exp(log_p - log_p.max()) * np.gradient(t)
    p /= p.sum()

    def moments(f, inner=0.0):
        centre = (p * f).sum()
        return centre, np.sqrt((p * (inner + (f - centre) ** 2)).sum())

    mean_a, sd_a = moments(v)
    covariance = (p * (v - mean_a) * mean).sum()
    for asked, truth in (
        (double, moments(2 * v)),
        (precise, moments(3 * t)),
        (line[1], moments(4 * v + mean, spread)),
        (a + b, moments(v + mean, spread)),
    ):
        assert posterior[asked].mean == pytest.approx(truth[0], abs=0.03 * truth[1])
        assert posterior[asked].sd == pytest.approx(truth[1], rel=0.03)
    assert posterior.covariance(a, b) == pytest.approx(covariance, rel=0.03)
    assert posterior.covariance(double, a) == pytest.approx(2 * sd_a**2, rel=0.03)
    assert posterior.covariance(double, line[0]) == pytest.approx(2 * covariance + 4 * sd_a**2, rel=0.03)
    draws = posterior.sample(20_000, seed=0)
    assert np.cov(draws["a"], draws["b"])[0, 1] == pytest.approx(covariance, rel=0.1)
    new = moments(8 * v + mean, spread)
    assert posterior.predict(line, x=[4.0], seed=0).mean[0] == pytest.approx(new[0], abs=0.1 * new[1])
    assert posterior.predict(line, x=[4.0], seed=0).sd[0] == pytest.approx(new[1], rel=0.1)
    seen = stats.norm.pdf(Y[:, None, None], 2 * v * x[:, None, None] + mean, np.sqrt(spread + 1 / (3 * t)))
    pointwise = np.log((p * seen).sum(axis=(1, 2)))
    np.testing.assert_allclose(posterior.log_likelihood(pointwise=True)["y"], pointwise, atol=0.03)
    assert posterior.log_likelihood() == pytest.approx(pointwise.sum(), abs=0.05)
