"""Parts of the data that meet in one vector: sweeping them in turn ends where one run over everything ends."""

import numpy as np
import pytest

import heliograph as hg
from heliograph.engine.partition import Part
from heliograph.families import MultivariateGaussian

D = 3
PRIOR = MultivariateGaussian(np.zeros(D), covariance=2.0 * np.eye(D))


def data(n, seed, n_groups):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, D))
    group = rng.integers(n_groups, size=n)
    effect = 0.7 * rng.standard_normal(n_groups)
    y = (x @ [1.0, -0.5, 0.3] + effect[group] + rng.logistic(size=n) > 0).astype(float)
    return x, group, y


def model_of(x, group, y, n_groups):
    """Labels with an effect of each group: the groups belong to one part each."""
    model = hg.Model()
    w = model.gaussian("w", np.zeros(D), covariance=2.0 * np.eye(D))
    u = model.gaussian("u", np.zeros(n_groups), variance=0.5)
    model.bernoulli("y", logit=x @ w + u[group], observed=y)
    return model, w


def boundary_of(k, messages):
    total = PRIOR
    for j, message in enumerate(messages):
        if j != k:
            total = total * message
    return total


@pytest.mark.parametrize("n_parts", [2, 3])
def test_parts_swept_in_turn_reach_the_run_over_all_data(n_parts):
    sets = [data(60 + 10 * k, seed=k, n_groups=8) for k in range(n_parts)]
    parts = [Part(*model_of(*one, 8)) for one in sets]
    messages = [MultivariateGaussian.uniform((), D)] * n_parts
    for _ in range(25):
        for k, part in enumerate(parts):
            messages[k] = part.sweep(boundary_of(k, messages))
    together = PRIOR
    for message in messages:
        together = together * message
    x, group, y = (np.concatenate([one[i] for one in sets]) for i in range(3))
    group = np.concatenate([one[1] + 8 * k for k, one in enumerate(sets)])
    model, w = model_of(x, group, y, 8 * n_parts)
    whole = model.infer(tolerance=1e-8)[w]
    np.testing.assert_allclose(together.mean, whole.mean, atol=1e-5)
    np.testing.assert_allclose(together.covariance, whole.covariance, rtol=1e-4, atol=1e-6)


def test_a_part_of_gaussian_data_says_its_schur_complement():
    rng = np.random.default_rng(5)
    x, z, y = rng.standard_normal((20, D)), rng.standard_normal((20, 4)), rng.standard_normal(20)
    model = hg.Model()
    w = model.gaussian("w", np.zeros(D), covariance=np.eye(D))
    own = model.gaussian("own", np.zeros(4), covariance=np.eye(4))
    model.gaussian("y", x @ w + z @ own, variance=0.5, observed=y)
    message = Part(model, w).sweep(PRIOR)
    noise = np.linalg.inv(0.5 * np.eye(20) + z @ z.T)
    np.testing.assert_allclose(message.precision, x.T @ noise @ x, rtol=1e-8)
    np.testing.assert_allclose(message.shift, x.T @ noise @ y, rtol=1e-8)


def test_a_part_that_was_saved_goes_on_in_another_process(tmp_path):
    one = data(50, seed=3, n_groups=4)
    first, second = (Part(*model_of(*one, 4)) for _ in range(2))
    first.sweep(PRIOR)
    first.save(tmp_path / "part.hg")
    second.load(tmp_path / "part.hg")
    expected, found = first.sweep(PRIOR), second.sweep(PRIOR)
    np.testing.assert_array_equal(found.precision, expected.precision)
    fresh = Part(*model_of(*one, 4))
    assert np.abs(fresh.sweep(PRIOR).precision - expected.precision).max() > 1e-9  # one sweep is not two
    other = Part(*model_of(*data(49, seed=3, n_groups=4), 4))
    with pytest.raises(hg.errors.FileFormatError, match="another model"):
        other.load(tmp_path / "part.hg")
    with pytest.raises(hg.ModelError, match="nothing to save"):
        other.save(tmp_path / "other.hg")


def test_what_cannot_be_shared_is_refused():
    model, w = model_of(*data(5, seed=0, n_groups=2), 2)
    with pytest.raises(hg.ModelError, match="'u' is not a vector"):
        Part(model, model["u"])
    part = Part(model, w)
    with pytest.raises(hg.ModelError, match="one proper vector of 3 numbers"):
        part.sweep(MultivariateGaussian.uniform((), D))
    with pytest.raises(hg.ModelError, match="one proper vector of 3 numbers"):
        part.sweep(MultivariateGaussian(np.zeros(2), covariance=np.eye(2)))
    with pytest.raises(TypeError):
        Part(model, w, dampening=0.5)
