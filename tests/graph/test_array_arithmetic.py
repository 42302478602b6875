"""Variables do what arrays do: the same expression of numbers gives the matrix with which dense algebra knows the answer."""

import numpy as np
import pytest
import scipy.sparse

import heliograph as hg
from heliograph.errors import HeliographError

X23 = np.array([[1.0, -2.0, 0.5], [0.0, 1.0, 3.0]])
GROUP = np.array([0, 2, 1, 2, 0])
SCALARS = {  # of an array of shape (4, 3)
    "sum of all": lambda x, xp: x.sum(),
    "sum of rows": lambda x, xp: x.sum(axis=1),
    "sum of columns": lambda x, xp: x.sum(0),
    "np.sum": lambda x, xp: np.sum(x, axis=1),
    "mean": lambda x, xp: x.mean(),
    "mean of rows": lambda x, xp: x.mean(axis=-1),
    "mean over two axes": lambda x, xp: x.mean(axis=(0, 1)),
    "np.mean": lambda x, xp: np.mean(x, axis=0),
    "sum of an expression": lambda x, xp: (2.0 * x - 1.0 + x[::-1]).sum(axis=0),
    "sum of a sum": lambda x, xp: x.sum(axis=1).sum() - x[0, 0],
    "transpose": lambda x, xp: x.T[1] + x.T[0] * 2.0,
    "times zero in data": lambda x, xp: x[:, 0] + x[:, 1] * np.array([0.0, 1.0, 0.0, 2.0]),
    "concatenate": lambda x, xp: xp.concatenate([x[0], x[2], x[0]]),
    "concatenate with numbers": lambda x, xp: xp.concatenate([x[0], np.array([1.0, 2.0]), 3.0 * x[1] - 1.0]),
    "concatenate along an axis": lambda x, xp: xp.concatenate([x[:, :1], x[:, :2]], axis=1),
    "stack": lambda x, xp: xp.stack([x[0, 0], x[1, 1], x[0, 0] + x[1, 1]]),
    "stack along the last axis": lambda x, xp: xp.stack([x[0], x[1]], axis=-1),
    "np.concatenate": lambda x, xp: np.concatenate([x[0], x[1]]),
    "np.stack": lambda x, xp: np.stack([x[0], x[1]]),
    "matrix product": lambda x, xp: X23 @ x[:3],
    "matrix product with a stack": lambda x, xp: X23 @ xp.stack([x[0, 0], x[1, 0], x[2, 1]]),
    "array plus variable": lambda x, xp: np.ones((4, 3)) + x,
    "array minus variable": lambda x, xp: np.ones((4, 3)) - x,
    "array times variable": lambda x, xp: np.arange(12.0).reshape(4, 3) * x,
    "np.add and np.negative": lambda x, xp: np.add(np.negative(x), x[0]),
    "row by row products": lambda x, xp: (np.ones((5, 3)) * x[GROUP % 4] * np.arange(15.0).reshape(5, 3)).sum(axis=-1),
    "power of one": lambda x, xp: x**1,
    "loops": lambda x, xp: sum(row[0] for row in x),
}
VECTORS = {  # of one vector of 3 entries
    "entry": lambda w, xp: w[2],
    "slice": lambda w, xp: w[:2],
    "negative": lambda w, xp: w[-1] - w[0],
    "integer array": lambda w, xp: w[[0, 2, 2]],
    "sum": lambda w, xp: w.sum(),
    "mean": lambda w, xp: w.mean(),
    "matrix": lambda w, xp: X23 @ w,
    "vector": lambda w, xp: X23[0] @ w,
    "from the left": lambda w, xp: w @ X23.T,
    "entry of a product": lambda w, xp: (X23 @ w)[1] + w[0],
    "by entries": lambda w, xp: np.array([1.0, 2.0, 3.0]) * w,
    "scaled": lambda w, xp: 2.0 * w + 1.0,
    "sum of rows": lambda w, xp: (X23 @ w).sum(),
    "joined": lambda w, xp: xp.concatenate([w[:2], X23 @ w]),
    "iterated": lambda w, xp: sum(w),
}
PLATES = {  # of 3 vectors of 2 entries
    "entries": lambda w, xp: w[1, 0],
    "columns": lambda w, xp: w[:, 1],
    "one vector": lambda w, xp: w[2][1],
    "many outputs": lambda w, xp: X23[:, :2] @ w.T if xp is np else X23[:, :2] @ w,
    "per group": lambda w, xp: (np.arange(10.0).reshape(5, 2) * w[GROUP]).sum(axis=-1),
    "sum of plate": lambda w, xp: w[..., 0].sum(),
    "one row": lambda w, xp: w @ X23[0, :2] if xp is np else X23[0, :2] @ w,
}


def dense(function, shape):
    """The matrix and the constant of an affine function of an array."""
    size = int(np.prod(shape))
    constant = np.ravel(function(np.zeros(shape), np))
    columns = [np.ravel(function(e.reshape(shape), np)) - constant for e in np.eye(size)]
    return np.stack(columns, axis=1), constant, np.shape(function(np.zeros(shape), np))


