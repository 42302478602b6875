"""Values of expressions, equalities, partly observed nodes, several blocks and other units: all equal dense algebra."""

import numpy as np
import pytest
from dense_world import check

import heliograph as hg


def value_of_a_sum(m, rng):
    a, b = m.gaussian("a", 0.5, variance=2.0), m.gaussian("b", -1.0, variance=3.0)
    m.gaussian("y", a - 2.0 * b, variance=0.5, observed=rng.normal())
    m.observe(a + b, 1.0)
    return [a - b, 2.0 * a + b]


def values_of_rows(m, rng):
    """Exact values of some of many expressions of a vector and of scalars."""
    w = m.gaussian("w", np.zeros(5), covariance=np.eye(5) + 0.3)
    b = m.gaussian("b", 0.0, variance=4.0, size=3)
    z = rng.normal(size=(3, 5)) @ w + b
    m.observe(z, [1.0, np.nan, rng.normal()])
    m.gaussian("y", z[[1, 1, 0]] + b[[0, 1, 2]], variance=0.4, observed=rng.normal(size=3))
    return [z[1], rng.normal(size=(2, 5)) @ w]


def equalities(m, rng):
    """Two chains that meet."""
    x = m.gaussian("x", 0.0, variance=np.exp(rng.normal(size=6)))
    u = m.gaussian("u", 1.0, variance=np.exp(rng.normal(size=6)))
    m.equal(x[2] + x[3], u[0])
    m.equal(x[5], 2.0 * u[5] - 1.0)
    m.gaussian("y", x[1:] + u[:-1], variance=0.3, observed=rng.normal(size=5))
    return [x[2] + x[3] - u[1], x + u]


def a_sum_that_must_vanish(m, rng):
    """Effects that sum to zero."""
    effect = m.gaussian("effect", 0.0, variance=rng.uniform(0.5, 3, 5))
    centre = m.gaussian("centre", 0.0, variance=50.0)
    m.observe(effect[0] + effect[1] + effect[2] + effect[3] + effect[4], 0.0)
    m.gaussian("y", centre + effect[rng.integers(0, 5, 15)], variance=0.5, observed=rng.normal(2, 1, 15))
    return [effect[0] - effect[1], centre + effect]


def partly_observed(m, rng):
    """A latent array of which some entries were seen, and children of all of them."""
    seen = rng.normal(size=10)
    seen[rng.random(10) < 0.5] = np.nan
    seen[:2] = np.nan, 0.3
    mu = m.gaussian("mu", 1.0, variance=4.0)
    x = m.gaussian("x", mu, variance=0.8, observed=seen)
    i, j = rng.integers(0, 10, 14), rng.integers(0, 10, 14)
    m.gaussian("y", x[i] - 0.5 * x[j], variance=0.2, observed=rng.normal(size=14))
    return [x[:3] + mu, x[0] - x[1]]


def observed_vectors(m, rng):
    """A vector that was observed between two that were not."""
    turn = np.array([[0.9, 0.2], [-0.2, 0.9]])
    noise = np.array([[0.3, 0.1], [0.1, 0.2]])
    seen = rng.normal(size=2)
    s0 = m.gaussian("s0", np.ones(2), covariance=np.eye(2))
    m.gaussian("s1", m.stack(turn @ s0), covariance=noise, observed=seen)
    s2 = m.gaussian("s2", turn @ seen, covariance=noise)
    m.gaussian("y", np.array([[1.0, -1.0]]) @ (s2 + s0), variance=0.1, observed=rng.normal(size=1))
    return [s0 + s2, 3.0 * s0 - s2 + 1.0]


def vectors_of_vectors(m, rng):
    """Observed vectors around a common mean vector."""
    mu = m.gaussian("mu", np.zeros(3), covariance=2 * np.eye(3))
    b = m.gaussian("b", 0.0, variance=1.0)
    root = rng.normal(size=(3, 3))
    m.gaussian("x", mu, covariance=np.eye(3) + root @ root.T, size=4, observed=rng.normal(size=(4, 3)))
    m.gaussian("y", rng.normal(size=(2, 3)) @ mu + b, variance=0.3, observed=rng.normal(size=2))
    return [2.0 * mu]


def predictions(m, rng):
    """Missing values of data are predicted, noise included."""
    a, b = m.gaussian("a", 0.0, variance=9.0), m.gaussian("b", 0.0, variance=9.0)
    y = rng.normal(size=12)
    y[[0, 5, 11]] = np.nan
    y = m.gaussian("y", a + b * np.arange(12.0), variance=rng.uniform(0.2, 1, 12), observed=y)
    new = m.gaussian("new", a + b * np.array([20.0, 30.0]), variance=0.7)
    return [new[0] - new[1], y[[0, 11]] - a]


