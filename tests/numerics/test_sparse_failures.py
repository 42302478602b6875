"""What the sparse solver refuses: precisions that are not positive definite, plans beyond the budget, foreign pairs."""

import doctest
import importlib
import pkgutil

import numpy as np
import pytest
from sparse_cases import SHAPES, case, dense_precision, dense_rows, solved

from heliograph.numerics import sparse
from heliograph.numerics.sparse import make_rows, rounds


@pytest.fixture(params=[0, 32])
def tail(request, monkeypatch):
    monkeypatch.setattr(rounds, "SMALL_TAIL", request.param)
    if not request.param:
        monkeypatch.setattr(rounds, "DENSE_ENOUGH", 2.0)
        monkeypatch.setattr(rounds, "MODEST_TAIL", 0)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("vector", [0, 3])
def test_an_indefinite_precision_is_refused(shape, width, vector, tail):
    for seed, n in enumerate((1, 4, 12, 40)):
        model = case(seed, shape, n, width=width, vector=vector)
        tau = model.tau.copy()
        site = int(np.argmax(np.abs(dense_rows(model.sites)).sum(1))) // width
        a = dense_rows(model.sites)[site * width : (site + 1) * width]
        # along a of the chosen site the precision is then negative by construction
        along = a[np.argmax(np.abs(a).sum(1))]
        precision = dense_precision(model)
        worst = along @ precision @ along / float(((a @ along) ** 2).sum())
        tau[site] = tau[site] - 2 * worst * (1 if width == 1 else np.eye(width))
        with pytest.raises(sparse.NotPositiveDefiniteError):
            solved(model._replace(tau=tau))


@pytest.mark.parametrize("core", [False, True])
def test_a_singular_precision_is_refused_although_rounding_may_leave_a_positive_pivot(core, tail):
    """Differences alone say nothing of the level; the last pivot is rounding, of either sign."""
    rng = np.random.default_rng(0)
    n = 40
    links = np.stack([np.arange(n - 1), np.arange(1, n)], 1)
    for _ in range(20):
        order = rng.permutation(n)
        rows = make_rows(n, np.repeat(np.arange(n - 1), 2), order[links].ravel(), np.tile([1.0, -1.0], n - 1))
        plan = sparse.analyse([rows], core=[3] if core else [])
        with pytest.raises(sparse.NotPositiveDefiniteError):
            sparse.factorise(plan, sparse.gram(sparse.place(plan, rows), rng.uniform(1.0, 2.0, size=n - 1)))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("vector", [0, 3])
def test_numbers_that_are_not_finite_are_refused(bad, vector, tail):
    for site in range(0, 40, 5):
        model = case(1, "random", 40, vector=vector)
        tau = model.tau.copy()
        tau[site] = bad
        with pytest.raises(sparse.NotPositiveDefiniteError), np.errstate(invalid="ignore"):
            solved(model._replace(tau=tau))


def test_an_expression_that_joins_foreign_variables_is_refused():
    model = case(0, "chain", 60)
    plan = sparse.analyse([model.prior])
    with pytest.raises(ValueError, match="do not join"):
        sparse.place(plan, make_rows(60, [0, 0], [0, 59]))


def test_values_and_weights_of_another_shape_are_refused():
    model, other = case(0, "chain", 60), case(0, "chain", 50)
    result = solved(other)
    plan = sparse.analyse([model.prior, model.sites])
    with pytest.raises(ValueError, match="values for a plan"):
        sparse.factorise(plan, result.factor.values)
    with pytest.raises(ValueError, match="weights of shape"):
        sparse.gram(sparse.place(plan, model.sites), model.tau[1:])


def test_a_plan_beyond_its_budget_has_a_price_and_no_layout():
    model = case(0, "random", 60)
    free = sparse.analyse([model.prior, model.sites])
    plan = sparse.analyse([model.prior, model.sites], budget=sparse.Budget(flops=free.flops / 2))
    assert free.affordable and not plan.affordable
    assert (plan.flops, plan.bytes, plan.tail) == (free.flops, free.bytes, free.tail)
    with pytest.raises(sparse.TooExpensiveError):
        sparse.place(plan, model.sites)
    assert not sparse.analyse([model.prior, model.sites], budget=sparse.Budget(bytes=free.bytes / 2)).affordable


def test_a_sum_of_very_many_variables_is_refused_before_its_pairs_are_made():
    n = 20_000
    rows = make_rows(n, 0, np.arange(n))
    plan = sparse.analyse([rows])
    assert not plan.affordable
    assert plan.flops >= n**3
    with pytest.raises(sparse.TooExpensiveError):
        sparse.with_probes(np.random.default_rng(0), sparse.bare_of(plan, [rows]))


def test_sparse_rows_over_the_core_alone_are_not_charged_as_dense_ones():
    """A league of few players with very many games each is a dense matrix of players, however many games there are."""
    rng = np.random.default_rng(0)
    n, m = 400, 200_000
    pairs = rng.integers(n, size=(m, 2))
    games = make_rows(n, np.repeat(np.arange(m), 2), pairs.ravel(), rng.normal(size=2 * m))
    plan = sparse.analyse([games])
    assert plan.n_core == n and plan.affordable
    assert plan.flops < 10 * n**3


def test_the_bytes_that_a_plan_states_cover_what_a_solve_takes():
    import tracemalloc

    side = 70
    at = np.arange(side * side).reshape(side, side)
    links = np.concatenate(
        [np.stack([at[:, :-1], at[:, 1:]], -1).reshape(-1, 2), np.stack([at[:-1], at[1:]], -1).reshape(-1, 2)]
    )
    rows = make_rows(side * side, np.repeat(np.arange(len(links)), 2), links.ravel(), np.tile([1.0, -1.0], len(links)))
    prior = make_rows(side * side, np.arange(side * side), np.arange(side * side))
    plan = sparse.analyse([rows, prior])
    placed = sparse.place(plan, rows)
    values = sparse.gram(placed, np.ones(len(links))) + sparse.gram(sparse.place(plan, prior), np.ones(side * side))
    tracemalloc.start()
    sparse.invert(sparse.factorise(plan, values))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < plan.bytes


def _modules():
    return [f"heliograph.numerics.sparse.{m.name}" for m in pkgutil.iter_modules(sparse.__path__)]


@pytest.mark.parametrize("name", ["heliograph.numerics.sparse", *_modules()])
def test_the_examples_of_the_docstrings_are_true(name):
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert not failed
