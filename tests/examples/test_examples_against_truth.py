"""The examples' posteriors beside independent truth: enumeration, grids, dense algebra, and NUTS.

Means within .1 standard deviations and deviations within 10 %, but where an example's own page says what EP does there.
``nuts.json`` has means and deviations of 10,000 draws of NumPyro's NUTS (``python -m benchmarks.gallery --write``), with
the standard error of the worst mean, in deviations.
"""

import functools
import importlib.util
import json
import warnings
from pathlib import Path

import numpy as np
import pytest

from heliograph.errors import AccuracyWarning, ConvergenceWarning

HERE = Path(__file__).parent
FOLDER = HERE.parent.parent / "examples"
SAMPLED = json.loads((HERE / "nuts.json").read_text())
LOOPS = {"clutter", "matrix_factorisation"}  # products and mixtures, of which `infer` warns


def load(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@functools.cache
def posterior_of(name):
    module = load(name)
    if hasattr(module, "posterior"):
        return module, module.posterior
    model = module.model(module.data()) if hasattr(module, "data") else module.model()
    with warnings.catch_warnings():
        if name in LOOPS:
            warnings.simplefilter("ignore", (AccuracyWarning))
            warnings.simplefilter("ignore", ConvergenceWarning)
        return module, model.infer(max_sweeps=200)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda p: p.stem)
def test_an_example_is_short_and_says_what_it_is(path):
    text = path.read_text()
    assert len(text.splitlines()) <= 40
    assert text.startswith('"""') and '__name__ == "__main__"' in text


@pytest.mark.parametrize("name", sorted(SAMPLED))
def test_posteriors_agree_with_ten_thousand_draws_of_nuts(name):
    _, posterior = posterior_of(name)
    compared = [variable for variable in SAMPLED[name] if variable in posterior]
    assert compared
    for variable in compared:
        truth, belief = SAMPLED[name][variable], posterior[variable]
        assert truth["error"] < 0.03  # of the sampler's own means
        sd = np.array(truth["sd"])
        error = np.abs(belief.mean - np.array(truth["mean"])) / sd
        ratio = np.sqrt(belief.variance) / sd
        assert error.max() <= 0.1, f"{name}, {variable}: means off by {error.max():.3f} sds"
        assert ratio.min() >= 0.9 and ratio.max() <= 1.1, (
            f"{name}, {variable}: sds {ratio.min():.3f} to {ratio.max():.3f}"
        )


def test_every_example_has_a_truth():
    here = "".join(path.read_text() for path in HERE.glob("test_*.py"))
    without = [p.stem for p in FOLDER.glob("*.py") if p.stem not in SAMPLED and f'("{p.stem}")' not in here]
    assert not without


def near(mean, sd, belief):
    assert abs(belief.mean - mean) <= 0.1 * sd
    assert 0.9 <= np.sqrt(belief.variance) / sd <= 1.1


def moments(x, log_p):
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    mean = (p * x).sum()
    return mean, np.sqrt((p * (x - mean) ** 2).sum())


def test_mean_and_precision_on_a_grid():
    module, posterior = posterior_of("mean_and_precision")
    y = module.data()
    mean, precision = np.meshgrid(np.linspace(0, 6, 1201), np.linspace(0.01, 1.5, 1200), indexing="ij")
    log_p = -0.5 * mean**2 / 100 - precision + 0.5 * len(y) * np.log(precision)
    log_p -= 0.5 * precision * ((y**2).sum() - 2 * mean * y.sum() + len(y) * mean**2)
    near(*moments(mean, log_p), posterior["mean"])
    near(*moments(precision, log_p), posterior["precision"])


def test_regression_with_unknown_noise_by_dense_algebra_on_a_grid_of_precisions():
    module, posterior = posterior_of("regression_unknown_noise")
    d = module.data()
    x = np.column_stack([np.ones(30), d["x"]])
    taus = np.linspace(0.2, 12, 1500)
    log_p, means, squares = [], [], []
    for tau in taus:
        spread = 9.0 * x @ x.T + np.eye(30) / tau
        log_p.append(-tau - 0.5 * (np.linalg.slogdet(spread)[1] + d["y"] @ np.linalg.solve(spread, d["y"])))
        covariance = np.linalg.inv(np.eye(2) / 9.0 + tau * x.T @ x)
        mean = covariance @ (tau * x.T @ d["y"])
        means.append(mean)
        squares.append(np.diag(covariance) + mean**2)
    log_p = np.array(log_p)
    near(*moments(taus, log_p), posterior["precision"])
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    mean = p @ np.array(means)
    sd = np.sqrt(p @ np.array(squares) - mean**2)
    near(mean[0], sd[0], posterior["a"])
    near(mean[1], sd[1], posterior["b"])


