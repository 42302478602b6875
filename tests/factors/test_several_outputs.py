"""Black boxes of several outputs, against sums over a grid and against factors of one output."""

import numpy as np
import pytest
from scipy import stats

import heliograph as hg
from heliograph.errors import FactorError, ModelError, UnsupportedError

Y, K = np.array([0.5, 1.0, -0.2]), np.array([1.0, 3.0, 0.0])
GRID = np.linspace(-8.0, 9.0, 200_001)


def both_factor():
    @hg.factor(output=(hg.Gaussian, hg.Gamma))
    def both(z):
        return z**2 / 2 + z, np.exp(z)

    return both


def on_the_grid(i):
    """Moments of z and of both outputs, and the evidence, of row i."""
    f = GRID**2 / 2 + GRID
    log_w = stats.norm.logpdf(GRID, 0.3, 1.0) + stats.norm.logpdf(Y[i], f, 0.5**0.5)
    log_w += stats.poisson.logpmf(K[i], np.exp(GRID))
    w = np.exp(log_w)
    total = w.sum()
    w = w / total
    z = w @ GRID, w @ (GRID - w @ GRID) ** 2
    a = w @ f, w @ (f - w @ f) ** 2
    return z, a, (w @ np.exp(GRID), w @ GRID), np.log(total * (GRID[1] - GRID[0]))


@pytest.mark.parametrize("operator", ["learned", "ask"])
def test_two_outputs_of_one_unknown_are_those_of_the_grid(operator):
    model = hg.Model()
    z = model.gaussian("z", 0.3, variance=1.0, size=3)
    a, b = both_factor()(z)
    model.gaussian("y", a, variance=0.5, observed=Y)
    model.poisson("k", b, observed=K)
    posterior = model.infer(operator=operator, progress=False)
    assert posterior.converged
    log_z = 0.0
    for i in range(3):
        of_z, of_a, (mean, mean_log), own = on_the_grid(i)
        assert (posterior[z].mean[i], posterior[z].variance[i]) == pytest.approx(of_z, rel=1e-5)
        assert (posterior[a].mean[i], posterior[a].variance[i]) == pytest.approx(of_a, rel=2e-4)
        assert posterior[b].mean[i] == pytest.approx(mean, rel=2e-4)
        assert posterior[b].expected_statistics()[1][i] == pytest.approx(mean_log, abs=2e-4)
        log_z += own
    assert posterior.log_evidence == pytest.approx(log_z, abs=1e-3)


def test_outputs_state_their_error():
    both = both_factor()
    n = 3
    incoming = {"z": hg.Gaussian(np.full(n, 0.3), 1.0), "out": hg.Gaussian(Y, 0.5), "out_2": hg.Gamma(K + 1, 1.0)}
    answer = both.ask(incoming)
    assert list(answer.beliefs) == ["z", "out_2", "out"]
    for i in range(n):
        _, a, _, _ = on_the_grid(i)
        truth = hg.Gaussian(*a)
        assert answer.beliefs["out"][i].kl(truth) < 1e-10 + 30 * answer.expected_kl["out"][i]
        assert 0 < answer.expected_kl["out"][i] < 1e-6


def test_a_vector_and_a_label_drawn_together():
    @hg.factor(output=(hg.MultivariateGaussian, hg.Bernoulli), dimension=(2, None))
    def seen(z, rng):
        return np.stack([z, z**2], axis=1), rng.random(z.shape) < 1 / (1 + np.exp(-2 * z))

    model = hg.Model()
    z = model.gaussian("z", 0.3, variance=1.0)
    place, label = seen(z)
    model.attach(place, hg.MultivariateGaussian(np.array([0.5, 0.2]), covariance=np.array([[0.5, 0.1], [0.1, 0.8]])))
    model.observe(label, 1.0)
    posterior = model.infer(operator="ask", oracle="importance", stop=hg.after(3), progress=False, tolerance=1.0)
    both = np.stack([GRID, GRID**2], axis=1)
    log_w = stats.norm.logpdf(GRID, 0.3, 1.0) + stats.multivariate_normal([0.5, 0.2], [[0.5, 0.1], [0.1, 0.8]]).logpdf(
        both
    )
    w = np.exp(log_w) / (1 + np.exp(-2 * GRID))
    w /= w.sum()
    assert posterior[z].mean == pytest.approx(w @ GRID, abs=0.01)
    assert posterior[place].mean == pytest.approx(w @ both, abs=0.02)


def test_a_regression_with_two_likelihoods_is_that_of_two_factors():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(25, 2))
    z = rows @ [0.8, -0.5]
    y, k = z + z**2 / 2 + 0.7 * rng.normal(size=25), rng.poisson(np.exp(z)).astype(float)
    one, two = hg.factor(lambda z: z**2 / 2 + z, output=hg.Gaussian), hg.factor(lambda z: np.exp(z), output=hg.Gamma)
    found = []
    for apart in (False, True):
        model = hg.Model()
        w = model.gaussian("w", np.zeros(2), covariance=np.eye(2))
        a, b = (one(rows @ w), two(rows @ w)) if apart else both_factor()(rows @ w)
        model.gaussian("y", a, variance=0.5, observed=y)
        model.poisson("k", b, observed=k)
        posterior = model.infer(progress=False)
        assert posterior.converged
        found.append(posterior[w])
    # one factor projects once where two do it twice: alike, and not the same
    assert found[0].kl(found[1]) < 0.02


def test_new_data_reach_every_output():
    model = hg.Model()
    z = model.gaussian("z", 0.3, variance=1.0, size=3)
    a, b = both_factor()(z)
    model.gaussian("y", a, variance=0.5, observed=Y - 1)
    model.poisson("k", b, observed=K + 2)
    model.observe(y=Y, k=K)
    posterior = model.infer(progress=False)
    for i in range(3):
        of_z, _, _, _ = on_the_grid(i)
        assert (posterior[z].mean[i], posterior[z].variance[i]) == pytest.approx(of_z, rel=1e-5)
    assert posterior[b].shape == (3,)


def test_what_cannot_be_is_said():
    with pytest.raises(ModelError, match="tuple of families"):
        hg.factor(lambda z: (z, z), output=(hg.Gaussian, float))
    with pytest.raises(ModelError, match="no log_density"):
        hg.factor(lambda z: (z, z), output=(hg.Gaussian, hg.Gaussian), log_density=lambda y, z: z)
    both = both_factor()
    model = hg.Model()
    z = model.gaussian("z", 0.3, variance=1.0)
    with pytest.raises(ModelError, match="has 2 outputs: give observed= a tuple"):
        both(z, observed=1.0)
    both(z, observed=(1.0, None))
    with pytest.raises(UnsupportedError, match="'out' of factor 'both' is observed exactly"):
        model.infer(progress=False)
    short = hg.factor(lambda z: (z,), output=(hg.Gaussian, hg.Gaussian), name="short")
    with pytest.raises(FactorError, match="'short' says 2 outputs and returned 1 values"):
        short.ask({"z": hg.Gaussian([0.0], 1.0), "out": hg.Gaussian([0.0], 1.0), "out_2": hg.Gaussian([0.0], 1.0)})
