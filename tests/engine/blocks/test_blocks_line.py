"""Scalars on a line have the numbers of dense algebra: whole lines, broken ones, and what looks like a line and is none."""

import numpy as np
import pytest
from dense_world import check
from test_blocks_sparse import use_dense, use_sparse

import heliograph as hg
from heliograph.engine.blocks.line import LineSolver
from heliograph.engine.blocks.planned import PlannedSolver
from heliograph.numerics import tridiagonal
from heliograph.numerics.sparse import NotPositiveDefiniteError


# ---- the algebra ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("n", [1, 2, 3, 60])
def test_every_verb_agrees_with_the_dense_matrix(n):
    rng = np.random.default_rng(n)
    diagonal, beside = rng.random(n) + 1.5, rng.normal(size=n - 1) * 0.6
    matrix = np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1)
    inverse = np.linalg.inv(matrix)
    factor = tridiagonal.factorise(diagonal, beside)
    right = rng.normal(size=(n, 3))
    np.testing.assert_allclose(tridiagonal.solve(factor, right), inverse @ right, atol=1e-12)
    np.testing.assert_allclose(tridiagonal.solve(factor, right[:, 0]), inverse @ right[:, 0], atol=1e-12)
    half = tridiagonal.half_solve(factor, right)
    np.testing.assert_allclose(half.T @ half, right.T @ inverse @ right, atol=1e-12)
    own, near = tridiagonal.neighbours(factor)
    np.testing.assert_allclose(own, np.diag(inverse), rtol=1e-12)
    np.testing.assert_allclose(near, np.diag(inverse, 1), rtol=1e-10)
    np.testing.assert_allclose(tridiagonal.log_determinant(factor), np.linalg.slogdet(matrix)[1], rtol=1e-12)


def test_draws_have_the_covariance():
    factor = tridiagonal.factorise(np.array([2.0, 1.5, 3.0]), np.array([-1.0, 0.5]))
    draws = tridiagonal.sample(np.random.default_rng(0), factor, 200_000)
    matrix = np.array([[2.0, -1.0, 0.0], [-1.0, 1.5, 0.5], [0.0, 0.5, 3.0]])
    np.testing.assert_allclose(np.cov(draws.T), np.linalg.inv(matrix), atol=0.02)  # five standard errors


@pytest.mark.parametrize("diagonal", [[1.0, 0.5], [0.0, 1.0], [1.0, np.nan], [np.inf, 1.0], [-1.0, 1.0]])
def test_what_is_no_distribution_is_refused(diagonal):
    with pytest.raises(NotPositiveDefiniteError):
        tridiagonal.factorise(np.array(diagonal), np.array([1.0]))


# ---- models -----------------------------------------------------------------------------------------------------
def walk(model, rng, n=30):
    x = model.gaussian("x", 0.5, variance=np.r_[4.0, np.full(n - 1, 50.0)])
    model.gaussian("step", x[1:] - 0.9 * x[:-1], variance=0.1, observed=np.zeros(n - 1))
    model.gaussian("y", 2.0 * x + 1.0, variance=0.5, observed=rng.normal(size=n))
    return [x]


def broken(model, rng, n=24):
    """Three lines that do not touch, one of them a single scalar, with rows in any order."""
    x = model.gaussian("x", 0.0, variance=2.0, size=n)
    at = rng.permutation(np.setdiff1d(np.arange(1, n), [10, 11]))
    model.gaussian("step", x[at - 1] - x[at], variance=0.2 + rng.random(len(at)), observed=rng.normal(size=len(at)))
    some = rng.integers(0, n, 40)
    model.gaussian("y", x[some], variance=1.0, observed=rng.normal(size=40))
    return [x]


def seen_exactly(model, rng, n=20):
    x = model.gaussian("x", 0.0, variance=3.0, size=n)
    model.gaussian("step", x[1:] - x[:-1], variance=0.3, observed=np.zeros(n - 1))
    model.observe(1.0 * x, np.where(np.arange(n) == 5, 0.7, np.nan))
    model.gaussian("y", x[np.arange(0, n, 3)], variance=0.5, observed=rng.normal(size=7))
    return [x]