def test_gp_regression_is_dense_algebra():
    module, posterior = posterior_of("gp_regression")
    d = module.data()
    k = module.kernel(d["x"], d["x"]) + 1e-8 * np.eye(25)
    gain = k @ np.linalg.inv(k + 0.09 * np.eye(25))
    np.testing.assert_allclose(posterior["f"].mean, gain @ d["y"], atol=1e-6)
    np.testing.assert_allclose(posterior["f"].covariance, k - gain @ k, atol=1e-6)
    spread = k + 0.09 * np.eye(25)
    log_p = -0.5 * (d["y"] @ np.linalg.solve(spread, d["y"]) + np.linalg.slogdet(2 * np.pi * spread)[1])
    np.testing.assert_allclose(posterior.log_evidence, log_p, rtol=1e-6)


def test_clutter_on_a_grid():
    module, posterior = posterior_of("clutter")
    y, x = module.data(), np.linspace(-20, 20, 20001)
    signal = np.exp(-0.5 * (y[:, None] - x) ** 2) / np.sqrt(2 * np.pi)
    noise = np.exp(-0.05 * y**2) / np.sqrt(20 * np.pi)
    near(*moments(x, -0.5 * x**2 / 100 + np.log(0.5 * signal + 0.5 * noise[:, None]).sum(0)), posterior["x"])


def test_the_ab_test_is_conjugate():
    _, posterior = posterior_of("ab_test")
    np.testing.assert_allclose(posterior["p"].a, [111, 136])
    np.testing.assert_allclose(posterior["p"].b, [891, 866])


def test_item_response_finds_the_discriminations_that_made_the_data():
    module, posterior = posterior_of("item_response")
    rng = np.random.default_rng(5)
    ability = rng.standard_normal(module.PEOPLE)
    assert np.corrcoef(posterior["ability"].mean, ability)[0, 1] > 0.6  # eight answers each


def test_matrix_factorisation_predicts_what_was_not_seen():
    module, posterior = posterior_of("matrix_factorisation")
    d = module.data()
    gap = posterior["u"].mean @ posterior["v"].mean.T - d["table"]
    # the noise is .3, and least squares on all of the table with the right rank would be off by about .2
    assert np.sqrt((gap[~d["seen"]] ** 2).mean()) < 0.4 < d["table"][~d["seen"]].std()


def on_grid(module, likelihood, sd_a, sd_b, centre, reach):
    """Moments of two unknowns with Gaussian priors, by a grid."""
    a, b = np.meshgrid(*(c + r * np.linspace(-1, 1, 201) for c, r in zip(centre, reach, strict=True)), indexing="ij")
    log_p = -0.5 * (a / sd_a) ** 2 - 0.5 * (b / sd_b) ** 2 + likelihood(a[..., None], b[..., None]).sum(-1)
    assert max(log_p[0].max(), log_p[-1].max(), log_p[:, 0].max(), log_p[:, -1].max()) < log_p.max() - 10
    return moments(a, log_p), moments(b, log_p)


def test_robust_regression_on_a_grid():
    module, posterior = posterior_of("robust_regression")
    d = module.data()
    a, b = on_grid(
        module, lambda a, b: -2.0 * np.log1p(((d["y"] - a - b * d["x"]) / 0.4) ** 2 / 3), 5, 5, (1, 2), (0.8, 0.8)
    )
    near(*a, posterior["a"])
    near(*b, posterior["b"])


def test_negative_binomial_regression_on_a_grid():
    module, posterior = posterior_of("negative_binomial")
    d = module.data()

    def likelihood(a, b):
        z = a + b * d["x"]
        return d["y"] * z - (d["y"] + 2) * np.log(2 + np.exp(z))

    a, b = on_grid(module, likelihood, 2, 2, (0.85, 0.6), (0.8, 0.8))
    near(*a, posterior["a"])
    near(*b, posterior["b"])


def test_censored_survival_on_a_grid():
    module, posterior = posterior_of("censored_survival")
    d = module.data()

    def likelihood(a, b):
        u = 1.5 * (np.log(d["t"]) - a - b * d["treated"])
        return np.where(d["alive"], 0.0, u) - np.exp(u)

    a, b = on_grid(module, likelihood, 2, 1, (1.0, 0.7), (0.8, 1.2))
    near(*a, posterior["base"])
    near(*b, posterior["effect"])
