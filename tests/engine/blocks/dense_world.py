"""The same model in dense algebra: every quantity is a linear function of independent standard normals.

A `World` understands the linear-Gaussian words of `hg.Model`, so that one function writes both models. Noise is a standard
normal of its own, so data are exact values of expressions, and a QR decomposition of their rows gives the posterior: what is
orthogonal to the rows is still free. Nothing is inverted and nothing cancels.
"""

import numpy as np

import heliograph as hg

CAPACITY = 400  # standard normals in a world


class Expression:
    """Numbers ``rows @ eps + constant``, of any shape; the components of a vector are its last axis."""

    __array_ufunc__ = None

    def __init__(self, rows, constant):
        self.rows = rows  # (*shape, CAPACITY)
        self.constant = constant  # shape

    def __add__(self, other):
        if not isinstance(other, Expression):
            return Expression(*_fit(self.rows, self.constant + np.asarray(other)))
        return Expression(*_fit(self.rows + other.rows, self.constant + other.constant))

    __radd__ = __add__

    def __mul__(self, number):
        number = np.asarray(number, dtype=float)
        return Expression(self.rows * number[..., None], self.constant * number)

    __rmul__ = __mul__

    def __neg__(self):
        return self * -1.0

    def __sub__(self, other):
        return self + (-other)

    def __rsub__(self, other):
        return -self + other

    def __truediv__(self, number):
        return self * (1.0 / np.asarray(number))

    def __rmatmul__(self, matrix):
        return Expression(np.asarray(matrix) @ self.rows, np.asarray(matrix) @ self.constant)

    def __getitem__(self, key):
        return Expression(self.rows[key], self.constant[key])

    def reshape(self, *shape):
        return Expression(self.rows.reshape((*shape, CAPACITY)), self.constant.reshape(shape))


def _fit(rows, constant):
    return np.broadcast_to(rows, (*constant.shape, CAPACITY)), constant


class World:
    """A linear-Gaussian model with the methods of `hg.Model` that make one."""

    def __init__(self):
        self.used = 0
        self.named = {}
        self.seen_rows = []
        self.seen_gaps = []

    def gaussian(self, name, mean=0.0, variance=None, *, covariance=None, size=None, observed=None):
        mean = mean if isinstance(mean, Expression) else self._known(mean)
        if covariance is None:
            half = np.sqrt(np.asarray(variance, dtype=float))
            shape = np.broadcast_shapes(mean.constant.shape, half.shape, np.shape(observed), _shape(size))
            noise = self._fresh(shape) * half
        else:
            half = np.linalg.cholesky(covariance)
            shape = np.broadcast_shapes(mean.constant.shape, (*_shape(size), len(half)))
            noise = self._fresh(shape)
            noise = Expression(np.einsum("ij,...jn->...in", half, noise.rows), noise.constant)
        made = self.named[name] = mean + noise
        if observed is not None:
            self.observe(made, observed)
        return made

    def stack(self, x):
        return x

    def observe(self, x, values):
        values = np.broadcast_to(np.asarray(values, dtype=float), x.constant.shape).reshape(-1)
        seen = ~np.isnan(values)
        self.seen_rows.append(x.rows.reshape(-1, CAPACITY)[seen])
        self.seen_gaps.append((values - x.constant.reshape(-1))[seen])

    def equal(self, a, b):
        self.observe(a - b, 0.0)

    def _known(self, value):
        value = np.asarray(value, dtype=float)
        return Expression(np.zeros((*value.shape, CAPACITY)), value)

    def _fresh(self, shape):
        n = int(np.prod(shape, dtype=int))
        assert self.used + n <= CAPACITY
        rows = np.zeros((n, CAPACITY))
        rows[np.arange(n), self.used + np.arange(n)] = 1.0
        self.used += n
        return Expression(rows.reshape(*shape, CAPACITY), np.zeros(shape))

    def infer(self):
        return Solved(self)


class Solved:
    """The posterior of a `World`."""

    def __init__(self, world):
        rows = np.concatenate([np.zeros((0, CAPACITY)), *world.seen_rows])
        gaps = np.concatenate([np.zeros(0), *world.seen_gaps])
        k = len(gaps)
        q, r = np.linalg.qr(rows.T, mode="complete")
        score = np.linalg.solve(r[:k].T, gaps)
        self.mean = q[:, :k] @ score
        self.free = q[:, k:]
        self.log_evidence = -0.5 * (score @ score + k * np.log(2 * np.pi)) - np.log(np.abs(np.diag(r[:k]))).sum()

    def moments(self, x):
        """Means and standard deviations."""
        return x.rows @ self.mean + x.constant, np.linalg.norm(x.rows @ self.free, axis=-1)

    def covariance(self, a, b):
        left, right = (x.rows.reshape(-1, CAPACITY) @ self.free for x in (a, b))
        return (left @ right.T).reshape((*a.constant.shape, *b.constant.shape))


def _shape(size):
    return () if size is None else (size,) if np.isscalar(size) else tuple(size)


def _check_belief(belief, truth, x, tolerance):
    """Means to a share of their size or of a standard deviation, and standard deviations to that share."""
    mean, sd = truth.moments(x)
    prior = np.linalg.norm(x.rows, axis=-1)
    known = sd <= 1e-9 * prior  # observed, or a constant
    found = np.sqrt(np.asarray(belief.variance))
    assert belief.mean.shape == mean.shape
    scale = np.abs(mean) + np.where(known, prior, sd)
    assert (np.abs(belief.mean - mean) <= tolerance * scale).all(), (belief.mean, mean)
    assert (found[known] <= 1e-7 * prior[known]).all(), found[known]
    np.testing.assert_allclose(found[~known], sd[~known], rtol=tolerance)


def check(write, seed=0, tolerance=1e-8, cross=True, **settings):
    """Write a model twice, infer, and compare every named variable, what `write` returns, and the evidence.

    ``write(model, rng)`` returns expressions; those that the run did not use are read from the posterior all the same.
    """
    model, world = hg.Model(), World()
    asked = write(model, np.random.default_rng(seed))
    expected = write(world, np.random.default_rng(seed))
    posterior, truth = model.infer(progress=False, **settings), world.infer()
    assert posterior.converged, posterior.status
    pairs = [(model[name], x) for name, x in world.named.items()] + list(zip(asked, expected, strict=True))
    for variable, x in pairs:
        _check_belief(posterior[variable], truth, x, tolerance)
        if variable.node.dimension is not None and variable.shape == ():
            scale = truth.moments(x)[1].max() ** 2
            np.testing.assert_allclose(
                posterior[variable].covariance, truth.covariance(x, x), atol=tolerance * scale + 1e-20
            )
    if cross:
        some = pairs[:3] + pairs[-3:]
        for variable, x in some:
            for other, y in some:
                _check_covariance(posterior, truth, variable, x, other, y, tolerance)
    scale = max(1.0, abs(truth.log_evidence))
    assert abs(posterior.log_evidence - truth.log_evidence) <= tolerance * scale, (
        posterior.log_evidence,
        truth.log_evidence,
    )
    return posterior


def _check_covariance(posterior, truth, a, x, b, y, tolerance):
    sd_x, sd_y = truth.moments(x)[1], truth.moments(y)[1]
    if min(sd_x.min(initial=np.inf), sd_y.min(initial=np.inf)) < 1e-9:
        return
    got, want = posterior.covariance(a, b), truth.covariance(x, y)
    assert got.shape == want.shape
    size = np.multiply.outer(sd_x, sd_y)
    assert (np.abs(got - want) <= 10 * tolerance * size).all()
