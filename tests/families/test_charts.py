import numpy as np
import pytest
from scipy.linalg import logm, sqrtm

from heliograph.families import (
    Bernoulli,
    Beta,
    Categorical,
    Dirichlet,
    Gamma,
    Gaussian,
    MultivariateGaussian,
)
from heliograph.families.charts import chart_of


def _spread(rng, n, d):
    root = rng.normal(size=(n, d, d))
    return root @ np.swapaxes(root, 1, 2) + 0.3 * np.eye(d)


def _plates(rng, n=6):
    """Two plates of each family: beliefs and references."""
    return {
        "gaussian": [Gaussian(rng.normal(size=n), rng.uniform(0.1, 3, n)) for _ in range(2)],
        "gamma": [Gamma(10 ** rng.uniform(-1, 2, n), rng.uniform(0.1, 3, n)) for _ in range(2)],
        "beta": [Beta(10 ** rng.uniform(-0.5, 2, n), 10 ** rng.uniform(-0.5, 2, n)) for _ in range(2)],
        "bernoulli": [Bernoulli(rng.uniform(0.01, 0.99, n)) for _ in range(2)],
        "categorical": [Categorical(rng.dirichlet(np.ones(4), n)) for _ in range(2)],
        "dirichlet": [Dirichlet(rng.uniform(0.2, 9, (n, 3))) for _ in range(2)],
        "vector 2": [MultivariateGaussian(rng.normal(size=(n, 2)), covariance=_spread(rng, n, 2)) for _ in range(2)],
        "vector 3": [MultivariateGaussian(rng.normal(size=(n, 3)), covariance=_spread(rng, n, 3)) for _ in range(2)],
    }


FAMILIES = sorted(_plates(np.random.default_rng(0)))


@pytest.mark.parametrize("family", FAMILIES)
def test_the_inverse_map_gives_the_belief_back(family):
    belief, other = _plates(np.random.default_rng(1))[family]
    chart = chart_of(belief)
    for reference in (chart.moments(other), chart.plain(len(belief))):
        target = chart.gap(chart.moments(belief), reference)
        assert target.shape == (len(belief), chart.n_outputs)
        back = chart.belief(target, reference)
        assert np.max(back.kl(belief)) < 1e-18 + 1e-13 * np.max(belief.kl(other))  # rounding of the inversions, squared


@pytest.mark.parametrize("family", FAMILIES)
def test_the_target_relative_to_itself_is_zero(family):
    belief, _ = _plates(np.random.default_rng(2))[family]
    chart = chart_of(belief)
    assert np.max(np.abs(chart.gap(chart.moments(belief), chart.moments(belief)))) < 1e-10


@pytest.mark.parametrize("family", FAMILIES)
def test_no_target_leaves_the_family(family):
    rng = np.random.default_rng(3)
    _, other = _plates(rng)[family]
    chart = chart_of(other)
    for size in (1.0, 10.0, 1e3):
        belief = chart.belief(size * rng.normal(size=(len(other), chart.n_outputs)), chart.moments(other))
        assert belief.proper.all()


@pytest.mark.parametrize("family", FAMILIES)
def test_weights_are_half_the_second_derivative_of_kl(family):
    belief, other = _plates(np.random.default_rng(4))[family]
    chart = chart_of(belief)
    reference = chart.moments(other)
    target = chart.gap(chart.moments(belief), reference)
    weights = chart.weights(target, reference)
    assert weights.shape == target.shape
    h = 1e-3
    for j in range(chart.n_outputs):
        step = h * np.eye(chart.n_outputs)[j]
        up, down = (chart.belief(target + s * step, reference) for s in (1, -1))
        kl = (belief.kl(up) + belief.kl(down)) / (2 * h**2)  # the odd terms of the expansion cancel, the next are h^2
        assert np.allclose(weights[:, j], kl, rtol=2e-4, atol=1e-9)


@pytest.mark.parametrize("family", FAMILIES)
def test_label_noise_is_that_of_labels_drawn_with_the_oracles_covariance(family):
    rng = np.random.default_rng(5)
    belief, other = _plates(rng)[family]
    chart = chart_of(belief)
    reference = chart.moments(other)
    n, size = len(belief), 1e-4
    coordinates, inverse = _oracle_coordinates(belief)
    r = coordinates.shape[1]
    roots = size * rng.normal(size=(n, r, r))
    if isinstance(belief, MultivariateGaussian):  # errors of a covariance are symmetric
        d = belief.dimension
        symmetric = np.zeros((r, r))
        symmetric[:d, :d] = np.eye(d)
        swap = np.arange(d * d).reshape(d, d).T.ravel()
        symmetric[d:, d:] = 0.5 * (np.eye(d * d) + np.eye(d * d)[swap])
        roots = symmetric @ roots
    noise = chart.noise(belief, roots @ np.swapaxes(roots, 1, 2), reference)
    # each column of a root is one direction of error: the target moves linearly along it
    moved = np.zeros_like(noise)
    for k in range(r):
        up, down = (inverse(coordinates + s * roots[:, :, k]) for s in (1, -1))
        moved += (0.5 * (chart.gap(chart.moments(up), reference) - chart.gap(chart.moments(down), reference))) ** 2
    assert np.allclose(noise, moved, rtol=1e-4, atol=1e-16)