def check(make, function, shape, structure):
    """Observe the expression with noise, and compare with the dense posterior."""
    rng = np.random.default_rng(5)
    size = int(np.prod(shape))
    a, c, out_shape = dense(function, shape)
    mean = rng.standard_normal(size)
    model = hg.Model()
    x, prior = make(model, mean.reshape(shape), rng)
    expression = function(x, hg)
    event = () if expression.node.dimension is None else (expression.node.dimension,)
    assert (*expression.shape, *event) == out_shape
    y = rng.standard_normal(len(c))
    if event:
        model.gaussian("y", expression, covariance=0.3 * np.eye(event[0]), observed=y.reshape(out_shape))
    else:
        model.gaussian("y", expression, variance=0.3, observed=y.reshape(out_shape))
    posterior = model.infer(structure=structure)
    precision = np.linalg.inv(prior) + a.T @ a / 0.3
    covariance = np.linalg.inv(precision)
    centre = covariance @ (np.linalg.solve(prior, mean) + a.T @ (y - c) / 0.3)
    np.testing.assert_allclose(np.ravel(posterior[x].mean), centre, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(np.ravel(posterior[expression].mean), a @ centre + c, rtol=1e-8, atol=1e-8)
    found = posterior[expression]
    np.testing.assert_allclose(np.ravel(found.variance), np.diag(a @ covariance @ a.T), rtol=1e-7, atol=1e-8)
    spread = a @ prior @ a.T + 0.3 * np.eye(len(c))
    gap = y - c - a @ mean
    evidence = -0.5 * (gap @ np.linalg.solve(spread, gap) + np.linalg.slogdet(2 * np.pi * spread)[1])
    np.testing.assert_allclose(posterior.log_evidence, evidence, rtol=1e-8)


def scalars(model, mean, rng):
    variance = rng.uniform(0.5, 2.0, mean.shape)
    return model.gaussian("x", mean, variance=variance), np.diag(variance.ravel())


def vector(model, mean, rng):
    root = rng.standard_normal((mean.size, mean.size))
    prior = root @ root.T + np.eye(mean.size)
    return model.gaussian("x", mean, covariance=prior), prior


def plate(model, mean, rng):
    n, d = mean.shape
    root = rng.standard_normal((n, d, d))
    prior = root @ np.swapaxes(root, 1, 2) + np.eye(d)
    whole = np.zeros((n * d, n * d))
    for k in range(n):
        whole[k * d : (k + 1) * d, k * d : (k + 1) * d] = prior[k]
    return model.gaussian("x", mean, covariance=prior), whole


@pytest.mark.parametrize("name", SCALARS)
def test_expressions_of_scalars_are_those_of_numbers(name):
    check(scalars, SCALARS[name], (4, 3), "auto")


@pytest.mark.parametrize("name", VECTORS)
def test_expressions_of_a_vector_are_those_of_numbers(name):
    check(vector, VECTORS[name], (3,), "auto")


@pytest.mark.parametrize("name", PLATES)
def test_expressions_of_a_plate_of_vectors_are_those_of_numbers(name):
    check(plate, PLATES[name], (3, 2), "auto")


@pytest.mark.parametrize("size", [1, 2, 31, 33, 200])
def test_long_sums_are_exact_at_every_size(size):
    model = hg.Model()
    x = model.gaussian("x", np.arange(size) * 0.1, variance=2.0)
    model.gaussian("y", x.sum(), variance=1.0, observed=3.0)
    posterior = model.infer()
    gain = 2.0 / (2.0 * size + 1.0)
    total = 0.1 * size * (size - 1) / 2
    np.testing.assert_allclose(posterior[x].mean, np.arange(size) * 0.1 + gain * (3.0 - total), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(posterior[x].variance, 2.0 - 2.0 * gain, rtol=1e-9)


def test_a_sparse_matrix_on_the_left_is_a_matrix():
    model = hg.Model()
    w = model.gaussian("w", np.zeros(3), covariance=np.eye(3))
    assert (scipy.sparse.csr_array(X23) @ w).shape == (2,)
    assert (scipy.sparse.csr_matrix(X23) @ w).shape == (2,)


def test_lengths_and_shapes_are_those_of_arrays():
    model = hg.Model()
    x = model.gaussian("x", np.zeros((4, 3)), sd=1.0)
    w = model.gaussian("w", np.zeros(5), covariance=np.eye(5))
    assert len(x) == 4 and x.T.shape == (3, 4) and x.ndim == 2 and np.shape(x) == (4, 3)
    assert len(w) == 5 and len(list(w)) == 5
    with pytest.raises(TypeError, match="no length"):
        len(x[0, 0])


def test_a_minimum_is_the_negative_of_a_maximum():
    model = hg.Model()
    a, b = model.gaussian("a", 0.3, sd=1.0), model.gaussian("b", -0.2, sd=2.0)
    m = np.minimum(a, b)
    model.gaussian("y", m, sd=0.5, observed=-1.0)
    posterior = model.infer()
    u, v = np.meshgrid(*(np.linspace(-14, 14, 2801),) * 2, indexing="ij")
    log_p = -0.5 * (u - 0.3) ** 2 - 0.5 * (v + 0.2) ** 2 / 4 - 0.5 * (np.minimum(u, v) + 1.0) ** 2 / 0.25
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    np.testing.assert_allclose(posterior[a].mean, (p * u).sum(), atol=1e-4)
    np.testing.assert_allclose(posterior[a].variance, (p * u * u).sum() - (p * u).sum() ** 2, rtol=1e-3)
    np.testing.assert_allclose(posterior[b].mean, (p * v).sum(), atol=1e-4)


def test_an_exposure_times_a_rate_is_exact():
    model = hg.Model()
    rate = model.gamma("rate", 2.0, 1.5)
    exposure = np.array([0.5, 2.0, 10.0])
    counts = np.array([1.0, 0.0, 7.0])
    model.poisson("y", rate * exposure, observed=counts)
    posterior = model.infer()
    np.testing.assert_allclose(posterior[rate].mean, (2.0 + 8.0) / (1.5 + 12.5), rtol=1e-12)
    from scipy.special import gammaln

    log_p = (
        gammaln(10.0) - gammaln(2.0) + 2 * np.log(1.5) - 10 * np.log(14.0)
        + (counts * np.log(exposure) - gammaln(counts + 1)).sum()
    )  # fmt: skip
    np.testing.assert_allclose(posterior.log_evidence, log_p, rtol=1e-12)


def test_the_logarithm_of_a_gamma_variable_meets_gaussian_noise():
    model = hg.Model()
    g = model.gamma("g", 3.0, 2.0)
    model.gaussian("y", np.log(g), sd=0.4, observed=0.9)
    posterior = model.infer()
    x = np.linspace(1e-4, 30, 600001)
    p = x**2 * np.exp(-2 * x) * 4 * np.exp(-0.5 * ((np.log(x) - 0.9) / 0.4) ** 2) / np.sqrt(2 * np.pi) / 0.4
    step = x[1] - x[0]
    np.testing.assert_allclose(posterior.log_evidence, np.log(p.sum() * step), atol=1e-6)
    np.testing.assert_allclose(posterior[g].mean, (x * p).sum() / p.sum(), rtol=1e-6)


def test_a_random_inner_product_is_a_sum_of_products():
    model = hg.Model()
    u = model.gaussian("u", [1.0, 2.0], covariance=0.01 * np.eye(2))
    v = model.gaussian("v", [3.0, -1.0], covariance=0.04 * np.eye(2))
    z = u @ v
    model.gaussian("y", z, sd=1.0, observed=2.0)
    posterior = model.infer()
    assert abs(float(posterior[z].mean) - 1.0) < 0.5  # 1 * 3 - 2 * 1, and the data at 2
    rng = np.random.default_rng(0)
    a = rng.standard_normal((400000, 2)) * 0.1 + [1.0, 2.0]
    b = rng.standard_normal((400000, 2)) * 0.2 + [3.0, -1.0]
    w = np.exp(-0.5 * ((a * b).sum(1) - 2.0) ** 2)
    np.testing.assert_allclose(posterior[v].mean, (w[:, None] * b).sum(0) / w.sum(), atol=2e-3)
    np.testing.assert_allclose(posterior[u].mean, (w[:, None] * a).sum(0) / w.sum(), atol=2e-3)


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (lambda m, x, g: np.sin(x), "np.sin"),
        (lambda m, x, g: np.median(x), "np.median"),
        (lambda m, x, g: x**3, "def cube"),
        (lambda m, x, g: x**0.5, "def cube"),
        (lambda m, x, g: g**2, "Gaussian"),
        (lambda m, x, g: abs(g) + 1.0, "Gaussian"),
        (lambda m, x, g: g > 3.0, "model.log(g)"),
        (lambda m, x, g: g > 3.0, "model.log(g)"),
        (lambda m, x, g: g * 0.0, "greater than 0"),
        (lambda m, x, g: g * -1.0, "greater than 0"),
        (lambda m, x, g: x.sum(axis=3), "no axis"),
        (lambda m, x, g: x.sum(axis="a"), "no axis"),
        (lambda m, x, g: hg.concatenate([x, g]), "'g' is Gamma"),
        (lambda m, x, g: hg.concatenate([x, np.ones((2, 2))]), "dimension"),
        (lambda m, x, g: hg.stack([x, np.ones(2)]), "shape"),
        (lambda m, x, g: hg.stack(3.0), "list of variables"),
        (lambda m, x, g: m.between(x, x[0], 1.0), "random"),
        (lambda m, x, g: np.add(x, 1.0, out=np.zeros(3)), "np.add"),
        (lambda m, x, g: x @ np.ones((2, 2)), "X @"),
        (lambda m, x, g: (-2.0) ** x, "greater than 0"),
        (lambda m, x, g: m.log(x), "Gamma"),
    ],
)
def test_what_has_no_factor_says_what_to_write(write, words):
    model = hg.Model()
    x, g = model.gaussian("x", np.zeros(3), sd=1.0), model.gamma("g", 2.0, 1.0)
    with pytest.raises(HeliographError) as error:
        write(model, x, g)
    assert words in str(error.value)
