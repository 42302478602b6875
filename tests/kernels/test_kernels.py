"""Every kernel: a contract for all that are listed, closed forms against quadrature, features against the kernel."""

import json

import numpy as np
import pytest

from heliograph.errors import FileFormatError, ModelError
from heliograph.families import Beta, Gamma, Gaussian, MultivariateGaussian
from heliograph.kernels import (
    KERNELS,
    ExpectedProduct,
    FeatureMap,
    JointGaussian,
    MeanVariance,
    Product,
    Sum,
    embed,
    feature_map_from_state,
    heuristic,
    kernel_from_state,
)


def tuples(n=40, seed=0):
    """Two Gaussian messages, as in the appendix's own check of the features."""
    rng = np.random.default_rng(seed)
    return [
        Gaussian(rng.normal(size=n) * 3, rng.gamma(3, 1 / 4, n)),
        Gaussian(rng.normal(size=n), rng.gamma(3, 1 / 4, n)),
    ]


def mixed(n=6, seed=0):
    rng = np.random.default_rng(seed)
    return [
        Gaussian(rng.normal(size=n), rng.gamma(3, 1 / 4, n)),
        Beta(rng.uniform(1, 4, n), rng.uniform(1, 4, n)),
        Gamma(rng.uniform(1, 4, n), rng.uniform(1, 4, n)),
    ]


EVERY = [
    JointGaussian((3.0, 1.0), 0.5),
    MeanVariance((9.0, 1.0, 0.3, 0.2)),
    ExpectedProduct((3.0, 1.0)),
    Sum(((3.0,), (1.0,))),
    Sum(((3.0,), (1.0,)), (0.5, 0.2)),
    Product(((3.0,), (1.0,))),
]
IDS = ["joint gaussian", "mean variance", "expected product", "sum", "sum of gaussians", "product"]


def test_every_listed_kernel_is_in_the_contract():
    assert {k.name for k in EVERY} == set(KERNELS)


@pytest.mark.parametrize("kernel", EVERY, ids=IDS)
def test_a_gram_matrix_is_symmetric_positive_and_one_plate_against_another_is_a_part_of_it(kernel):
    messages = tuples()
    gram = kernel.gram(messages)
    np.testing.assert_allclose(gram, gram.T, atol=1e-14)
    assert np.linalg.eigvalsh(gram)[0] > -1e-12 * len(gram)  # rounding of a positive semi-definite matrix
    part = kernel.gram([m[:5] for m in messages], [m[3:] for m in messages])
    np.testing.assert_allclose(part, gram[:5, 3:], atol=1e-14)


@pytest.mark.parametrize("kernel", EVERY, ids=IDS)
def test_features_approach_the_exact_kernel_as_they_grow(kernel):
    messages = tuples()
    gram = kernel.gram(messages)
    errors = []
    for size in (50, 500, 5000):
        rng = np.random.default_rng(1)
        if isinstance(kernel, Product):
            maps = [kernel.features(rng, n_each=round(np.sqrt(size))) for _ in range(4)]
        elif isinstance(kernel, JointGaussian):
            maps = [kernel.features(rng, n_outer=size, n_inner=min(2 * size, 2000)) for _ in range(2)]
        elif isinstance(kernel, Sum):
            maps = [kernel.features(rng, n_each=size, n_inner=min(2 * size, 2000)) for _ in range(2)]
        else:
            maps = [kernel.features(rng, size) for _ in range(4)]
        xs = [m.features(messages) for m in maps]
        errors.append(np.mean([np.abs(x @ x.T - gram).mean() for x in xs]))
    # ten times as many features are three times as good, for the tensor features only twice
    assert errors[1] < 0.6 * errors[0] and errors[2] < 0.6 * errors[1]
    assert errors[2] < 0.05


@pytest.mark.parametrize("kernel", EVERY, ids=IDS)
def test_features_in_float32_and_in_chunks_are_the_same_features(kernel):
    messages = tuples(1300)
    feature_map = kernel.features(np.random.default_rng(0))
    x = feature_map.features(messages)
    assert x.shape == (1300, feature_map.n_features)
    x32 = feature_map.features(messages, np.float32)
    assert x32.dtype == np.float32
    np.testing.assert_allclose(x32, x, atol=1e-6)
    np.testing.assert_allclose(np.concatenate(list(feature_map.chunks(messages))), x, atol=1e-14)
    # a matrix product of another shape rounds its sums in another order
    np.testing.assert_allclose(feature_map.features([m[700:703] for m in messages]), x[700:703], atol=1e-13)


