"""Linear-Gaussian models of a kind that people write: means, sds, covariances and evidence equal dense algebra to 1e-8."""

import numpy as np
import pytest
from dense_world import check

import heliograph as hg

SEEDS = range(3)


def line(m, rng):
    """Intercept and slope far from the origin: strongly correlated."""
    n = int(rng.integers(1, 40))
    a, b = m.gaussian("a", 0.3, variance=4.0), m.gaussian("b", -1.0, variance=2.0)
    m.gaussian("y", a + b * rng.normal(8, 1, n), variance=rng.uniform(0.1, 1, n), observed=rng.normal(size=n))
    return [a + 4.0 * b, a - b, 2 * a + a, b - 2.0 * a + 7.0]


def dummies(m, rng):
    """Columns of a design with zeros in them, one scalar variable each."""
    n, k = 30, 4
    effects = [m.gaussian(f"effect {j}", rng.normal(), variance=rng.uniform(1, 5)) for j in range(k)]
    level = rng.integers(0, k - 1, n)  # the last effect is seen by no row
    z = sum(((level == j) * rng.normal(size=n)) * effects[j] for j in range(k - 1))
    m.gaussian("y", z + effects[-1] * (np.arange(n) == 2), variance=0.3, observed=rng.normal(size=n))
    return [effects[0] - effects[1], effects[-1] + effects[0]]


def repeated(m, rng):
    """A variable that occurs twice in an expression, and one that cancels."""
    x, u = m.gaussian("x", 1.0, variance=2.0, size=5), m.gaussian("u", -1.0, variance=1.0)
    m.gaussian("three", 2 * x + x, variance=0.5, observed=rng.normal(size=5))
    m.gaussian("none", x - x + 4.0 + u, variance=0.5, observed=rng.normal(size=5))
    return [x - x + 4.0, x[0] + x[1] - x[0], 3 * x - 2 * x]


def random_slopes(m, rng):
    """Random intercepts and slopes by group, with means of their own, and a group without data."""
    groups, n = 8, 50
    centre, slope = m.gaussian("centre", 0.0, variance=10.0), m.gaussian("slope", 0.0, variance=10.0)
    intercepts = m.gaussian("intercepts", centre, variance=0.7, size=groups)
    slopes = m.gaussian("slopes", slope, variance=0.2, size=groups)
    g, x = rng.integers(0, groups - 1, n), rng.normal(2, 1, n)
    m.gaussian("y", intercepts[g] + slopes[g] * x, variance=0.3, observed=rng.normal(size=n))
    return [intercepts + 2.0 * slopes, centre + 3.0 * slope, intercepts[[0, 0, 3]] - slopes[[1, 2, 3]]]


def deviations(m, rng):
    """The same kind of model with groups as deviations from a common mean."""
    centre = m.gaussian("centre", 5.0, variance=100.0)
    off = m.gaussian("off", 0.0, variance=rng.uniform(0.1, 2, 6))
    g = rng.integers(0, 6, 25)
    m.gaussian("y", centre + off[g], variance=0.5, observed=rng.normal(5, 1, 25))
    return [centre + off, off[0] - off[5]]


def tracker(d):
    """Position and velocity in d / 2 dimensions; only positions are seen, and some are missing."""

    def tracker(m, rng):
        half = d // 2
        step = np.eye(d) + np.diag(np.full(half, 0.7), half)
        look = np.eye(d)[:half]
        root = rng.normal(size=(d, d))
        s = m.gaussian("s0", rng.normal(size=d), covariance=4 * np.eye(d))
        states = [s]
        for t in range(1, 10):
            s = m.gaussian(f"s{t}", m.stack(step @ s), covariance=0.1 * np.eye(d) + 0.02 * root @ root.T)
            seen = rng.normal(size=half)
            seen[rng.random(half) < 0.3] = np.nan
            m.gaussian(f"y{t}", look @ s, variance=0.4, observed=seen)
            states.append(s)
        return [states[3] - states[2], 2.0 * states[0], look @ states[9]]

    return tracker


def autoregression(m, rng):
    """AR(2), variable by variable."""
    xs = [m.gaussian("x0", 0.0, variance=1.0), m.gaussian("x1", 0.0, variance=1.0)]
    for t in range(2, 25):
        xs.append(m.gaussian(f"x{t}", 1.2 * xs[-1] - 0.4 * xs[-2] + 0.1, variance=0.1))
    for t in range(0, 25, 2):
        m.gaussian(f"y{t}", xs[t], variance=0.3, observed=rng.normal())
    return [xs[3] - xs[20], xs[24] + xs[23] + xs[22]]


def slow_chain(m, rng):
    """A random walk with innovation variance 1e-6, as one array: every step is nearly certain."""
    n = 60
    x = m.gaussian("x", 0.0, variance=100.0, size=n)
    m.gaussian("step", x[1:] - x[:-1], variance=1e-6, observed=np.zeros(n - 1))
    m.gaussian("y", x, variance=1.0, observed=rng.normal(size=n))
    return [x[0] - x[n - 1], x[10] + x[11]]


