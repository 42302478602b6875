"""Private scalars are integrated out: the same numbers as with all of them in one system, whatever the sites say."""

import numpy as np
import pytest

import heliograph as hg
from heliograph.engine.blocks.compile import find_blocks
from heliograph.engine.blocks.dense import DenseSystem
from heliograph.engine.blocks.folding import folded_system
from heliograph.engine.blocks.private import fold_of, private_nodes
from heliograph.engine.blocks.rows import joined
from heliograph.engine.blocks.system import Sites


def games(rng, n=6, n_games=15):
    """Both performances of a game are private, with one row in all that reads them."""
    first = rng.integers(0, n, n_games)
    second = (first + rng.integers(1, n, n_games)) % n
    model = hg.Model()
    skill = model.gaussian("skill", 25.0, variance=64.0, size=n)
    a = model.gaussian("a", skill[first], variance=16.0)
    b = model.gaussian("b", 0.5 * skill[second] + 1.0, variance=rng.uniform(1, 9, n_games))
    model.constrain(a - 2.0 * b > 1.0)
    return model, [skill, a, b, a - b], ["a", "b"]


def counts(rng, n=20, d=3):
    """Counts with an extra spread each."""
    x = rng.normal(size=(n, d))
    model = hg.Model()
    w = model.gaussian("w", np.zeros(d), covariance=np.eye(d))
    extra = model.gaussian("extra", 0.3, variance=0.5, size=n)
    model.poisson("count", log_rate=x @ w - 2.0 * extra, observed=rng.poisson(1.5, n))
    return model, [w, extra], ["extra"]


def noisy_scores(rng, n=40, d=12):
    """Scores around a long product, which are themselves what the labels read."""
    x = rng.normal(size=(n, d))
    model = hg.Model()
    w = model.gaussian("w", np.zeros(d), covariance=np.eye(d))
    z = model.gaussian("z", x @ w, variance=0.7)
    model.bernoulli("label", probit=z, observed=rng.integers(0, 2, n).astype(float))
    return model, [w, z], ["z"]


def unknown_precision(rng, n=25):
    centre_of = np.arange(n) % 4
    model = hg.Model()
    centre = model.gaussian("centre", 0.0, variance=4.0, size=4)
    tau = model.gamma("tau", 3.0, 3.0)
    z = model.gaussian("z", centre[centre_of], variance=0.5)
    model.gaussian("y", z, precision=tau, observed=rng.normal(2.0, 1.0, n))
    return model, [centre, z, tau], ["z"]


def nothing_else(rng, n=5):
    """Every scalar is private."""
    model = hg.Model()
    a, b = model.gaussian("a", 0.0, variance=1.0, size=n), model.gaussian("b", 1.0, variance=2.0, size=n)
    model.constrain(a > b)
    return model, [a, b], ["a", "b"]


MODELS = [games, counts, noisy_scores, unknown_precision, nothing_else]


