"""Values that share mean and precision are one factor: against grids, row by row, and against conjugate formulas."""

import numpy as np
import pytest
from benchmarks.peers.gibbs import mean_and_precision
from scipy import stats
from scipy.special import polygamma, psi

import heliograph as hg
from heliograph.engine.pooling import GaussianSample
from heliograph.factors import GaussianPrecision
from heliograph.families import Gamma, Gaussian


def sample(y):
    return {
        "count": np.array([float(len(y))]),
        "average": np.array([y.mean()]),
        "squares": np.array([((y - y.mean()) ** 2).sum()]),
    }


def grid(y, mean, tau, power=1.0):
    """log Z and the marginal moments of one sample by brute force over the mean and the log precision."""
    m, u = np.linspace(-25, 25, 1501)[:, None], np.linspace(-16, 8, 1501)[None, :]
    t = np.exp(u)
    log_p = stats.norm.logpdf(m, *mean) + stats.gamma.logpdf(t, tau[0], scale=1 / tau[1]) + u
    log_p = log_p + power * sum(0.5 * (u - np.log(2 * np.pi)) - 0.5 * t * (v - m) ** 2 for v in y)
    step = (m[1, 0] - m[0, 0]) * (u[0, 1] - u[0, 0])
    top = log_p.max()
    p = np.exp(log_p - top)
    z = p.sum()
    return top + np.log(z * step), [(p * f).sum() / z for f in (m, m**2, t, u + 0 * m)]


@pytest.mark.parametrize("power", [1.0, 0.5])
@pytest.mark.parametrize("n", [1, 2, 3, 12])
def test_beliefs_and_evidence_are_those_of_a_grid(n, power):
    y = np.random.default_rng(n).normal(1.0, 2.0, n)
    log_z, (m, m2, t, log_t) = grid(y, (0.5, 2.0), (1.5, 2.0), power)
    incoming = {"mean": Gaussian([0.5], 4.0), "precision": Gamma([1.5], 2.0), **sample(y)}
    factor = GaussianSample()
    assert factor.log_z(incoming, power) == pytest.approx(log_z, abs=2e-6)
    belief = factor.belief("mean", incoming, power)
    assert belief.mean == pytest.approx(m, abs=1e-5)
    assert belief.variance == pytest.approx(m2 - m**2, rel=1e-5)
    belief = factor.belief("precision", incoming, power)
    assert belief.mean == pytest.approx(t, rel=1e-5)
    assert psi(belief.shape_parameter) - np.log(belief.rate) == pytest.approx(log_t, abs=1e-5)


def test_a_known_end_gives_the_product_of_the_rows():
    y = np.array([1.0, 2.5, -0.3, 4.0])
    rows = {"x": Gaussian.point_mass(y)}
    for known in (
        {"mean": Gaussian.point_mass([0.7]), "precision": Gamma([2.0], 3.0)},
        {"mean": Gaussian([0.7], 2.0), "precision": Gamma.point_mass([1.3])},
    ):
        to = "precision" if known["mean"].point is not None else "mean"
        each = GaussianPrecision().message(to, {**rows, **{k: v.broadcast_to((4,)) for k, v in known.items()}})
        together = GaussianSample().message(to, {**known, **sample(y)})
        for a, b in zip(together.naturals, each.naturals, strict=True):
            assert a == pytest.approx(b.sum(), rel=1e-12)
    both = {"mean": Gaussian.point_mass([0.7]), "precision": Gamma.point_mass([1.3]), **sample(y)}
    assert GaussianSample().log_z(both) == pytest.approx(stats.norm.logpdf(y, 0.7, 1.3**-0.5).sum(), rel=1e-12)


def test_beside_an_unknown_mean_the_squares_still_speak():
    y = np.array([1.0, 2.5, -0.3, 4.0])
    sent = GaussianSample().message(
        "precision", {"mean": Gaussian.uniform((1,)), "precision": Gamma([2.0], 3.0), **sample(y)}
    )
    assert sent.naturals[0] == pytest.approx(1.5)
    assert sent.naturals[1] == pytest.approx(0.5 * sample(y)["squares"][0])


