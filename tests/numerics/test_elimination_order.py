"""The order of elimination against the slow and obvious one: a set of neighbours per variable, and cliques written out."""

import numpy as np
import pytest

from heliograph.numerics.sparse import ordering, rounds
from heliograph.numerics.sparse.expanders import least_tail


def _graph(rng, n, mean_degree):
    m = int(n * mean_degree / 2)
    return rng.integers(0, n, m), rng.integers(0, n, m)


def _check(n, i, j, elimination):
    """Replay the elimination: every supernode is a clique, its neighbours are those it has by then, and no two of a round meet."""
    near = {v: {v} for v in range(n)}
    for a, b in zip(i.tolist(), j.tolist(), strict=True):
        near[a].add(b)
        near[b].add(a)
    for group in elimination.groups:
        for members, neighbours in zip(group.members.tolist(), group.neighbours.tolist(), strict=True):
            for v in members:
                assert near[v] == {*members, *neighbours}
            for v in neighbours:
                near[v] = (near[v] | set(neighbours)) - set(members)
            for v in members:
                del near[v]
    assert sorted(near) == elimination.tail.tolist()


@pytest.mark.parametrize("low", [-1, 3, 12], ids=["bits alone", "edges first", "as shipped"])
@pytest.mark.parametrize("whole", [False, True], ids=["tail as shipped", "to the end"])
def test_every_supernode_has_the_neighbours_that_it_has_by_then(low, whole, monkeypatch):
    monkeypatch.setattr(ordering, "LOW_DEGREE", low)
    if whole:
        for name, value in (("SMALL_TAIL", 0), ("MODEST_TAIL", 0), ("DENSE_ENOUGH", 2.0)):
            monkeypatch.setattr(rounds, name, value)
    for seed, n in enumerate((1, 2, 3, 7, 20, 61, 64, 65, 130, 300)):
        for mean_degree in (0, 1, 3, 9, 25):
            i, j = _graph(np.random.default_rng([seed, mean_degree]), n, mean_degree)
            _check(n, i, j, ordering.eliminate(n, i, j))


def test_bits_find_an_order_that_fills_no_more_than_lists_of_edges(monkeypatch):
    def fill(i, j, n):
        e = ordering.eliminate(n, i, j)
        return len(e.tail) ** 2 + sum(2 * g.members.size * g.neighbours.shape[1] for g in e.groups)

    by_bits, by_edges = [], []
    for seed in range(5):
        i, j = _graph(np.random.default_rng(seed), 1500, 14)
        monkeypatch.setattr(ordering, "MOST_VARIABLES", 16_384)
        by_bits.append(fill(i, j, 1500))
        monkeypatch.setattr(ordering, "MOST_VARIABLES", 0)
        by_edges.append(fill(i, j, 1500))
    assert sum(by_bits) < 1.05 * sum(by_edges)


def test_a_league_is_given_up_before_its_tail_is_known():
    i, j = _graph(np.random.default_rng(0), 6000, 20)
    found = ordering.eliminate(6000, i, j, most_flops=1e9)
    assert len(found.tail) > 0.5 * 6000
    _check(6000, i, j, found)


def _flops(elimination):
    parts = sum(
        g.members.size * (2.0 * g.members.shape[1] ** 2 + 4.0 * g.neighbours.shape[1] ** 2) for g in elimination.groups
    )
    return parts + float(len(elimination.tail)) ** 3


@pytest.mark.parametrize("near", [60, 6000], ids=["players of like rank", "all players"])
def test_what_is_affordable_is_not_given_up_and_what_is_far_beyond_is(near):
    """Players who meet only players of like rank can be separated, though a round may remove few of them."""
    rng = np.random.default_rng(0)
    n = 6000
    i = rng.integers(0, n, 6 * n)
    j = np.minimum(n - 1, i + rng.integers(1, near, len(i)))
    whole = ordering.eliminate(n, i, j)
    for share in (1.0, 2.0):
        found = ordering.eliminate(n, i, j, most_flops=share * _flops(whole))
        assert np.array_equal(found.tail, whole.tail)
    if near == n:
        found = ordering.eliminate(n, i, j, most_flops=0.1 * _flops(whole))
        assert found.n_rounds < whole.n_rounds


def _links(i, j):
    pairs = np.unique(np.sort(np.stack([i, j], axis=1), axis=1), axis=0)
    return pairs[pairs[:, 0] != pairs[:, 1]].T


@pytest.mark.parametrize("mean_degree", [6, 10, 20])
@pytest.mark.parametrize("n", [1000, 3000])
def test_the_tail_of_a_random_graph_is_not_smaller_than_its_balls_tell(n, mean_degree):
    for seed in range(2):
        i, j = _graph(np.random.default_rng([seed, n]), n, mean_degree)
        tail = len(ordering.eliminate(n, i, j).tail)
        assert 0.6 * tail < least_tail(n, *_links(i, j)) < tail


def test_balls_tell_nothing_of_graphs_that_can_be_separated():
    rng = np.random.default_rng(0)
    n = 3000
    i = rng.integers(0, n, 8 * n)
    of_like_rank = np.minimum(n - 1, i + rng.integers(1, 60, len(i)))
    in_divisions = i - i % 300 + rng.integers(0, 300, len(i))
    away = rng.random(len(i)) < 0.01
    in_divisions[away] = rng.integers(0, n, away.sum())
    at = np.arange(3025).reshape(55, 55)
    grid = np.concatenate([at[1:].ravel(), at[:, 1:].ravel()]), np.concatenate([at[:-1].ravel(), at[:, :-1].ravel()])
    for n_variables, ends in ((n, (i, of_like_rank)), (n, (i, in_divisions)), (3025, grid)):
        assert least_tail(n_variables, *_links(*ends)) == 0.0
