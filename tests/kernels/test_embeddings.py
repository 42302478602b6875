"""How a plate of tuples is seen: moments, axes, vector messages, and the messages that have no moments."""

import numpy as np
import pytest

from heliograph.errors import ImproperError, ModelError, UnsupportedError
from heliograph.families import Bernoulli, Beta, Dirichlet, Gamma, Gaussian, MultivariateGaussian
from heliograph.kernels import embed, embeddable
from heliograph.kernels.features import expected_cosines


def test_moments_on_the_identity_and_on_the_chart_are_the_families_own():
    messages = {"z": Gaussian([1.0, 2.0], [3.0, 4.0]), "p": Beta([1.0, 2.0], [2.0, 5.0]), "r": Gamma([2.0, 3.0], 4.0)}
    plain, chart = embed(messages), embed(messages, "chart")
    for k, m in enumerate(messages.values()):
        np.testing.assert_allclose(plain.mean[:, k], m.mean)
        np.testing.assert_allclose(plain.variance[:, k], m.variance)
        np.testing.assert_allclose(chart.mean[:, k], m.chart_moments()[0])
        np.testing.assert_allclose(chart.variance[:, k], m.chart_moments()[1])


def test_a_sequence_and_a_mapping_and_a_part_of_the_plate_are_the_same_tuples():
    messages = [Gaussian([1.0, 2.0, 5.0], [3.0, 4.0, 1.0]), Bernoulli([0.1, 0.2, 0.3])]
    a, b = embed(messages), embed(dict(zip("xy", messages, strict=True)))
    np.testing.assert_array_equal(a.mean, b.mean)
    np.testing.assert_array_equal(a[1:].mean, embed([m[1:] for m in messages]).mean)
    assert embed(a) is a
    assert len(a[np.array([2, 0])]) == 2


def test_a_plain_array_counts_as_point_masses():
    a = embed([np.array([1.0, 2.0]), np.arange(4.0).reshape(2, 2)])
    np.testing.assert_array_equal(a.mean, [[1, 0, 1], [2, 2, 3]])
    assert not a.variance.any()


def test_vector_messages_keep_their_covariance():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(5, 3, 3))
    message = MultivariateGaussian(rng.normal(size=(5, 3)), covariance=root @ root.swapaxes(1, 2) + np.eye(3))
    a = embed([Gaussian(np.zeros(5), 1.0), message])
    assert a.spans == (slice(0, 1), slice(1, 4))
    np.testing.assert_allclose(a.covariances[1], message.covariance)
    omega, phase = rng.normal(size=(7, 4)), rng.uniform(0, 6, 7)
    total = np.zeros((5, 4, 4))
    total[:, 0, 0], total[:, 1:, 1:] = 1.0, message.covariance
    expected = np.cos(a.mean @ omega.T + phase) * np.exp(-0.5 * np.einsum("dj,njk,dk->nd", omega, total, omega))
    np.testing.assert_allclose(expected_cosines(a, omega, phase), expected, atol=1e-12)
    assert a.vectors().shape == (5, 4 + 4 + 3)
    assert a.message(1).mean.shape == (5, 3)


@pytest.mark.parametrize("axis", ["identity", "chart"])
def test_exact_expected_cosines_are_those_of_samples(axis):
    rng = np.random.default_rng(0)
    messages = [Gaussian([0.5], [2.0]), Beta([2.0], [3.0]), Gamma([2.5], [1.5])]
    omega, phase = rng.normal(size=(6, 3)), rng.uniform(0, 6, 6)
    exact = expected_cosines(embed(messages, axis, "exact"), omega, phase)[0]
    x = np.stack([m.sample(rng, 200_000)[:, 0] for m in messages], axis=1)
    if axis == "chart":
        x[:, 1], x[:, 2] = np.log(x[:, 1] / (1 - x[:, 1])), np.log(x[:, 2])
    draws = np.cos(x @ omega.T + phase)
    # five standard errors of 200,000 draws
    np.testing.assert_allclose(exact, draws.mean(0), atol=5 / np.sqrt(200_000))


def test_for_gaussian_messages_moments_are_exact():
    rng = np.random.default_rng(0)
    messages = [Gaussian([0.5, 1.0], [2.0, 0.1]), Gaussian([1.0, -1.0], [0.0, 3.0])]
    omega, phase = rng.normal(size=(6, 2)), rng.uniform(0, 6, 6)
    a, b = (expected_cosines(embed(messages, how=how), omega, phase) for how in ("moments", "exact"))
    np.testing.assert_allclose(a, b, atol=1e-15)


def test_float32_cosines_of_large_angles_are_as_good_as_of_small_ones():
    rows = embed([Gaussian([1e5, 0.1], [0.01, 0.01])])
    omega, phase = np.random.default_rng(0).normal(size=(50, 1)), np.zeros(50)
    a = expected_cosines(rows, omega, phase)
    b = expected_cosines(rows, omega, phase, np.float32)
    assert b.dtype == np.float32
    np.testing.assert_allclose(a, b, atol=1e-6)


def test_an_improper_message_is_refused_by_name_and_can_be_found_beforehand():
    messages = {"x": Gaussian([0.0, 0.0, 0.0], precision=[1.0, -1.0, 0.0]), "y": np.array([1.0, 1.0, np.nan])}
    with pytest.raises(ImproperError, match="port x"):
        embed(messages)
    np.testing.assert_array_equal(embeddable(messages), [True, False, False])


def test_a_uniform_message_is_absent_and_a_flat_beta_is_not():
    a = embed([Gaussian.uniform((2,)), Beta([1.0, 2.0], [1.0, 2.0])])
    np.testing.assert_array_equal(a.absent, [[True, False], [True, False]])
    assert np.isfinite(a.mean).all() and np.isfinite(a.variance).all()
    np.testing.assert_array_equal(embeddable([Gaussian.uniform((2,))]), [True, True])


def test_wrong_requests_are_refused_in_words():
    message = Gaussian([0.0], [1.0])
    with pytest.raises(ModelError, match="axis"):
        embed([message], axis="polar")
    with pytest.raises(ModelError, match="moments"):
        embed([message], how="magic")
    with pytest.raises(ModelError, match="differ in length"):
        embed([message, Gaussian([0.0, 1.0], 1.0)])
    with pytest.raises(ModelError, match="one axis"):
        embed([Gaussian(0.0, 1.0)])
    with pytest.raises(ModelError, match="port x hold values that are not finite"):
        embed({"x": np.array([0.0, np.nan])})
    with pytest.raises(UnsupportedError, match="Dirichlet"):
        embed([Dirichlet(np.ones((2, 3)))], how="exact")