def second_order(model, rng, n=20):
    """Rows of three neighbours."""
    x = model.gaussian("x", 0.0, variance=3.0, size=n)
    model.gaussian("bend", x[2:] - 2.0 * x[1:-1] + x[:-2], variance=0.3, observed=np.zeros(n - 2))
    return [x]


def ring(model, rng, n=20):
    """A line whose ends meet."""
    x = model.gaussian("x", 0.0, variance=3.0, size=n)
    to = (np.arange(n) + 1) % n
    model.gaussian("step", x[to] - x[np.arange(n)], variance=0.3, observed=rng.normal(size=n))
    return [x]


def kinds_of_solver(monkeypatch):
    seen = []
    for kind in (LineSolver, PlannedSolver):

        def noted(self, *args, kind=kind, init=kind.__init__):
            seen.append(kind)
            init(self, *args)

        monkeypatch.setattr(kind, "__init__", noted)
    return seen


@pytest.mark.parametrize(
    ("write", "kind"),
    [
        (walk, LineSolver),
        (broken, LineSolver),
        (seen_exactly, LineSolver),
        (second_order, PlannedSolver),
        (ring, PlannedSolver),
    ],
)
def test_lines_are_found_and_exact(write, kind, monkeypatch):
    use_sparse(monkeypatch)
    seen = kinds_of_solver(monkeypatch)
    check(write, 3, structure="joint")
    assert seen == [kind]


def labelled_walk(n=40):
    """Labels of single states, and of steps, on a walk: sites of one scalar and of two."""
    rng = np.random.default_rng(8)
    model = hg.Model()
    x = model.gaussian("x", 0.0, variance=9.0, size=n)
    model.gaussian("step", x[1:] - x[:-1], variance=0.4, observed=np.zeros(n - 1))
    model.bernoulli("label", probit=x[::2] + 0.5, observed=rng.integers(0, 2, n // 2).astype(float))
    at = rng.permutation(n - 1)[:15]
    model.bernoulli("rise", logit=x[at + 1] - x[at], observed=rng.integers(0, 2, 15).astype(float))
    model.constrain(x[3] > x[4])
    return model, x


def test_sites_on_a_line_have_the_dense_answer(monkeypatch):
    def numbers():
        model, x = labelled_walk()
        posterior = model.infer()
        assert posterior.converged
        others = posterior.covariance(x[:3], x[3] - x[10]), posterior[x[0] - 2.0 * x[30]].variance
        return np.concatenate(
            [posterior[x].mean, posterior[x].variance, *map(np.ravel, others), [posterior.log_evidence]]
        )

    use_dense(monkeypatch)
    expected = numbers()
    use_sparse(monkeypatch)
    seen = kinds_of_solver(monkeypatch)
    np.testing.assert_allclose(numbers(), expected, rtol=1e-6, atol=1e-8)
    assert seen == [LineSolver]


# ---- which parts of a block hang together -----------------------------------------------------------------------
@pytest.mark.parametrize("d", [3, 12], ids=["short rows", "a dense product"])
def test_effects_beside_a_product_are_moved_by_the_labels(d):
    """Effects beside a long ``X @ w`` were taken for a part of their own, and kept their prior without a word."""
    rng = np.random.default_rng(0)
    n, groups = 200, 8
    x, g, y = rng.normal(size=(n, d)), rng.integers(0, groups, n), rng.integers(0, 2, n).astype(float)
    model = hg.Model()
    w = model.gaussian("w", np.zeros(d), covariance=np.eye(d))
    effect = model.gaussian("effect", 0.0, variance=1.0, size=groups)
    model.bernoulli("y", logit=x @ w + effect[g], observed=y)
    posterior = model.infer()
    one = hg.Model()
    both = one.gaussian("both", np.zeros(d + groups), covariance=np.eye(d + groups))
    one.bernoulli("y", logit=np.c_[x, np.eye(groups)[g]] @ both, observed=y)
    expected = one.infer()[both]
    np.testing.assert_allclose(posterior[effect].mean, expected.mean[d:], atol=1e-6)
    np.testing.assert_allclose(posterior[effect].variance, np.diag(expected.covariance)[d:], atol=1e-6)
    np.testing.assert_allclose(posterior[w].mean, expected.mean[:d], atol=1e-6)
