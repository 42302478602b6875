"""Sums over discrete variables against enumeration of every configuration."""

from __future__ import annotations

import numpy as np
import pytest

from heliograph.numerics.elimination import TooManyConfigurationsError, make_plan, solve, solve_in_logs


def enumerated(cards, scopes, tables):
    """Log normaliser and log marginals by one table over all configurations."""
    whole, n = np.zeros(tuple(cards)), len(cards)
    for scope, table in zip(scopes, tables, strict=True):
        for row, one in zip(scope, table, strict=True):
            shape = [cards[v] if v in row else 1 for v in range(n)]
            whole = whole + one.transpose(np.argsort(row)).reshape(shape)
    top = whole.max()
    log_z = top + np.log(np.exp(whole - top).sum()) if np.isfinite(top) else -np.inf
    found = []
    for scope, table in zip(scopes, tables, strict=True):
        rows = np.empty_like(table)
        for i, row in enumerate(scope):
            others = tuple(k for k in range(n) if k not in row)
            part = (
                np.exp(whole - top).sum(axis=others) if np.isfinite(top) else np.zeros([cards[v] for v in sorted(row)])
            )
            rows[i] = part.transpose(np.argsort(np.argsort(row)))
        found.append(rows / np.exp(log_z - top) if np.isfinite(top) else rows)
    return log_z, found


def random_tables(rng, n, scale):
    cards = rng.integers(1, 4, n)
    scopes, tables = [], []
    for c in np.unique(cards):
        v = np.flatnonzero(cards == c)
        scopes.append(v[:, None])
        tables.append(rng.standard_normal((len(v), c)))
    for _ in range(int(rng.integers(0, 2 * n))):
        row = rng.permutation(n)[: int(rng.integers(1, min(n, 3) + 1))]
        table = scale * rng.standard_normal((1, *cards[row]))
        table[rng.random(table.shape) < 0.1] = -np.inf
        scopes.append(row[None])
        tables.append(table)
    return cards, scopes, tables


@pytest.mark.parametrize("scale", [1.0, 300.0])
@pytest.mark.parametrize("seed", range(60))
def test_random_graphs_agree_with_enumeration(seed, scale):
    rng = np.random.default_rng(seed)
    cards, scopes, tables = random_tables(rng, int(rng.integers(1, 9)), scale)
    log_z, marginals = enumerated(cards, scopes, tables)
    plan, wanted = make_plan(cards, scopes), tuple(range(len(scopes)))
    found = solve(plan, tables, wanted)
    if np.isneginf(log_z):
        assert np.isneginf(found.log_z)
        return
    assert found.log_z == pytest.approx(log_z, rel=1e-11, abs=1e-11)
    in_logs = solve_in_logs(plan, tables, wanted)
    for k in wanted:
        np.testing.assert_allclose(found.tables[k], marginals[k], atol=1e-12)
        np.testing.assert_allclose(np.exp(in_logs[k]), marginals[k], atol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3, 17, 1000])
def test_a_chain_in_any_order_equals_a_loop_of_forward_and_backward_sums(n):
    rng = np.random.default_rng(n)
    k = 3
    unary, step = rng.standard_normal((n, k)), np.log(rng.dirichlet(np.ones(k), k))
    forward = [unary[0]]
    for t in range(1, n):
        forward.append(np.logaddexp.reduce(forward[-1][:, None] + step, axis=0) + unary[t])
    backward = [np.zeros(k)]
    for t in range(n - 1, 0, -1):
        backward.append(np.logaddexp.reduce(step + unary[t] + backward[-1], axis=1))
    log_p = np.array(forward) + np.array(backward[::-1])
    log_z = np.logaddexp.reduce(log_p, axis=1)
    for order in (np.arange(n), rng.permutation(n)):
        pairs = np.stack([order[:-1], order[1:]], axis=1)
        scopes = [np.arange(n)[:, None], *([pairs] if n > 1 else [])]
        weights = np.empty_like(unary)
        weights[order] = unary
        tables = [weights, *([np.broadcast_to(step, (n - 1, k, k))] if n > 1 else [])]
        plan = make_plan(np.full(n, k), scopes)
        assert len(plan.groups) <= 12 * np.log2(n + 1) + 4  # logarithmic, and not n
        found = solve(plan, tables, (0,))
        assert found.log_z == pytest.approx(log_z[0], rel=1e-12)
        np.testing.assert_allclose(found.tables[0][order], np.exp(log_p - log_z[:, None]), atol=1e-12)


def test_the_plan_of_a_chain_in_its_order_copies_no_rows():
    n = 1000
    plan = make_plan(np.full(n, 3), [np.arange(n)[:, None], np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)])
    parts = [part for group in plan.groups for part in group.parts]
    assert all(isinstance(part.rows, slice) and isinstance(part.target, slice) for part in parts)


def test_a_probability_below_the_smallest_number_keeps_its_logarithm():
    # two variables that must be equal; one says 0, the other says 0 by 900 nats less
    scopes = [np.array([[0], [1]]), np.array([[0, 1]])]
    with np.errstate(divide="ignore"):
        tables = [np.array([[0.0, -900.0], [0.0, -20.0]]), np.log(np.eye(2))[None]]
    found = solve_in_logs(make_plan(np.array([2, 2]), scopes), tables, (0,))
    np.testing.assert_allclose(found[0][:, 1], -920.0, rtol=1e-14)


def test_tables_that_are_too_large_are_refused_before_they_are_made():
    n = 40
    a, b = np.triu_indices(n, 1)
    scopes = [np.arange(n)[:, None], np.stack([a, b], axis=1)]
    with pytest.raises(TooManyConfigurationsError, match="40 discrete variables"):
        make_plan(np.full(n, 3), scopes)


# from 64 variables on, a chain in its order has a plan of its own: every length of its ends
@pytest.mark.parametrize(
    ("n", "k"),
    [(2, 20), (3, 17), (60, 20), (301, 9), (40, 33), (70, 33), *((n, 3) for n in (*range(64, 73), 127, 128, 129))],
)
def test_a_chain_of_many_categories_takes_few_rounds_and_equals_a_forward_backward_loop(n, k):
    """Twenty categories: the sum over an inner state is a product of matrices, and every second state goes at once."""
    rng = np.random.default_rng(n + k)
    step, seen = rng.dirichlet(np.ones(k), (n - 1, k)), rng.dirichlet(np.ones(k), n)
    plan = make_plan(np.full(n, k), [np.stack([np.arange(n - 1), np.arange(1, n)], axis=1), np.arange(n)[:, None]])
    found = solve(plan, [np.log(step), np.log(seen)], (0, 1))
    forward, log_z = [seen[0]], 0.0
    for t in range(1, n):
        ahead = (forward[-1] @ step[t - 1]) * seen[t]
        log_z += np.log(ahead.sum())
        forward.append(ahead / ahead.sum())
    log_z += np.log(seen[0].sum())
    forward[0] = seen[0] / seen[0].sum()
    backward = [np.ones(k)]
    for t in range(n - 2, -1, -1):
        before = step[t] @ (seen[t + 1] * backward[0])
        backward.insert(0, before / before.sum())
    marginal = np.array(forward) * np.array(backward)
    marginal /= marginal.sum(axis=1, keepdims=True)
    assert found.log_z == pytest.approx(log_z, abs=1e-10)
    assert np.abs(found.tables[1] - marginal).max() < 1e-12
    assert np.abs(found.tables[0].sum(axis=2) - marginal[:-1]).max() < 1e-12
    if k <= 32:  # beyond, ends are taken first
        assert len(plan.groups) <= 4 * np.log2(n) + 4