def repeated_indices(m, rng):
    """Gathers with repeats, of gathers."""
    x = m.gaussian("x", rng.normal(size=7), variance=1.5)
    u = x[np.array([6, 6, 0, 1, 1, 1, 3])]
    v = m.gaussian("v", u[np.array([0, 0, 2, 4])] + x[1], variance=0.3)
    m.gaussian("y", v[[0, 0, 0, 3]] + u[:4] + u[3:], variance=0.5, observed=rng.normal(size=4))
    return [u + x[6], v - u[:4]]


STATEMENTS = [
    value_of_a_sum,
    values_of_rows,
    equalities,
    a_sum_that_must_vanish,
    partly_observed,
    observed_vectors,
    vectors_of_vectors,
    predictions,
    repeated_indices,
]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("write", STATEMENTS, ids=lambda f: f.__name__)
def test_the_posterior_is_that_of_dense_algebra(write, seed):
    check(write, seed, structure="joint", cross=False)


@pytest.mark.parametrize("write", [equalities, partly_observed, predictions], ids=lambda f: f.__name__)
def test_the_sequential_schedule_gives_the_same(write):
    check(write, 5, schedule="sequential", cross=False)


@pytest.mark.parametrize("power", [-8, -4, 0, 4, 8])
def test_units_do_not_matter(power):
    unit = 10.0**power

    def write(m, rng):
        a, b = m.gaussian("a", 3.0 * unit, variance=4.0 * unit**2), m.gaussian("b", 0.0, variance=2.0)
        x = m.gaussian("x", a, variance=0.5 * unit**2, size=4)
        z = x[[0, 1, 2, 3, 0]] + b * (unit * rng.normal(size=5))
        m.gaussian("y", z, variance=0.3 * unit**2, observed=unit * rng.normal(size=5))
        return [a + unit * b, x[0] - x[1]]

    check(write, 0, cross=False)


def test_blocks_that_share_nothing_do_not_disturb_each_other():
    def write(m, rng):
        kept = []
        for k, n in enumerate((1, 3, 20)):
            a, b = m.gaussian(f"a{k}", 0.0, variance=1.0 + k), m.gaussian(f"b{k}", 1.0, variance=2.0)
            m.gaussian(f"y{k}", a + b * rng.normal(3, 1, n), variance=0.5, observed=rng.normal(size=n))
            kept.append(a - b)
        return kept

    for seed in range(3):
        check(write, seed, cross=False)


def test_one_array_may_hold_entries_of_several_independent_problems():
    def write(m, rng):
        a, b = m.gaussian("a", 0.0, variance=2.0, size=6), m.gaussian("b", 0.0, variance=2.0, size=6)
        g = rng.integers(0, 5, 30)
        m.gaussian("y", a[g] + b[g] * rng.normal(5, 1, 30), variance=0.3, observed=rng.normal(size=30))
        return [a + 5.0 * b, a[0] - a[1]]

    for seed in range(3):
        check(write, seed)


def test_the_order_of_rows_does_not_matter():
    rng = np.random.default_rng(4)
    n = 40
    g, x, y = rng.integers(0, 6, n), rng.normal(size=n), rng.normal(size=n)

    def run(order):
        model = hg.Model()
        centre = model.gaussian("centre", 0.0, variance=5.0)
        effect, slope = (
            model.gaussian("effect", centre, variance=1.0, size=6),
            model.gaussian("slope", 0.0, variance=1.0),
        )
        z = effect[g[order]] + slope * x[order]
        model.gaussian("y", z, variance=0.5, observed=y[order])
        model.bernoulli("label", logit=z, observed=(y > 0)[order].astype(float))
        p = model.infer()
        assert p.converged
        return p[effect], p[slope], p.log_evidence

    plain, shuffled = run(np.arange(n)), run(rng.permutation(n))
    for one, two in zip(plain[:2], shuffled[:2], strict=True):
        np.testing.assert_allclose(one.mean, two.mean, rtol=1e-9)
        np.testing.assert_allclose(one.variance, two.variance, rtol=1e-9)
    assert plain[2] == pytest.approx(shuffled[2], abs=1e-8)


def test_a_value_that_hardly_fits_the_prior_has_the_evidence_of_dense_algebra():
    def write(m, rng):
        a, b = m.gaussian("a", 0.0, variance=1.0), m.gaussian("b", 0.0, variance=1.0)
        m.observe(a + b, 40.0)
        m.gaussian("y", a - b, variance=1e-4, observed=-30.0)
        return [a]

    assert check(write).log_evidence < -500


def test_a_variable_times_zero_is_the_constant_zero():
    model = hg.Model()
    a, b = model.gaussian("a", 1.0, variance=1.0), model.gaussian("b", 0.0, variance=1.0)
    model.gaussian("y", a + b * np.zeros(2), variance=1.0, observed=[2.0, 3.0])
    posterior = model.infer()
    assert float(posterior[a].mean) == pytest.approx(2.0) and float(posterior[a].variance) == pytest.approx(1 / 3)
    assert float(posterior[b].variance) == pytest.approx(1.0)
    assert float(posterior[b * 0].mean) == 0.0 and float(posterior[b * 0].variance) == 0.0
