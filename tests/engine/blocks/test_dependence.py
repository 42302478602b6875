"""Which beliefs of a block depend on which sites: read off rows that share scalars, or off the connected parts."""

import numpy as np
import pytest
import scipy.sparse as sp

import heliograph as hg
from heliograph.engine.blocks.dependence import dependence
from heliograph.engine.blocks.rows import Rows
from heliograph.engine.compiled import compile_model


def rows_of(columns, n_columns):
    columns = np.asarray(columns)
    n, k = columns.shape
    matrix = sp.csr_array((np.ones(n * k), columns.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n_columns))
    return Rows(matrix, (), np.zeros(n))


def by_walking(rows, sites, n_columns):
    """For every entry, all entries of sites that can be reached from it over shared scalars, itself excepted."""
    every = [(port, k, set(r.sparse[[k]].indices.tolist())) for port, r in rows.items() for k in range(len(r))]
    found = {port: set() for port in rows}
    part = {}
    for port, k, scalars in every:
        reached, more = set(scalars), True
        while more:
            more = [s for _, _, s in every if s & reached and not s <= reached]
            reached.update(*more)
        part[port, k] = min(reached)
        found[port] |= {p for p, j, s in every if p in sites and s & reached and (p, j) != (port, k)}
    labels = {port: np.array([part[port, k] for k in range(len(r))]) for port, r in rows.items()}
    return {port: frozenset(f) for port, f in found.items()}, labels


@pytest.mark.parametrize("seed", range(40))
def test_ports_depend_on_the_sites_that_can_be_reached_from_them(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 12))
    rows = {}
    for port in "abc"[: int(rng.integers(1, 4))]:
        k = int(rng.integers(1, 3))
        rows[port] = rows_of([rng.choice(n, k, replace=False) for _ in range(rng.integers(1, 5))], n)
    sites = sorted(rows)[: int(rng.integers(1, len(rows) + 1))]
    expected, labels = by_walking(rows, sites, n)
    assert dependence(rows, sites, lambda: labels) == expected
    assert dependence(None, sites, lambda: labels) == expected


def test_nobody_asks_for_the_parts_of_a_league():
    rng = np.random.default_rng(0)
    model = hg.Model()
    skill = model.gaussian("skill", 0.0, variance=1.0, size=80)
    first = rng.integers(0, 80, 300)
    a = model.gaussian("a", skill[first], variance=1.0)
    b = model.gaussian("b", skill[(first + rng.integers(1, 80, 300)) % 80], variance=1.0)
    model.constrain(a > b)
    compiled = compile_model(model.graph.snapshot())
    assert compiled.schedule.sweep
    assert "parts" not in vars(compiled.blocks[0].factor)


def test_private_scalars_are_in_the_part_of_the_site_that_reads_them():
    """Two leagues that do not meet, somebody who never played, and one who lost to himself."""
    rng = np.random.default_rng(1)
    model = hg.Model()
    skill = model.gaussian("skill", 0.0, variance=1.0, size=82)
    first, second = rng.integers(0, 40, 200), rng.integers(0, 40, 200)
    first[100:], second[100:] = first[100:] + 40, second[100:] + 40
    second[second == first] += 1
    a = model.gaussian("a", skill[np.append(first, 81)], variance=1.0)
    b = model.gaussian("b", skill[np.append(second, 81)], variance=1.0)
    model.constrain(a > b)
    compiled = compile_model(model.graph.snapshot())
    (block,) = compiled.blocks
    names = {p.node: compiled.graph.nodes[p.node].name for p in block.factor.at.values()}
    found = {names[block.factor.at[port].node]: part for port, part in block.factor.parts.items()}
    skills, games = found["skill"], next(part for name, part in found.items() if name != "skill")
    group = np.repeat([0, 1], [100, 100])
    assert len(set(games[:100])) == len(set(games[100:200])) == 1 and games[0] != games[100]
    assert (skills[first] == games[:200]).all() and (skills[second] == games[:200]).all()
    assert skills[80] not in skills[:80] and games[200] not in (games[0], games[100], skills[80])
    assert [(games[:200] == games[0]).tolist()] == [(group == 0).tolist()]
