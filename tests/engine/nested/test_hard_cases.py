"""Two modes, a variance that is zero, degrees of freedom of which the data say nothing, black boxes, and several dimensions."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import heliograph as hg
from heliograph.engine.nested.points import Evaluator
from heliograph.engine.nested.records import Error
from heliograph.engine.nested.remarks import doubts_of
from heliograph.engine.options import InferOptions


def weighted(log_p, step):
    top = log_p.max()
    weight = np.exp(log_p - top)
    return top + np.log(weight.sum() * step), weight / weight.sum()


def test_two_modes_are_both_found_and_said():
    model = hg.Model()
    a = model.flat("a", -3.0, 3.0)
    x = model.gaussian("x", 0.0, sd=0.1)
    model.gaussian("y", x + a**2, sd=0.2, observed=2.0)
    posterior = model.infer()
    grid = np.linspace(-3, 3, 20001)
    log_p = stats.norm(grid**2, np.sqrt(0.05)).logpdf(2.0) - np.log(6.0)
    evidence, weight = weighted(log_p, grid[1] - grid[0])
    assert posterior.integration.n_modes == 2
    assert "2 modes" in posterior.status
    assert posterior.log_evidence == pytest.approx(evidence, abs=0.02)
    assert posterior[a].mean == pytest.approx(0.0, abs=0.02)
    assert posterior[a].sd == pytest.approx(np.sqrt(weight @ grid**2), rel=0.02)


def test_a_variance_whose_truth_is_zero_is_said_to_be_possible_and_integrated_right():
    rng = np.random.default_rng(4)
    y = rng.normal(size=(12, 5))  # no group differs from another
    model = hg.Model()
    s = model.half_normal("s", 1.0)
    x = model.gaussian("x", 0.0, sd=s, size=12)
    model.gaussian("y", x.reshape(12, 1), sd=1.0, observed=y)
    posterior = model.infer()
    u = np.linspace(-9, 3, 4001)
    means = y.mean(axis=1)
    log_p = np.array([stats.norm(0, np.sqrt(np.exp(2 * v) + 0.2)).logpdf(means).sum() for v in u])
    log_p += stats.halfnorm().logpdf(np.exp(u)) + u
    log_p += (
        stats.norm(0, 1).logpdf(y).sum() - stats.norm(0, np.sqrt(0.2)).logpdf(means).sum()
    )  # what is inside the groups
    evidence, weight = weighted(log_p, u[1] - u[0])
    assert "'s' may be zero" in posterior.status
    assert posterior.log_evidence == pytest.approx(evidence, abs=0.01)
    assert posterior[s].mean == pytest.approx(weight @ np.exp(u), rel=0.02)
    assert posterior[s].quantile(0.9) == pytest.approx(np.exp(np.interp(0.9, np.cumsum(weight), u)), rel=0.03)


def student(y):
    model = hg.Model()
    nu = model.log_normal("nu", np.log(10.0), 1.0)
    precision = model.gamma("precision", nu / 2, nu / 2, size=len(y))
    model.gaussian("y", 0.0, precision=precision, observed=y)
    return model, nu


@pytest.mark.parametrize(("n", "heavy"), [(3, False), (60, True)])
def test_degrees_of_freedom_agree_with_a_grid_however_flat(n, heavy):
    rng = np.random.default_rng(n)
    y = rng.standard_t(2, n) if heavy else 0.7 * rng.normal(size=n)
    model, nu = student(y)
    posterior = model.infer()
    u = np.linspace(np.log(10) - 7, np.log(10) + 7, 3001)
    log_p = np.array([stats.t(np.exp(v)).logpdf(y).sum() for v in u]) + stats.norm(np.log(10), 1).logpdf(u)
    evidence, weight = weighted(log_p, u[1] - u[0])
    assert posterior.log_evidence == pytest.approx(evidence, abs=0.01)
    mean = weight @ np.exp(u)
    assert posterior[nu].mean == pytest.approx(mean, abs=0.02 * np.sqrt(weight @ np.exp(2 * u) - mean**2))
    assert ("next to nothing about 'nu'" in posterior.status) == (not heavy)


def test_a_correlation_and_two_scales_agree_with_a_grid():
    rng = np.random.default_rng(5)
    y = rng.normal(size=(40, 2)) @ np.linalg.cholesky([[1.0, 0.5], [0.5, 0.6]]).T
    model = hg.Model()
    s, r = model.half_normal("s", 1.0, size=2), model.lkj("R", 2, 2.0)
    model.gaussian("x", np.zeros((40, 2)), covariance=np.outer(s, s) * r, observed=y)
    posterior = model.infer()
    a, b, c = np.meshgrid(
        np.linspace(-0.9, 0.9, 61), np.linspace(-0.9, 0.9, 61), np.linspace(-0.8, 1.8, 61), indexing="ij"
    )
    sa, sb, rho = np.exp(a), np.exp(b), np.tanh(c)
    moments = y.T @ y
    det = (sa * sb) ** 2 * (1 - rho**2)
    form = (moments[0, 0] * sb**2 + moments[1, 1] * sa**2 - 2 * rho * sa * sb * moments[0, 1]) / det
    log_p = -0.5 * form - 20 * np.log(det) - 40 * np.log(2 * np.pi)
    log_p += stats.halfnorm().logpdf(sa) + a + stats.halfnorm().logpdf(sb) + b
    log_p += np.log(0.75 * (1 - rho**2)) + np.log(
        1 - rho**2
    )  # LKJ(2) of two is 3/4 (1 - rho^2); and the change of scale
    evidence, weight = weighted(log_p.ravel(), (1.8 / 60) ** 2 * (2.6 / 60))
    assert posterior.log_evidence == pytest.approx(evidence, abs=0.01)
    assert posterior[s].mean[0] == pytest.approx(weight @ sa.ravel(), rel=0.01)
    sd = np.sqrt(weight @ rho.ravel() ** 2 - (weight @ rho.ravel()) ** 2)
    assert posterior[r[0, 1]].mean == pytest.approx(weight @ rho.ravel(), abs=0.02 * sd)
    assert posterior[r[0, 1]].sd == pytest.approx(sd, rel=0.05)
    assert posterior.integration.n_evaluations <= 65


def test_an_autoregression_with_an_unknown_coefficient_agrees_with_dense_algebra_on_a_grid():
    rng = np.random.default_rng(6)
    n, y = 60, np.zeros(60)
    for t in range(1, n):
        y[t] = 0.7 * y[t - 1] + rng.normal()
    y = y + 0.3 * rng.normal(size=n)
    model = hg.Model()
    phi = model.flat("phi", -1.0, 1.0)
    x = model.chain(
        "x",
        n,
        lambda: model.gaussian("x", 0.0, sd=1 / np.sqrt(1 - phi**2)),
        lambda before: model.gaussian("x", phi * before, sd=1.0),
    )
    model.gaussian("y", x, sd=0.3, observed=y)
    posterior = model.infer()
    grid = np.linspace(-0.999, 0.999, 801)
    gaps = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    log_p, means = [], []
    for f in grid:
        prior = f**gaps / (1 - f**2)
        total = prior + 0.09 * np.eye(n)
        log_p.append(stats.multivariate_normal(np.zeros(n), total).logpdf(y) - np.log(2.0))
        means.append(prior @ np.linalg.solve(total, y))
    evidence, weight = weighted(np.array(log_p), grid[1] - grid[0])
    assert posterior.log_evidence == pytest.approx(evidence, abs=0.01)
    assert posterior[phi].mean == pytest.approx(weight @ grid, abs=2e-3)
    np.testing.assert_allclose(posterior[x].mean, weight @ np.array(means), atol=1e-3)


@pytest.mark.parametrize("kernel", ["rbf", "matern32", "matern52", "periodic"])
def test_a_gaussian_process_with_an_unknown_length_scale_agrees_with_dense_algebra_on_a_grid(kernel):
    rng = np.random.default_rng(7)
    t = np.sort(rng.uniform(0, 5, 25))
    y = np.sin(2 * t) + 0.2 * rng.normal(size=25)
    model = hg.Model()
    length = model.log_normal("length", 0.0, 0.7)
    f = model.gp("f", t, kernel, length_scale=length, amplitude=1.2, period=np.pi if kernel == "periodic" else None)
    model.gaussian("y", f, sd=0.2, observed=y)
    posterior = model.infer()
    u = np.linspace(-3.5, 3.5, 501)
    log_p = []
    for v in u:
        r = np.abs(np.subtract.outer(t, t)) / np.exp(v)
        shape = {
            "rbf": np.exp(-(r**2) / 2),
            "matern32": (1 + np.sqrt(3) * r) * np.exp(-np.sqrt(3) * r),
            "matern52": (1 + np.sqrt(5) * r + 5 * r**2 / 3) * np.exp(-np.sqrt(5) * r),
            "periodic": np.exp(-2 * (np.sin(np.subtract.outer(t, t)) / np.exp(v)) ** 2),
        }[kernel]
        total = 1.44 * (shape + 1e-6 * np.eye(25)) + 0.04 * np.eye(25)
        log_p.append(stats.multivariate_normal(np.zeros(25), total).logpdf(y) + stats.norm(0, 0.7).logpdf(v))
    evidence, weight = weighted(np.array(log_p), u[1] - u[0])
    assert posterior.log_evidence == pytest.approx(evidence, abs=0.01)
    assert posterior[length].mean == pytest.approx(weight @ np.exp(u), rel=0.01)
    np.testing.assert_allclose(posterior["f"].sd, posterior[f].sd, rtol=1e-3)  # the vector by its name, and its entries


def test_a_list_integrates_some_and_gives_the_others_their_best_value():
    rng = np.random.default_rng(8)
    model = hg.Model()
    s, noise = model.half_normal("s", 1.0), model.half_normal("noise", 1.0)
    x = model.gaussian("x", 0.0, sd=s, size=10)
    model.gaussian("y", x.reshape(10, 1), sd=noise, observed=rng.normal(size=(10, 6)) + rng.normal(size=(10, 1)))
    whole, part = model.infer(), model.infer(integrate=[s])
    assert part.integration.names == ("s",)
    assert "noise took their best value" in part.status
    assert part[noise].sd == pytest.approx(0.0, abs=1e-12)
    assert 0 < part[s].sd <= 1.05 * whole[s].sd


def test_a_gamma_precision_with_messages_can_be_integrated_instead():
    rng = np.random.default_rng(9)
    y = 2.0 * rng.normal(size=15)
    model = hg.Model()
    tau = model.gamma("tau", 2.0, 3.0)
    mu = model.gaussian("mu", 0.0, sd=10.0)
    model.gaussian("y", mu, precision=tau, observed=y)
    posterior = model.infer(integrate=[tau])
    u = np.linspace(-6, 4, 2001)
    log_p = []
    for v in u:
        total = np.exp(-v) * np.eye(15) + 100.0
        log_p.append(
            stats.multivariate_normal(np.zeros(15), total).logpdf(y) + stats.gamma(2, scale=1 / 3).logpdf(np.exp(v)) + v
        )
    evidence, weight = weighted(np.array(log_p), u[1] - u[0])
    assert posterior.log_evidence == pytest.approx(evidence, abs=0.01)
    assert posterior[tau].mean == pytest.approx(weight @ np.exp(u), rel=0.01)


@hg.factor(output=hg.Beta)
def logistic(z):
    return 1 / (1 + np.exp(-z))


@hg.factor(output=hg.Beta)
def steep(z, slope):
    return 1 / (1 + np.exp(-slope * z))


LABELS = (np.random.default_rng(1).random(30) < 0.6).astype(float)


def test_a_black_box_keeps_what_it_learned_from_value_to_value():
    logistic.forget()
    model = hg.Model()
    s = model.half_normal("s", 1.0)
    z = model.gaussian("z", model.gaussian("mu", 0.0, sd=2.0), sd=s, size=30)
    model.bernoulli("y", logistic(z), observed=LABELS)
    evaluator = Evaluator(model, model.draft.hypers, InferOptions())
    asked = []
    for u in np.linspace(-2.0, 0.8, 10):
        before = logistic.n_asked
        evaluator.at(np.array([u]), True)
        asked.append(logistic.n_asked - before)
    assert asked[0] > 0
    assert asked[-1] == 0
    by_box = model.infer()
    exact = hg.Model()
    s = exact.half_normal("s", 1.0)
    z = exact.gaussian("z", exact.gaussian("mu", 0.0, sd=2.0), sd=s, size=30)
    exact.bernoulli("y", logit=z, observed=LABELS)
    truth = exact.infer()
    assert by_box.log_evidence == pytest.approx(truth.log_evidence, abs=0.01)
    np.testing.assert_allclose(by_box["z"].mean, truth["z"].mean, atol=0.01)


def test_a_parameter_of_a_black_box_is_integrated():
    steep.forget()
    model, exact = hg.Model(), hg.Model()
    for m in (model, exact):
        slope = m.log_normal("slope", 0.0, 0.5)
        z = m.gaussian("z", m.gaussian("mu", 0.0, sd=2.0), sd=1.0, size=30)
        if m is model:
            m.bernoulli("y", steep(z, slope), observed=LABELS)
        else:
            m.bernoulli("y", logit=slope * z, observed=LABELS)
    found, truth = model.infer(), exact.infer()
    assert found.log_evidence == pytest.approx(truth.log_evidence, abs=0.02)
    assert found["slope"].mean == pytest.approx(float(truth["slope"].mean), rel=0.02)


def test_the_corrected_evidence_is_nearer_to_quadrature_than_the_plain_one():
    labels = np.ones(8)
    model = hg.Model()
    s = model.half_normal("s", 3.0)
    mu = model.gaussian("mu", 0.0, sd=s)
    z = mu + model.gaussian("e", 0.0, sd=0.5, size=8)
    model.bernoulli("y", logit=z, observed=labels)
    plain, better = model.infer(), model.infer(correct=True)
    x, w = np.polynomial.hermite_e.hermegauss(60)
    w = w / w.sum()
    u = np.linspace(-7, 3.5, 401)
    log_p = []
    for v in u:
        inner = (1 / (1 + np.exp(-(np.exp(v) * x[:, None] + 0.5 * x[None])))) @ w  # of one label, given mu
        log_p.append(np.log(w @ inner**8) + stats.halfnorm(scale=3).logpdf(np.exp(v)) + v)
    evidence, weight = weighted(np.array(log_p), u[1] - u[0])
    assert abs(better.log_evidence - evidence) < 0.02
    assert abs(better.log_evidence - evidence) < abs(plain.log_evidence - evidence) + 0.005
    assert better[s].mean == pytest.approx(weight @ np.exp(u), rel=0.03)


def test_the_correction_is_refused_where_it_would_not_be_one():
    model, _ = student(np.ones(5))
    with pytest.raises(hg.UnsupportedError, match="correct=False"):
        model.infer(correct=True)
    with pytest.raises(hg.ModelError, match="correct must be"):
        model.infer(correct="yes")


@pytest.mark.parametrize("counts", [True, False])
def test_a_gamma_precision_of_effects_joins_the_hyper_parameters_unless_all_data_are_gaussian(counts):
    rng = np.random.default_rng(10)
    model = hg.Model()
    tau, s = model.gamma("tau", 2.0, 2.0), model.half_normal("s", 1.0)
    x = model.gaussian("x", model.gaussian("mu", 0.0, sd=s), precision=tau, size=8)
    if counts:
        model.poisson("y", log_rate=x, observed=rng.poisson(3.0, 8))
    else:
        model.gaussian("y", x, sd=0.5, observed=rng.normal(size=8))
    posterior = model.infer()
    assert posterior.integration.names == (("s", "tau") if counts else ("s",))
    if counts:  # as it is if both are named
        named = model.infer(integrate=[s, tau])
        assert posterior[tau].mean == named[tau].mean
    assert np.isfinite(posterior[tau].sd)


def test_an_integration_that_is_rough_by_its_own_estimate_is_said_not_to_be_trusted():
    model = hg.Model()
    x = model.gaussian("x", 0.0, sd=model.half_normal("s", 1.0), size=6)
    model.gaussian("y", x, sd=1.0, observed=np.arange(6.0))
    posterior = model.infer()
    assert posterior.converged
    rough = replace(posterior.integration, error=Error(0.8, 0.1, 0.1))
    assert "not known well enough (log evidence within 0.8" in doubts_of(posterior._whole, rough)