@pytest.mark.parametrize("n", [2, 3, 5, 10, 1000])
@pytest.mark.parametrize("unit", [1e-4, 1.0, 1e5])
def test_a_mean_and_a_precision_have_the_marginals_of_the_exact_posterior(n, unit):
    """Of any number of values, in any units: EP on the rows is off by half an sd at n = 3."""
    y = np.random.default_rng(n).normal(2.0, 1.5, n)
    model = hg.Model()
    mu, tau = model.gaussian("mu", 0.0, variance=100.0 * unit**2), model.gamma("tau", 1.0, unit**2)
    model.gaussian("y", mu, precision=tau, observed=unit * y)
    posterior = model.infer()
    (m, log_tau), (sd, _) = mean_and_precision(y, 1.0, 1.0)
    assert posterior.converged
    assert posterior[mu].mean == pytest.approx(m * unit, abs=1e-4 * sd * unit)
    assert posterior[mu].sd == pytest.approx(sd * unit, rel=1e-3)
    belief = posterior[tau]
    assert psi(belief.shape_parameter) - np.log(belief.rate) + 2 * np.log(unit) == pytest.approx(log_tau, abs=1e-4)


def test_groups_have_a_factor_each_and_rows_may_come_in_any_order():
    rng = np.random.default_rng(0)
    group = rng.permutation(np.repeat(np.arange(6), [1, 2, 3, 4, 5, 6]))
    y = rng.normal(rng.normal(0, 2, 6)[group], 0.5)
    found = []
    for order in (np.arange(21), rng.permutation(21)):
        model = hg.Model()
        theta, tau = model.gaussian("theta", 0.0, variance=4.0, size=6), model.gamma("tau", 1.0, 1.0)
        model.gaussian("y", theta[group[order]], precision=tau, observed=y[order])
        posterior = model.infer(tolerance=1e-6)
        assert posterior.converged
        found.append(
            np.concatenate(
                [posterior[theta].mean, posterior[theta].variance, [posterior[tau].mean, posterior.log_evidence]]
            )
        )
    assert found[0] == pytest.approx(found[1], rel=1e-6)


def test_values_far_from_zero_keep_their_squares():
    y = 1e8 + np.array([0.0, 1.0, 2.0, 3.0])
    model = hg.Model()
    tau = model.gamma("tau", 1.0, 1.0)
    mu = model.gaussian("mu", 1e8, variance=100.0)
    model.gaussian("y", mu, precision=tau, observed=y)
    near = hg.Model()
    same = near.gamma("tau", 1.0, 1.0)
    near.gaussian("y", near.gaussian("mu", 0.0, variance=100.0), precision=same, observed=y - 1e8)
    assert model.infer()[tau].mean == pytest.approx(near.infer()[same].mean, rel=1e-6)


@pytest.mark.filterwarnings("ignore:the belief of")  # three rows keep mean and precision apart, and the run says so
def test_missing_values_and_known_precisions_are_left_to_the_rows():
    y = np.array([1.0, np.nan, 2.0, 3.0])
    model = hg.Model()
    mu, tau = model.gaussian("mu", 0.0, variance=100.0), model.gamma("tau", 3.0, 1.0)
    seen = model.gaussian("y", mu, precision=tau, observed=y)
    posterior = model.infer()
    assert posterior.converged
    assert np.isfinite(posterior[seen].mean).all()


def test_the_sd_of_the_log_precision_is_the_gamma_s_own():
    """E tau and E log tau are exact; a Gamma's variance of log tau is then its own, close to the truth."""
    y = np.random.default_rng(0).normal(2.0, 1.5, 10)
    model = hg.Model()
    tau = model.gamma("tau", 1.0, 1.0)
    model.gaussian("y", model.gaussian("mu", 0.0, variance=100.0), precision=tau, observed=y)
    _, (_, sd) = mean_and_precision(y, 1.0, 1.0)
    assert np.sqrt(polygamma(1, model.infer()[tau].shape_parameter)) == pytest.approx(sd, rel=0.02)
