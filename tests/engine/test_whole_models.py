"""Whole models with published or independently computed answers."""

import csv
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtri
from scipy.stats import gamma, norm

import heliograph as hg

UCI = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "uci"


def _trueskill(draw):
    mu, sigma, beta, tau = 25.0, 25 / 3, 25 / 6, 25 / 300
    margin = ndtri((0.1 + 1) / 2) * np.sqrt(2) * beta
    model = hg.Model()
    skill = model.gaussian("skill", mu, variance=sigma**2 + tau**2, size=2)
    shown = model.gaussian("performance", skill, variance=beta**2)
    gap = shown[0] - shown[1]
    model.constrain(abs(gap) < margin if draw else gap > margin)
    return model.infer()[skill]


def test_trueskill_s_win():
    belief = _trueskill(draw=False)
    assert belief.mean == pytest.approx([29.396, 20.604], abs=1e-3)
    assert np.sqrt(belief.variance) == pytest.approx([7.171, 7.171], abs=1e-3)


def test_trueskill_s_draw():
    belief = _trueskill(draw=True)
    assert belief.mean == pytest.approx([25.0, 25.0], abs=1e-3)
    assert np.sqrt(belief.variance) == pytest.approx([6.458, 6.458], abs=1e-3)


def test_a_truncated_gaussian_s_evidence_is_a_tail_probability():
    model = hg.Model()
    x = model.gaussian("x", 0.0, variance=1.0)
    model.constrain(x > 0.5)
    posterior = model.infer()
    assert posterior.log_evidence == pytest.approx(norm.logsf(0.5), abs=1e-10)
    assert posterior[x].mean == pytest.approx(norm.pdf(0.5) / norm.sf(0.5), abs=1e-10)


@pytest.mark.parametrize("schedule", ["parallel", "sequential"])
def test_the_mean_and_precision_of_a_gaussian_come_close_to_quadrature(schedule):
    rng = np.random.default_rng(0)
    seen = rng.normal(5.0, 2.0, 60)
    model = hg.Model()
    mean = model.gaussian("mean", 0.0, variance=100.0)
    precision = model.gamma("precision", 1.0, 1.0)
    model.gaussian("x", mean, precision=precision, observed=seen)
    posterior = model.infer(schedule=schedule)
    assert posterior.converged

    def joint(m, log_t, extra=lambda m, t: 1.0):
        t = np.exp(log_t)
        log_p = norm.logpdf(m, 0, 10) - t + log_t  # Gamma(1, 1), times the Jacobian of the log
        log_p += (
            norm.logpdf(seen[:, None], m, 1 / np.sqrt(t)).sum(axis=0)
            if np.ndim(m)
            else norm.logpdf(seen, m, t**-0.5).sum()
        )
        return np.exp(log_p + 130.0) * extra(m, t)

    grid_m, grid_t = np.meshgrid(np.linspace(3, 7, 401), np.linspace(-3, 0.5, 401), indexing="ij")
    weight = joint(grid_m.ravel(), grid_t.ravel()).reshape(grid_m.shape)
    cell = (grid_m[1, 0] - grid_m[0, 0]) * (grid_t[0, 1] - grid_t[0, 0])
    z = weight.sum()
    # EP is approximate here; with 60 observations it is close
    assert posterior[mean].mean == pytest.approx((weight * grid_m).sum() / z, abs=2e-3)
    exact_t = (weight * np.exp(grid_t)).sum() / z
    assert posterior[precision].mean == pytest.approx(exact_t, rel=5e-3)
    assert posterior.log_evidence == pytest.approx(np.log(z * cell) - 130.0, abs=2e-2)


def test_one_observation_of_a_mean_and_precision_has_exact_evidence():
    model = hg.Model()
    mean = model.gaussian("mean", 1.0, variance=2.0)
    precision = model.gamma("precision", 3.0, 2.0)
    model.gaussian("x", mean, precision=precision, observed=0.3)
    exact, _ = quad(lambda t: gamma.pdf(t, 3, scale=0.5) * norm.pdf(0.3, 1, np.sqrt(2 + 1 / t)), 0, 40, epsabs=1e-13)
    assert model.infer().log_evidence == pytest.approx(np.log(exact), abs=1e-6)