@pytest.mark.parametrize("make", MODELS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_run_without_private_scalars_has_the_same_answers(make, seed, monkeypatch):
    def numbers(few):
        monkeypatch.setattr("heliograph.engine.blocks.plate._FEW", few)
        model, variables, _ = make(np.random.default_rng(seed))
        posterior = model.infer()
        assert posterior.converged
        found = [np.ravel(f(posterior[v])) for v in variables for f in (lambda b: b.mean, lambda b: b.variance)]
        across = [posterior.covariance(v, u).ravel() for v in variables[:2] for u in variables[:2]]
        return np.concatenate([*found, *across, [posterior.log_evidence]])

    whole = numbers(10**9)
    np.testing.assert_allclose(numbers(0), whole, rtol=1e-8, atol=1e-9)


def both_systems(make, seed=3):
    """The same block with its private scalars and without, and the rows of all its nodes."""
    model, _, names = make(np.random.default_rng(seed))
    graph = model.graph
    (block,) = find_blocks(graph)
    outside = {e.node for p in graph.plates if p.position not in block.plates for e in p.edges.values()}
    free = [k for k in block.nodes if not graph.nodes[k].fully_observed]
    site_rows = joined([block.rows[k] for k in free if k in outside], block.n_columns)
    private = private_nodes(block, [k for k in free if k in block.base and graph.nodes[k].dimension is None], site_rows)
    assert [graph.nodes[k].name for k in private] == names
    shown = [k for k in free if k in block.base and k not in private and k not in outside]
    rows = joined([site_rows, *(block.rows[k] for k in shown)], block.n_columns)
    everything = joined([block.rows[k] for k in free], block.n_columns)
    n = len(site_rows)
    folded = folded_system(fold_of(block, private, site_rows), rows, n)
    return DenseSystem(block.known, rows, n), folded, n, everything


def sites_of(kind, n, rng):
    tau, shift = rng.uniform(0.1, 3.0, n), rng.normal(size=n)
    if kind == "negative":
        tau[::3] = -0.002
    if kind == "silent":
        tau[::2], shift[::2] = 0.0, 0.0
    if kind == "exact":
        at = np.array([0, 2])
        tau[at], shift[at] = 0.0, 0.0
        return Sites(shift, tau, (), at, np.array([1.5, -0.5]))
    return Sites(shift, tau)


@pytest.mark.parametrize("make", [games, counts, noisy_scores, nothing_else], ids=lambda f: f.__name__)
@pytest.mark.parametrize("kind", ["positive", "negative", "silent", "exact"])
def test_the_system_without_private_scalars_knows_what_the_whole_one_knows(make, kind):
    whole, folded, n, rows = both_systems(make)
    sites = sites_of(kind, n, np.random.default_rng(4))
    a, b = whole.solve(sites), folded.solve(sites)
    for found, expected in zip(folded.marginals(b), whole.marginals(a), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(folded.means(rows, b), whole.means(rows, a), rtol=1e-9, atol=1e-10)
    covariance = whole.covariance(rows, rows, a)
    np.testing.assert_allclose(folded.covariance(rows, rows, b), covariance, atol=1e-9)
    np.testing.assert_allclose(folded.moments(rows, b)[1], np.diag(covariance), atol=1e-9)
    if len(rows) % 5 == 0:
        pieces = folded.moments(rows, b, 5)[1]
        np.testing.assert_allclose(pieces, whole.moments(rows, a, 5)[1], atol=1e-9)
    np.testing.assert_allclose(folded.log_mass(b), whole.log_mass(a), rtol=1e-9)


@pytest.mark.parametrize("kind", ["positive", "negative", "exact"])
def test_draws_have_the_covariance_of_all_scalars(kind):
    whole, folded, n, _ = both_systems(games)
    sites = sites_of(kind, n, np.random.default_rng(4))
    draws = folded.sample(np.random.default_rng(5), folded.solve(sites), 100_000)
    solution = whole.solve(sites)
    expected = solution.root @ solution.root.T
    sd = np.sqrt(np.diag(expected).max())
    np.testing.assert_allclose(draws.mean(axis=0), solution.mean, atol=5 * sd / np.sqrt(100_000))
    np.testing.assert_allclose(np.cov(draws.T), expected, atol=8 * sd**2 / np.sqrt(100_000))


def test_sites_that_leave_no_distribution_are_refused():
    whole, folded, n, _ = both_systems(nothing_else)
    sites = Sites(np.zeros(n), np.full(n, -1.0))  # the variance of a - b is 3
    assert whole.solve(sites) is None
    assert folded.solve(sites) is None


def test_scalars_that_two_sites_read_are_kept():
    model = hg.Model()
    rng = np.random.default_rng(0)
    z = model.gaussian("z", model.gaussian("centre", 0.0, variance=1.0), variance=1.0, size=70)
    model.bernoulli("once", probit=1.0 * z + 0.5, observed=rng.integers(0, 2, 70).astype(float))
    model.bernoulli("twice", logit=z[::2] - 1.0, observed=rng.integers(0, 2, 35).astype(float))
    (block,) = find_blocks(model.graph)
    outside = {e.node for p in model.graph.plates if p.position not in block.plates for e in p.edges.values()}
    site_rows = joined([block.rows[k] for k in block.nodes if k in outside], block.n_columns)
    assert private_nodes(block, list(block.base), site_rows) == []
