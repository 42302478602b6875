"""Runs with unknown precisions begin by mean-field messages: they converge where EP from uniform messages does not."""

import numpy as np
import pytest
from benchmarks.peers import gibbs
from scipy.special import polygamma, psi

import heliograph as hg

SEEDS = range(3)


def check(posterior, variables, draws, sd_within):
    """Means within a fifth of an sd of Gibbs sampling, on the log scale for Gamma beliefs, and sds within a share."""
    assert posterior.converged, posterior.status
    for k, v in enumerate(variables):
        b = posterior[v]
        mean, sd = b.mean, np.sqrt(b.variance)
        if isinstance(b, hg.Gamma):
            mean, sd = psi(b.shape_parameter) - np.log(b.rate), np.sqrt(polygamma(1, b.shape_parameter))
        assert mean == pytest.approx(draws[:, k].mean(), abs=0.2 * draws[:, k].std())
        assert sd == pytest.approx(draws[:, k].std(), rel=sd_within)


@pytest.mark.parametrize("n", [40, 200])
@pytest.mark.parametrize("seed", SEEDS)
def test_student_t_noise_of_unknown_scale(seed, n):
    """The rate's prior Gamma(1, 1) has no expected inverse, so that EP's first messages from it do not exist."""
    y = 3.0 + 2.0 * np.random.default_rng(seed).standard_t(4.0, n)
    model = hg.Model()
    rate, mu = model.gamma("rate", 1.0, 1.0), model.gaussian("mu", 0.0, variance=100.0)
    model.gaussian("y", mu, precision=model.gamma("tau", 2.0, rate, size=n), observed=y)
    posterior = model.infer(seed=seed)
    check(posterior, [mu, rate], np.array(gibbs.student_t(np.random.default_rng(99), y, 2.0, 4000)), 0.1)
    assert posterior.n_sweeps <= 12


@pytest.mark.filterwarnings("ignore:the belief of")  # mean and precision are kept apart, and the run says so
@pytest.mark.parametrize("seed", SEEDS)
def test_two_unknown_precisions_in_one_hierarchy(seed):
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(12), 4)
    y = rng.normal(rng.normal(1.0, 1.5, 12)[group], 0.7)
    model = hg.Model()
    mu = model.gaussian("mu", 0.0, variance=100.0)
    between, within = model.gamma("between", 1.0, 1.0), model.gamma("within", 1.0, 1.0)
    theta = model.gaussian("theta", mu, precision=between, size=12)
    model.gaussian("y", theta[group], precision=within, observed=y)
    check(model.infer(), [mu, within, between], gibbs.hierarchical(np.random.default_rng(99), y, group, 12, 5000), 0.15)


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e4])
def test_a_regression_with_unknown_noise_begins_in_any_units(unit):
    rng = np.random.default_rng(5)
    x = rng.normal(size=(80, 3))
    y = unit * (x @ [1.0, -2.0, 0.5] + 0.3 * rng.normal(size=80))
    model = hg.Model()
    w, tau = (
        model.gaussian("w", np.zeros(3), covariance=1e4 * unit**2 * np.eye(3)),
        model.gamma("tau", 1e-3, 1e-3 * unit**2),
    )
    model.gaussian("y", x @ w, precision=tau, observed=y)
    posterior = model.infer()
    fit, squares, *_ = np.linalg.lstsq(x, y, rcond=None)
    assert posterior.converged
    assert posterior.n_sweeps <= 6
    assert posterior[w].mean == pytest.approx(fit, rel=1e-3)
    assert posterior[tau].mean == pytest.approx(77 / squares[0], rel=0.01)


def test_over_dispersed_counts_with_an_unknown_precision_converge():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(150, 2))
    y = rng.poisson(np.exp(x @ [0.5, -0.5] + 1.0 + 0.5 * rng.normal(size=150)))
    model = hg.Model()
    w, tau = model.gaussian("w", np.zeros(3), covariance=10.0 * np.eye(3)), model.gamma("tau", 1.0, 1.0)
    noise = model.gaussian("noise", 0.0, precision=tau, size=150)
    model.poisson("y", log_rate=np.column_stack([x, np.ones(150)]) @ w + noise, observed=y)
    posterior = model.infer()
    assert posterior.converged, posterior.status
    assert posterior[w].mean == pytest.approx([0.5, -0.5, 1.0], abs=0.25)
    assert 1.0 / posterior[tau].mean == pytest.approx(0.25, abs=0.12)