@pytest.mark.parametrize("kernel", EVERY, ids=IDS)
def test_a_map_is_its_seed_and_numbers_and_comes_back_from_json(kernel):
    messages = tuples()
    feature_map = kernel.features(np.random.default_rng(0))
    x = feature_map.features(messages)
    text = json.dumps(feature_map.state())
    assert len(text) < 400
    again = feature_map_from_state(json.loads(text))
    np.testing.assert_array_equal(again.features(messages), x)
    assert kernel_from_state(kernel.state()) == kernel


@pytest.mark.parametrize("kernel", EVERY, ids=IDS)
def test_a_uniform_message_is_far_from_every_proper_one_and_hides_none_of_the_others(kernel):
    messages = [Gaussian([0.0, 0.0, 1.0], precision=[0.0, 0.0, 1.0]), Gaussian([0.0, 3.0, 0.0], [1.0, 1.0, 1.0])]
    gram = kernel.gram(messages)
    assert gram[0, 1] < 0.9 * gram[0, 0]  # told apart by the other message
    same = kernel.gram([messages[0][:1], messages[1][:1]])
    x = kernel.features(np.random.default_rng(0)).features(messages)
    assert np.isfinite(x).all()
    np.testing.assert_allclose(same[0, 0], gram[0, 0])
    if isinstance(kernel, (ExpectedProduct, Product, MeanVariance)):
        assert gram[0, 2] == pytest.approx(0.0, abs=1e-12)
        assert x[0] @ x[2] == pytest.approx(0.0, abs=0.2)


@pytest.mark.parametrize("kernel", EVERY, ids=IDS)
def test_the_order_of_tuples_does_not_matter_and_equal_tuples_have_equal_rows(kernel):
    messages = [m[np.array([0, 1, 0])] for m in tuples()]
    gram = kernel.gram(messages)
    np.testing.assert_allclose(gram[0], gram[2], atol=1e-15)
    assert gram[0, 0] == pytest.approx(gram[0, 2], abs=1e-14)


def node_laws(message, axis):
    """Nodes and normalised weights for one message on an axis, by panels of Gauss-Legendre over all of its mass.

    A Beta or Gamma is integrated on its chart, where the density is smooth, and its nodes are mapped back.
    """
    mean, variance = (float(a[0]) for a in message.chart_moments())
    reach = (9 if isinstance(message, Gaussian) else 42) * np.sqrt(variance)
    edges = np.linspace(mean - reach, mean + reach, 31)
    half = np.diff(edges) / 2
    nodes, weights = np.polynomial.legendre.leggauss(40)
    x = ((edges[:-1] + half)[:, None] + half[:, None] * nodes).ravel()
    w = (half[:, None] * weights).ravel()
    if isinstance(message, Beta):
        log_p = -float(message.a[0]) * np.logaddexp(0, -x) - float(message.b[0]) * np.logaddexp(0, x)
        x = 1 / (1 + np.exp(-x)) if axis == "identity" else x
    elif isinstance(message, Gamma):
        log_p = float(message.shape_parameter[0]) * x - float(message.rate[0]) * np.exp(x)
        x = np.exp(x) if axis == "identity" else x
    else:
        log_p = message.log_density(x)
    p = np.exp(log_p - log_p.max()) * w
    return x, p / p.sum()


@pytest.mark.parametrize("axis", ["identity", "chart"])
def test_exact_inner_products_of_every_pair_of_families_equal_quadrature(axis):
    messages = mixed(3)
    width2 = (0.4, 0.05, 0.3)
    joint = ExpectedProduct(width2, axis, "exact").gram(messages)
    summed = Sum(tuple((w,) for w in width2), None, axis, "exact").gram(messages)
    outer = JointGaussian(width2, 0.3, axis, "exact").gram(messages)
    products = np.empty((3, 3, 3))
    for k, m in enumerate(messages):
        laws = [node_laws(m[i : i + 1], axis) for i in range(3)]
        for i, (x, p) in enumerate(laws):
            for j, (y, q) in enumerate(laws):
                products[k, i, j] = p @ np.exp(-0.5 * (x[:, None] - y) ** 2 / width2[k]) @ q
    whole = products.prod(0)
    np.testing.assert_allclose(joint, whole, atol=1e-10)
    np.testing.assert_allclose(summed, products.sum(0), atol=1e-10)
    norms = np.diagonal(whole)
    np.testing.assert_allclose(outer, np.exp(-(norms[:, None] + norms - 2 * whole) / 0.6), atol=1e-10)