def slow_chain_of_variables(m, rng):
    """The same with one variable per step, each drawn from the one before."""
    xs = [m.gaussian("x0", 0.0, variance=100.0)]
    for t in range(1, 25):
        xs.append(m.gaussian(f"x{t}", xs[-1], variance=1e-6))
    for t, x in enumerate(xs):
        m.gaussian(f"y{t}", x, variance=1.0, observed=rng.normal())
    return [xs[0] - xs[-1]]


def process(m, rng):
    """Gaussian-process regression: a vector with a covariance, seen entry by entry."""
    n = 40
    t = np.sort(rng.uniform(0, 5, n))
    kernel = np.exp(-0.5 * (t[:, None] - t) ** 2) + 1e-3 * np.eye(n)
    f = m.gaussian("f", np.sin(t), covariance=kernel)
    seen = rng.normal(size=n)
    seen[rng.random(n) < 0.4] = np.nan
    m.gaussian("y", np.eye(n) @ f, variance=0.1, observed=seen)
    return [rng.normal(size=(3, n)) @ f]


def two_vectors(m, rng):
    """Two vectors and a scalar in every row."""
    w, u = (
        m.gaussian("w", np.zeros(3), covariance=np.diag([1.0, 2.0, 3.0])),
        m.gaussian("u", np.ones(2), covariance=np.eye(2)),
    )
    b = m.gaussian("b", 0.0, variance=9.0)
    n = 12
    z = rng.normal(size=(n, 3)) @ w + rng.normal(size=(n, 2)) @ u + b
    m.gaussian("y", z, variance=0.2, observed=rng.normal(size=n))
    return [rng.normal(size=(4, 3)) @ w + b, rng.normal(size=(2, 3)) @ w - rng.normal(size=(2, 2)) @ u]


MODELS = [
    line,
    dummies,
    repeated,
    random_slopes,
    deviations,
    tracker(2),
    tracker(4),
    autoregression,
    slow_chain,
    slow_chain_of_variables,
    process,
    two_vectors,
]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("write", MODELS, ids=lambda f: f.__name__)
def test_the_posterior_is_that_of_dense_algebra(write, seed):
    posterior = check(write, seed, structure="joint", cross=write is not repeated)  # its two parts share nothing
    assert posterior.n_sweeps <= 1


@pytest.mark.parametrize("write", [line, random_slopes, tracker(2), process, two_vectors], ids=lambda f: f.__name__)
def test_the_sequential_schedule_gives_the_same(write):
    check(write, 7, schedule="sequential", cross=False)


@pytest.mark.parametrize("seed", range(30))
def test_random_sparse_models_are_exact(seed):
    def write(m, rng):
        n, rows = int(rng.integers(1, 40)), int(rng.integers(1, 60))
        x = m.gaussian("x", rng.normal(size=n), variance=np.exp(rng.normal(size=n)))
        some = m.gaussian("some", rng.normal(), variance=3.0, size=(2, 3))
        parents = rng.integers(0, n, 4)
        child = m.gaussian("child", x[parents] * rng.normal(size=4) + rng.normal(), variance=0.5)
        i, j, k = (rng.integers(0, size, rows) for size in (n, n, 4))
        z = x[i] * rng.normal(size=rows) - x[j] + child[k] * rng.normal(size=rows)
        seen = rng.normal(size=rows)
        seen[rng.random(rows) < 0.2] = np.nan
        m.gaussian("y", z, variance=np.exp(rng.normal(size=rows)), observed=seen)
        m.gaussian("table", some * rng.normal(size=3) + x[i[:1]], variance=0.3, observed=rng.normal(size=(2, 3)))
        return [child + 2.0 * x[parents], some[1, 2] - x[0], some.reshape(3, 2)[0] + x[j[0]]]

    check(write, seed)


@pytest.mark.parametrize("correlated", [False, True])
def test_the_belief_of_a_vector_reads_as_its_natural_parameters_say(correlated):
    """A block hands its factors of the precision to the belief, and adds a prior without correlations to the diagonal alone."""
    rng = np.random.default_rng(5)
    d, n = 6, 40
    x, y, mean = rng.normal(size=(n, d)), rng.normal(size=n), rng.normal(size=d)
    prior = np.diag(rng.uniform(0.5, 2.0, d)) + correlated * 0.3
    model = hg.Model()
    w = model.gaussian("w", mean, covariance=prior)
    model.gaussian("y", x @ w, variance=0.5, observed=y)
    belief = model.infer()[w]
    precision = np.linalg.inv(prior) + x.T @ x / 0.5
    expected = np.linalg.solve(precision, np.linalg.solve(prior, mean) + x.T @ y / 0.5)
    np.testing.assert_allclose(belief.mean, expected, rtol=1e-9)
    np.testing.assert_allclose(belief.covariance, np.linalg.inv(precision), rtol=1e-9, atol=1e-12)
    anew = type(belief).from_naturals(belief.naturals, belief.point)
    np.testing.assert_allclose(belief.mean, anew.mean, rtol=1e-9)
    np.testing.assert_allclose(belief.covariance, anew.covariance, rtol=1e-9, atol=1e-12)
