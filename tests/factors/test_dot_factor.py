"""Inner products with fixed vectors, row by row and for a whole matrix."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse
from scipy.stats import multivariate_normal, norm

from heliograph.errors import UnsupportedError
from heliograph.factors import Dot, dot_backward, dot_forward
from heliograph.families import Gaussian, MultivariateGaussian


def world(rng, n=40, d=4):
    root = rng.standard_normal((d, d))
    return rng.standard_normal((n, d)), rng.standard_normal(d), root @ root.T + 0.1 * np.eye(d)


def test_one_row_conditions_the_vector_as_a_linear_model_does():
    x, m, v = world(np.random.default_rng(0))
    x = x[0]
    incoming = {"w": MultivariateGaussian(m, v), "x": x, "out": Gaussian(1.5, 0.3)}
    belief = Dot().belief("w", incoming)
    gain = v @ x / (x @ v @ x + 0.3)
    np.testing.assert_allclose(belief.mean, m + gain * (1.5 - x @ m), rtol=1e-11)
    np.testing.assert_allclose(belief.covariance, v - np.outer(gain, x @ v), rtol=1e-10, atol=1e-12)
    sent = Dot().message("out", incoming)
    np.testing.assert_allclose([sent.mean, sent.variance], [x @ m, x @ v @ x], rtol=1e-12)
    np.testing.assert_allclose(Dot().log_z(incoming), norm.logpdf(1.5, x @ m, np.sqrt(x @ v @ x + 0.3)), rtol=1e-12)


def test_a_known_vector_gives_a_known_product_and_a_zero_row_the_point_zero():
    w = MultivariateGaussian.point_mass([1.0, 2.0])
    assert Dot().message("out", {"w": w, "x": np.array([3.0, -1.0]), "out": Gaussian.uniform()}).point == 1.0
    soft = MultivariateGaussian([1.0, 2.0], np.eye(2))
    assert Dot().message("out", {"w": soft, "x": np.zeros(2), "out": Gaussian.uniform()}).point == 0.0


def test_an_unknown_vector_says_nothing_and_a_uniform_product_says_nothing_back():
    x = np.array([3.0, -1.0])
    assert (
        Dot().message("out", {"w": MultivariateGaussian.uniform((), 2), "x": x, "out": Gaussian.uniform()}).is_uniform
    )
    sent = Dot().message("w", {"w": MultivariateGaussian.uniform((), 2), "x": x, "out": Gaussian.uniform()})
    assert sent.is_uniform


def test_an_improper_vector_that_the_product_mends_has_an_evidence():
    w = MultivariateGaussian.from_naturals((np.array([0.2, 0.1]), np.diag([1.0, -0.1])))
    x = np.array([0.0, 2.0])
    z = Dot().log_z({"w": w, "x": x, "out": Gaussian(1.0, 0.5)})
    from scipy.integrate import quad

    first = quad(lambda u: np.exp(0.2 * u - u**2 / 2), -20, 20)[0]
    second = quad(lambda u: np.exp(0.1 * u + 0.1 * u**2 / 2) * norm.pdf(2 * u, 1.0, np.sqrt(0.5)), -20, 20)[0]
    np.testing.assert_allclose(z, np.log(first * second), rtol=1e-9)


def test_an_exactly_known_product_cannot_be_sent_back():
    incoming = {"w": MultivariateGaussian([1.0, 2.0], np.eye(2)), "x": np.ones(2), "out": Gaussian.point_mass(1.0)}
    with pytest.raises(UnsupportedError, match="small variance"):
        Dot().message("w", incoming)


@pytest.mark.parametrize("kind", ["dense", "csr", "csc"])
def test_a_whole_matrix_agrees_with_the_plain_formulas(kind):
    rng = np.random.default_rng(1)
    x, m, v = world(rng, n=20_000, d=7)
    x *= rng.random(x.shape) < 0.4
    shift, tau = rng.standard_normal(20_000), rng.standard_normal(20_000)  # precisions may be negative
    given = {"dense": lambda: x, "csr": lambda: scipy.sparse.csr_array(x), "csc": lambda: scipy.sparse.csc_matrix(x)}[
        kind
    ]()
    mean, variance = dot_forward(given, m, v)
    np.testing.assert_allclose(mean, x @ m, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(variance, np.einsum("ni,ij,nj->n", x, v, x), rtol=1e-11, atol=1e-12)
    h, p = dot_backward(given, shift, tau)
    np.testing.assert_allclose(h, x.T @ shift, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(p, x.T @ (tau[:, None] * x), rtol=1e-10, atol=1e-9)
    np.testing.assert_array_equal(p, p.T)


def test_the_plate_is_the_product_of_its_rows_messages():
    rng = np.random.default_rng(2)
    x, m, v = world(rng)
    out = Gaussian(rng.standard_normal(40), rng.uniform(0.1, 1, 40))
    w = MultivariateGaussian(np.broadcast_to(m, (40, 4)), np.broadcast_to(v, (40, 4, 4)))
    rows = Dot().message("w", {"w": w, "x": x, "out": out})
    h, p = dot_backward(x, *out.naturals)
    np.testing.assert_allclose(h, rows.naturals[0].sum(axis=0), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(p, rows.naturals[1].sum(axis=0), rtol=1e-12, atol=1e-12)
    forward = Dot().message("out", {"w": w, "x": x, "out": out})
    mean, variance = dot_forward(x, m, v)
    np.testing.assert_allclose(mean, forward.mean, rtol=1e-12)
    np.testing.assert_allclose(variance, forward.variance, rtol=1e-12)


def test_the_posterior_of_a_linear_regression_is_exact():
    rng = np.random.default_rng(3)
    x, m, v = world(rng, n=200)
    y = x @ rng.standard_normal(4) + 0.1 * rng.standard_normal(200)
    h, p = dot_backward(x, y / 0.01, np.full(200, 100.0))
    prior = MultivariateGaussian(m, v)
    posterior = prior * MultivariateGaussian.from_naturals((h, p))
    k = x @ v @ x.T + 0.01 * np.eye(200)
    np.testing.assert_allclose(posterior.mean, m + v @ x.T @ np.linalg.solve(k, y - x @ m), rtol=1e-7)
    assert np.isfinite(multivariate_normal.logpdf(y, x @ m, k))


def test_variances_are_never_negative_for_a_covariance_singular_to_rounding():
    rng = np.random.default_rng(4)
    direction = rng.standard_normal(6)
    v = np.outer(direction, direction) * 1e6
    x = rng.standard_normal((1000, 6))
    x -= np.outer(x @ direction, direction) / (direction @ direction)  # rows that v has nothing to say about
    _, variance = dot_forward(x, np.zeros(6), v)
    assert (variance >= 0).all() and variance.max() < 1e-6


def test_memory_stays_at_a_chunk_whatever_the_number_of_rows():
    n, d = 200_000, 20
    x = np.ones((n, d))
    tau = np.ones(n)
    tracemalloc.start()
    dot_backward(x, tau, tau)
    _, backward = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    dot_forward(x, np.zeros(d), np.eye(d))
    _, forward = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert backward < 2e6  # bytes; X itself has 32e6
    assert forward < 2e6 + 2 * 8 * n  # the two answers are (n,) each