def test_a_poisson_tracker_equals_dense_ep_with_sites_on_a_grid():
    counts, model = [0.0, 1.0, 2.0], hg.Model()
    states = [model.gaussian("s0", 0.0, precision=0.01)]
    states += [model.gaussian("s1", states[0], precision=10.0)]
    states += [model.gaussian("s2", states[1], precision=10.0)]
    for t, x in enumerate(states):
        model.poisson(f"y{t}", log_rate=x, observed=counts[t])
    posterior = model.infer(tolerance=1e-11, max_sweeps=500)
    prior = np.diag([0.01, 0.0, 0.0])
    for a, b in ((0, 1), (1, 2)):
        u = np.eye(3)[a] - np.eye(3)[b]
        prior += 10 * np.outer(u, u)
    tau, shift = np.zeros(3), np.zeros(3)
    for i in [0, 1, 2] * 60:
        v = np.linalg.inv(prior + np.diag(tau))
        m = v @ shift
        precision = 1 / v[i, i] - tau[i]
        centre = (m[i] / v[i, i] - shift[i]) / precision
        z = centre + np.linspace(-12, 12, 4001) / np.sqrt(precision)
        log_p = -0.5 * precision * (z - centre) ** 2 + counts[i] * z - np.exp(z)
        p = np.exp(log_p - log_p.max())
        p /= p.sum()
        mean = p @ z
        variance = p @ (z - mean) ** 2
        tau[i], shift[i] = 1 / variance - precision, mean / variance - precision * centre
    v = np.linalg.inv(prior + np.diag(tau))
    assert [posterior[x].mean for x in states] == pytest.approx(v @ shift, abs=1e-7)
    assert [posterior[x].variance for x in states] == pytest.approx(np.diag(v), abs=1e-7)


def test_a_mixture_of_two_gaussians_finds_both():
    rng = np.random.default_rng(5)
    seen = np.where(rng.random(200) < 0.3, rng.normal(-3, 1, 200), rng.normal(3, 1, 200))
    model = hg.Model()
    weights = model.dirichlet("weights", [1.0, 1.0])
    means = model.gaussian("means", 0.0, variance=25.0, size=2)
    which = model.categorical("which", weights, size=200)
    model.mixture("x", which, means, variance=1.0, observed=seen)
    posterior = model.infer(seed=1)
    assert sorted(posterior[means].mean) == pytest.approx([-3, 3], abs=0.35)
    order = np.argsort(posterior[means].mean)
    assert posterior[weights].mean[order] == pytest.approx([0.3, 0.7], abs=0.08)


def test_a_bayes_point_machine_learns_and_predicts():
    incomes = [63, 16, 28, 55, 22, 20]
    ages = [38, 23, 40, 27, 18, 40]
    buys = [1, 0, 1, 1, 0, 0]
    x = np.column_stack([incomes, ages, np.ones(6)])
    new = np.array([[58, 36, 1], [18, 24, 1], [22, 37, 1]], dtype=float)
    model = hg.Model()
    w = model.gaussian("w", np.zeros(3), covariance=np.eye(3))
    score = model.gaussian("score", np.vstack([x, new]) @ w, variance=0.1)
    y = score > 0
    model.observe(y, [*buys, np.nan, np.nan, np.nan])
    posterior = model.infer()
    # the numbers that Infer.NET's tutorial prints for this model
    assert posterior[y].p[6:] == pytest.approx([0.9555, 0.1565, 0.287], abs=2e-3)


@pytest.mark.skipif(not UCI.exists(), reason="the authors' UCI splits (../shared/data/uci) are not here")
@pytest.mark.parametrize(
    ("name", "printed"),
    [("banknote", 0.0307), ("blood_transfusion", 0.3492), ("fertility", 0.5600), ("ionosphere", 0.1333)],
)
def test_logistic_regression_on_the_paper_s_uci_splits(name, printed):
    def read(part):
        with (UCI / f"{name}_{part}.csv").open() as f:
            table = np.array([[float(v) for v in row] for row in csv.reader(f) if _is_number(row[0])])
        return table[:, :-1], table[:, -1]

    (x, y), (x_test, y_test) = read("train"), read("test")
    d = x.shape[1]
    model = hg.Model()
    w = model.gaussian("w", np.zeros(d), covariance=np.eye(d))
    model.bernoulli("y", logit=x @ w, observed=y > 0)
    *_, (posterior, _) = hg.steps(model, stop=hg.after(10))  # as many as the paper's, settled or not
    wrong = ((x_test @ posterior[w].mean > 0) != (y_test > 0)).mean()
    assert round(wrong, 4) == pytest.approx(printed, abs=1e-9)


def _is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True