def test_the_order_of_rows_does_not_matter():
    y = 3.0 + 2.0 * np.random.default_rng(1).standard_t(4.0, 60)
    found = []
    for order in (np.arange(60), np.random.default_rng(2).permutation(60)):
        model = hg.Model()
        rate, mu = model.gamma("rate", 1.0, 1.0), model.gaussian("mu", 0.0, variance=100.0)
        model.gaussian("y", mu, precision=model.gamma("tau", 2.0, rate, size=60), observed=y[order])
        posterior = model.infer()
        found.append(
            np.array(
                [posterior[mu].mean, posterior[mu].variance, posterior[rate].mean, posterior.log_evidence], dtype=float
            )
        )
    assert found[0] == pytest.approx(found[1], rel=1e-6)


def test_a_start_leaves_the_fixed_point_where_it_is(monkeypatch):
    """From uniform messages, where EP converges from there too, the answer is the same."""
    y = np.random.default_rng(0).normal(2.0, 1.5, 30)

    def run():
        model = hg.Model()
        mu, tau = model.gaussian("mu", 0.0, variance=100.0), model.gamma("tau", 1.0, 1.0)
        model.gaussian("y", mu, precision=tau, observed=y)
        p = model.infer(tolerance=1e-6, structure="factorised")
        return p.n_sweeps, np.array(
            [p[mu].mean, p[mu].variance, p[tau].mean, p[tau].variance, p.log_evidence], dtype=float
        )

    sweeps, started = run()
    monkeypatch.setattr("heliograph.engine.run.start_messages", lambda *_: None)
    more, uniform = run()
    assert started == pytest.approx(uniform, rel=1e-5)
    assert sweeps < more


def hard(name, rng, n):
    """A model that EP finds hard, with few rows of data."""
    model = hg.Model()
    y = 10.0 ** rng.uniform(-2, 2) * rng.standard_t(2.0, n)
    tiny = 10.0 ** rng.uniform(-6, 0)
    if name == "mean and precision":
        model.gaussian(
            "y", model.gaussian("mu", 0.0, variance=100.0), precision=model.gamma("tau", tiny, tiny), observed=y
        )
    elif name == "student":
        tau = model.gamma("tau", 0.5, model.gamma("rate", 1.0, tiny), size=n)
        model.gaussian("y", model.gaussian("mu", 0.0, variance=100.0), precision=tau, observed=y)
    elif name == "hierarchy":
        theta = model.gaussian(
            "theta", model.gaussian("mu", 0.0, variance=100.0), precision=model.gamma("a", 1.0, tiny), size=n
        )
        model.gaussian("y", theta, precision=model.gamma("b", 1.0, tiny), observed=y)
    elif name == "mixture":
        which = model.categorical("which", model.dirichlet("p", np.ones(3)), size=n)
        means = model.gaussian("means", 0.0, variance=100.0, size=3)
        model.mixture("y", which, means, precision=model.gamma("tau", 1.0, tiny, size=3), observed=y)
    else:
        a, b = model.gaussian("a", 0.0, variance=1.0, size=(n, 1)), model.gaussian("b", 0.0, variance=1.0, size=4)
        noise = model.gamma("tau", 1.0, tiny)
        model.gaussian("y", a * b, precision=noise, observed=10.0 ** rng.uniform(-2, 2) * rng.normal(size=(n, 4)))
    return model


@pytest.mark.filterwarnings("ignore::heliograph.errors.ConvergenceWarning")
@pytest.mark.parametrize("name", ["mean and precision", "student", "hierarchy", "mixture", "product"])
def test_no_sweep_leaves_a_variance_that_is_not_positive(name):
    """However hard the model, and wherever a run is cut off."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        model = hard(name, rng, int(rng.integers(1, 7)))
        for posterior, _ in hg.steps(model, max_sweeps=12, seed=seed):
            for v in model.variables:
                assert posterior[v].proper.all(), (name, seed, v)
                if isinstance(posterior[v], hg.Gaussian | hg.Gamma):
                    assert (posterior[v].is_point | (np.asarray(posterior[v].variance) > 0)).all()