def test_moment_matched_products_equal_quadrature_of_the_matched_gaussians():
    messages = mixed(3)
    rows = embed(messages)
    gaussians = [Gaussian(rows.mean[:, k], rows.variance[:, k]) for k in range(3)]
    kernel = JointGaussian((0.4, 0.05, 0.3), 0.3)
    np.testing.assert_allclose(kernel.gram(messages), kernel.gram(gaussians), atol=1e-15)
    products = np.ones((3, 3))
    for k, m in enumerate(gaussians):
        laws = [node_laws(m[i : i + 1], "identity") for i in range(3)]
        for i, (x, p) in enumerate(laws):
            for j, (y, q) in enumerate(laws):
                products[i, j] *= p @ np.exp(-0.5 * (x[:, None] - y) ** 2 / kernel.width2[k]) @ q
    norms = np.diagonal(products)
    np.testing.assert_allclose(
        kernel.gram(messages), np.exp(-(norms[:, None] + norms - 2 * products) / 0.6), atol=1e-10
    )


def test_vector_messages_have_the_appendix_formula_with_full_covariances():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(4, 2, 2))
    message = MultivariateGaussian(rng.normal(size=(4, 2)), covariance=root @ root.swapaxes(1, 2) + 0.1 * np.eye(2))
    sigma = np.diag([0.5, 2.0])
    gram = ExpectedProduct((0.5, 2.0)).gram([message])
    for i in range(4):
        for j in range(4):
            d = np.linalg.inv(message.covariance[i] + message.covariance[j] + sigma)
            gap = message.mean[i] - message.mean[j]
            expected = np.sqrt(np.linalg.det(d) * np.linalg.det(sigma)) * np.exp(-0.5 * gap @ d @ gap)
            assert gram[i, j] == pytest.approx(expected, rel=1e-12)
    kernel = JointGaussian((0.5, 2.0), 0.3)
    x = kernel.features(np.random.default_rng(1), 4000, 2000).features([message])
    np.testing.assert_allclose(x @ x.T, kernel.gram([message]), atol=0.1)
    assert kernel.gram([message])[1, 1] == pytest.approx(1.0, abs=1e-12)


def test_features_of_exact_embeddings_approach_the_exact_kernel():
    messages = mixed(20)
    kernel = JointGaussian((0.4, 0.5, 0.3), 0.2, "chart", "exact")
    gram = kernel.gram(messages)
    errors = []
    for n in (50, 500, 5000):
        x = kernel.features(np.random.default_rng(2), n, min(2 * n, 2000)).features(messages)
        errors.append(np.abs(x @ x.T - gram).mean())
    assert errors[0] > 2 * errors[1] > 4 * errors[2]
    assert np.abs(gram - JointGaussian((0.4, 0.5, 0.3), 0.2, "chart").gram(messages)).max() > 1e-3  # moments differ


def test_a_map_too_large_to_keep_draws_the_same_coefficients_block_by_block():
    messages = tuples(10)
    kernel = JointGaussian((3.0, 1.0), 0.5)
    big = FeatureMap(kernel, 5, (2500, 2000))
    small_draws = FeatureMap(kernel, 5, (2500, 1024))
    ratio = np.sqrt(2000 / 1024)
    np.testing.assert_allclose(big.features(messages)[:, :1024] * ratio, small_draws.features(messages), atol=1e-12)
    assert not any(a.size > 4_000_000 for a in big.draws._kept.values())


def test_two_seeds_give_two_maps():
    messages = tuples()
    a, b = (FeatureMap(EVERY[0], seed, (30, 50)).features(messages) for seed in (1, 2))
    assert np.abs(a - b).max() > 0.1


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_the_heuristic_gives_every_kind_of_kernel_finite_widths(name):
    messages = mixed(50)
    kernel = heuristic(name, messages)
    gram = kernel.gram(messages)
    off = gram[np.triu_indices(50, 1)]
    assert np.isfinite(gram).all()
    assert off.std() > 0.01 * gram.max()
    assert kernel.features(np.random.default_rng(0)).features(messages).shape[0] == 50


def test_unknown_names_broken_descriptions_and_giant_tensors_are_refused():
    with pytest.raises(ModelError, match="no kernel named"):
        heuristic("matern", tuples())
    with pytest.raises(ModelError, match="take fewer"):
        Product(((1.0,),) * 4).features(np.random.default_rng(0), 100)
    for broken in ({}, {"name": "sum"}, {"name": "joint_gaussian", "width": 1}, None):
        with pytest.raises(FileFormatError):
            kernel_from_state(broken)  # type: ignore[arg-type]
    for broken in ({}, {"kernel": {}, "seed": "x", "sizes": [1]}, {"kernel": EVERY[0].state(), "seed": 1, "sizes": 3}):
        with pytest.raises(FileFormatError):
            feature_map_from_state(broken)
