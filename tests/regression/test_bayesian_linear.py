"""Bayesian linear regression against the dense formulas, and online against batch."""

import numpy as np
import pytest

from heliograph.errors import ModelError
from heliograph.regression import bayesian_linear as bl


def cosine_rows(n, d, seed=0):
    """Rows like those of a feature map: strongly correlated, of length about one."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 3))
    x = np.sqrt(2 / d) * np.cos(0.3 * z @ rng.normal(size=(3, d)) + rng.uniform(0, 2 * np.pi, d))
    return x, np.stack([np.sin(z[:, 0]), z[:, 1] ** 2], axis=1)


@pytest.mark.parametrize("prior_variance", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("noise", [1e-6, 1e-2])
def test_two_thousand_rows_one_by_one_give_the_batch_posterior(prior_variance, noise):
    x, y = cosine_rows(2000, 80)
    batch = bl.fit(x, y, prior_variance, noise)
    online = bl.prior(80, 2, prior_variance, noise)
    for row, target in zip(x, y, strict=True):
        online = bl.update(online, row, target)
    # the factor's condition number is 1e5 and rounding 1e-16; 1e-8 is the house law with room to spare
    np.testing.assert_allclose(online.mean, batch.mean, rtol=0, atol=1e-8 * np.abs(batch.mean).max())
    np.testing.assert_allclose(online.covariance, batch.covariance, rtol=0, atol=1e-8 * batch.covariance.max())
    new = cosine_rows(50, 80, seed=0)[0] + 0.01
    for a, b in zip(bl.predict(online, new), bl.predict(batch, new), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(bl.log_evidence(online), bl.log_evidence(batch), rtol=1e-8)
    assert online.n_rows == batch.n_rows == 2000


@pytest.mark.parametrize("k", [1, 7, 64, 65, 700])
def test_rows_in_batches_of_any_size_give_the_same_posterior(k):
    x, y = cosine_rows(700, 60)
    batch = bl.fit(x, y, 2.0, 1e-4)
    online = bl.prior(60, 2, 2.0, 1e-4)
    for start in range(0, 700, k):
        online = bl.update(online, x[start : start + k], y[start : start + k])
    np.testing.assert_allclose(online.mean, batch.mean, atol=1e-9 * np.abs(batch.mean).max())


@pytest.mark.parametrize("prior_variance", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("noise", [1e-6, 1e-2])
def test_the_posterior_is_the_dense_formula(prior_variance, noise):
    x, y = cosine_rows(200, 30)
    posterior = bl.fit(x, y, prior_variance, noise)
    precision = x.T @ x / noise + np.eye(30) / prior_variance
    # the reference itself is good to its condition number, up to 1e9, times rounding
    np.testing.assert_allclose(posterior.covariance, np.linalg.inv(precision), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(posterior.mean, np.linalg.solve(precision, x.T @ y / noise), rtol=1e-6, atol=1e-6)
    tall = np.vstack([x / np.sqrt(noise), np.eye(30) / np.sqrt(prior_variance)])
    least = np.linalg.lstsq(tall, np.vstack([y / np.sqrt(noise), np.zeros((30, 2))]), rcond=None)[0]
    np.testing.assert_allclose(posterior.mean, least, atol=1e-9 * np.abs(least).max())


@pytest.mark.parametrize(("prior_variance", "noise"), [(1.0, 1e-4), (0.3, 1e-2)])
def test_feature_regression_is_a_process_with_the_feature_kernel(prior_variance, noise):
    x, y = cosine_rows(80, 200)
    new = cosine_rows(20, 200, seed=3)[0]
    mean, variance = bl.predict(bl.fit(x, y, prior_variance, noise), new)
    k = prior_variance * x @ x.T + noise * np.eye(80)
    cross = prior_variance * new @ x.T
    np.testing.assert_allclose(mean, cross @ np.linalg.solve(k, y), atol=1e-8)
    dense = prior_variance * (new**2).sum(1) - np.einsum("ij,ji->i", cross, np.linalg.solve(k, cross.T))
    np.testing.assert_allclose(variance, dense, atol=1e-10)


def test_the_evidence_is_the_density_of_the_targets_under_the_process():
    x, y = cosine_rows(50, 20)
    k = 0.7 * x @ x.T + 0.01 * np.eye(50)
    _, log_det = np.linalg.slogdet(k)
    dense = -0.5 * (np.einsum("nq,nq->q", y, np.linalg.solve(k, y)) + log_det + 50 * np.log(2 * np.pi))
    np.testing.assert_allclose(bl.log_evidence(bl.fit(x, y, 0.7, 0.01)), dense, rtol=1e-10)


def test_rows_may_have_their_own_noise():
    x, y = cosine_rows(60, 10)
    noise = np.random.default_rng(1).uniform(0.01, 1.0, 60)
    posterior = bl.update(bl.prior(10, 2, 2.0, 0.5), x, y, noise)
    precision = x.T @ (x / noise[:, None]) + np.eye(10) / 2
    np.testing.assert_allclose(posterior.mean, np.linalg.solve(precision, x.T @ (y / noise[:, None])), rtol=1e-9)
    k = 2.0 * x @ x.T + np.diag(noise)
    dense = -0.5 * (np.einsum("nq,nq->q", y, np.linalg.solve(k, y)) + np.linalg.slogdet(k)[1] + 60 * np.log(2 * np.pi))
    np.testing.assert_allclose(bl.log_evidence(posterior), dense, rtol=1e-10)


def test_float32_prediction_is_close_and_its_variance_is_never_negative():
    x, y = cosine_rows(3000, 100)
    posterior = bl.fit(x, y, 1.0, 1e-6)
    mean, variance = bl.predict(posterior, x)
    mean32, variance32 = bl.predict(posterior, x.astype(np.float32), dtype=np.float32)
    assert (variance32 >= 0).all()
    # features of length one times weights of length |w| in float32
    np.testing.assert_allclose(mean32, mean, atol=1e-5 * np.linalg.norm(posterior.mean))
    np.testing.assert_allclose(variance32, variance, rtol=2e-2)


def test_prediction_of_a_few_rows_after_an_update_equals_that_of_a_plate():
    x, y = cosine_rows(300, 64)
    posterior = bl.fit(x, y, 1.0, 1e-4)
    few = bl.predict(posterior, x[:3])
    plate = bl.predict(posterior, x)
    chunked = bl.predict(posterior, iter([x[:100], x[100:]]))
    for a, b, c in zip(few, plate, chunked, strict=True):
        np.testing.assert_allclose(a, b[:3], rtol=1e-9)
        np.testing.assert_allclose(c, b, rtol=1e-12)


def test_learning_a_row_again_lowers_its_variance_and_never_raises_another():
    x, y = cosine_rows(100, 30)
    before = bl.fit(x[:50], y[:50], 1.0, 1e-2)
    after = bl.update(before, x[60], y[60])
    v0, v1 = bl.predict(before, x)[1], bl.predict(after, x)[1]
    assert v1[60] < v0[60]
    assert (v1 <= v0 * (1 + 1e-12)).all()


def test_an_update_leaves_the_posterior_it_was_given_alone():
    x, y = cosine_rows(10, 5)
    before = bl.fit(x[:5], y[:5])
    kept = before.triangle.copy()
    bl.update(before, x[5:], y[5:])
    np.testing.assert_array_equal(before.triangle, kept)


def test_wrong_sizes_and_variances_are_refused_in_words():
    with pytest.raises(ModelError, match="5 features and 2 outputs"):
        bl.update(bl.prior(5, 2), np.zeros((1, 4)), np.zeros((1, 2)))
    with pytest.raises(ModelError, match="must be positive"):
        bl.prior(5, 2, prior_variance=0.0)
    assert bl.predict(bl.prior(5, 2), np.zeros((0, 5)))[0].shape == (0, 2)