def _oracle_coordinates(belief):
    """The coordinates in which `Answer.chart_covariances` speaks, and the way back."""
    n = len(belief)
    if isinstance(belief, (Gaussian, Gamma, Beta)):
        mean, variance = belief.chart_moments()
        return np.stack([mean, np.log(variance)], 1), lambda c: type(belief).from_chart_moments(
            c[:, 0], np.exp(c[:, 1])
        )
    if isinstance(belief, MultivariateGaussian):
        d = belief.dimension
        flat = np.concatenate([belief.mean, belief.covariance.reshape(n, -1)], 1)
        return flat, lambda c: MultivariateGaussian(c[:, :d], covariance=c[:, d:].reshape(n, d, d))
    if isinstance(belief, Bernoulli):
        return belief.log_odds[:, None], lambda c: Bernoulli.from_log_odds(c[:, 0])
    if isinstance(belief, Categorical):
        return belief.log_p, lambda c: Categorical.from_naturals((c,))
    return belief.expected_statistics()[0], lambda c: Dirichlet.from_statistics(c)


def test_a_vectors_target_is_the_symmetric_whitening_and_the_matrix_logarithm():
    rng = np.random.default_rng(6)
    belief, other = _plates(rng)["vector 3"]
    chart = chart_of(belief)
    target = chart.gap(chart.moments(belief), chart.moments(other))
    for i in range(len(belief)):
        white = np.linalg.inv(np.real(sqrtm(other.covariance[i])))
        assert np.allclose(target[i, :3], white @ (belief.mean[i] - other.mean[i]))
        log = np.real(logm(white @ belief.covariance[i] @ white))
        assert np.isclose((target[i, 3:] ** 2).sum(), (log**2).sum())
        assert np.allclose(target[i, [3, 5, 8]], np.diag(log))


@pytest.mark.parametrize("family", FAMILIES)
def test_features_tell_messages_apart(family):
    a, b = _plates(np.random.default_rng(7))[family]
    chart = chart_of(a)
    assert np.isfinite(chart.features(a)).all()
    assert (np.abs(chart.features(a) - chart.features(b)).max(axis=1) > 1e-6).all()


def test_features_of_a_large_gamma_are_its_chart_moments():
    message = Gamma(1e6, [2.0, 1e3])
    mean, variance = message.chart_moments()
    assert np.allclose(chart_of(message).features(message), np.stack([mean, np.log(variance)], 1), rtol=1e-6)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_value_comes_back_from_its_coordinates(family):
    rng = np.random.default_rng(6)
    message, _ = _plates(rng)[family]
    chart, x = chart_of(message), message.sample(rng, 5)
    np.testing.assert_allclose(chart.value(chart.coordinates(x)), x, rtol=1e-12)


@pytest.mark.parametrize("family", ["gamma", "beta"])
def test_the_jacobian_is_the_slope_of_the_value(family):
    chart = chart_of(_plates(np.random.default_rng(7))[family][0])
    u, h = np.linspace(-3, 3, 7), 1e-6
    slope = (chart.value(u + h) - chart.value(u - h)) / (2 * h)
    np.testing.assert_allclose(chart.log_jacobian(u), np.log(slope), atol=1e-9)  # h^2, and rounding over h


def test_the_jacobian_of_the_simplex_is_the_determinant_of_its_slopes():
    chart = chart_of(Dirichlet([2.0, 3.0, 4.0]))
    u, h = np.array([0.3, -1.1]), 1e-6
    slopes = np.stack([(chart.value(u + h * e) - chart.value(u - h * e))[:2] / (2 * h) for e in np.eye(2)])
    np.testing.assert_allclose(chart.log_jacobian(u), np.log(abs(np.linalg.det(slopes))), atol=1e-8)


def test_a_value_on_the_edge_of_the_support_is_infinite_and_can_be_moved_inside():
    for message, edge, infinite in ((Gamma(1.0, 1.0), 0.0, -np.inf), (Beta(1.0, 1.0), 1.0, np.inf)):
        chart = chart_of(message)
        assert chart.coordinates(edge) == infinite
        inside = chart.inside(edge)
        assert inside != edge and np.isfinite(chart.coordinates(inside)) and message.in_support(inside)
