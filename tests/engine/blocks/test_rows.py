"""Affine expressions as sparse rows, against dense matrices; and what a prior alone says, against a solve."""

import numpy as np
import pytest
import scipy.sparse as sp

import heliograph as hg
from heliograph.engine.blocks.dense import DenseSystem
from heliograph.engine.blocks.records import Known
from heliograph.engine.blocks.rows import add, apply, base, image, joined, minus, over, pull, scale, take
from heliograph.engine.blocks.system import Sites
from heliograph.engine.blocks.whitening import whitened
from heliograph.families import MultivariateGaussian


def uneven(n_columns, seed):
    """Rows of one, two and three entries, and of none."""
    rng = np.random.default_rng(seed)
    a, b = base(rng.permutation(n_columns)[:6], n_columns), base(rng.permutation(n_columns)[:6], n_columns)
    three = add(minus(a, scale(b, rng.normal(size=6))), base(rng.permutation(n_columns)[:6], n_columns))
    return joined([a, three, minus(a, b), scale(base(np.full(2, -1), n_columns, np.array([3.0, 4.0])), 2.0)], n_columns)


@pytest.mark.parametrize("seed", range(3))
def test_some_rows_are_those_of_the_dense_matrix(seed):
    rows = uneven(9, seed)
    index = np.random.default_rng(seed).integers(0, len(rows), 30)
    some = take(rows, index)
    assert np.array_equal(some.sparse.toarray(), rows.sparse.toarray()[index])
    assert np.array_equal(some.constant, rows.constant[index])
    assert len(take(rows, np.zeros(0, dtype=int))) == 0


@pytest.mark.parametrize("two_of_one", [False, True])
def test_sums_of_multiples_of_scalars_are_those_of_the_dense_matrix(two_of_one):
    rng = np.random.default_rng(1)
    rows = scale(base(np.array([3, 0, 0 if two_of_one else 2, 1]), 5), rng.normal(size=4))
    one, two = np.array([[0, 1, 0, 0], [0, 0, 0, 2.0]]), np.array([[1.0, 0, -2.0, 0], [0, 1.0, 3.0, 0]])
    for matrix in (one, two, sp.csr_array(two), np.ones((3, 4))):
        made = apply(matrix, rows)
        dense = matrix @ rows.sparse.toarray()
        assert made.sparse.toarray() == pytest.approx(dense, rel=1e-15)
        assert image(made, np.arange(5.0)) == pytest.approx(dense @ np.arange(5.0), rel=1e-14)
        columns = np.split(made.sparse.indices, made.sparse.indptr[1:-1])
        assert all(len(np.unique(c)) == len(c) for c in columns)  # no scalar stands twice in a row


def test_rows_that_are_all_unknowns_in_their_order_change_nothing():
    rows, x = base(np.arange(7), 7), np.random.default_rng(0).normal(size=(7, 3))
    assert rows.in_order and not take(rows, np.arange(6, -1, -1)).in_order
    assert np.array_equal(over(rows, x), x) and np.array_equal(image(rows, x[:, 0]), x[:, 0])
    assert np.array_equal(pull(rows, x[:, 0]), x[:, 0])
    assert np.array_equal(over(take(rows, np.arange(6, -1, -1)), x), x[::-1])


def test_a_prior_alone_is_what_the_solve_finds():
    rng = np.random.default_rng(2)
    root = rng.normal(size=(5, 5))
    prior = MultivariateGaussian(rng.normal(size=(1, 5)), (root @ root.T + 0.1 * np.eye(5))[None])
    rows = base(np.arange(5), 5)
    gap = add(rows, base(np.full(5, -1), 5, -prior.mean[0]))
    known, _ = whitened(gap, prior.naturals[1], prior)
    sites = Sites(np.zeros(5), np.zeros(5))
    kept = DenseSystem((known,), rows, 5)
    solved = DenseSystem((Known(*known[:3]),), rows, 5)
    assert kept.solve(sites).prior is not None and solved.solve(sites).prior is None
    for one, other in zip(kept.marginals(kept.solve(sites)), solved.marginals(solved.solve(sites)), strict=True):
        assert one == pytest.approx(other, rel=1e-10)
    assert kept.log_mass(kept.solve(sites)) == pytest.approx(solved.log_mass(solved.solve(sites)), rel=1e-10)
    assert kept.whole(rows, kept.solve(sites)).covariance == pytest.approx(prior.covariance, rel=1e-10)
    told = Sites(np.ones(5), np.full(5, 0.3))
    assert np.array_equal(kept.solve(told).mean, solved.solve(told).mean)


@pytest.mark.parametrize("mean", [0.0, 2.0])
def test_the_evidence_of_labels_of_a_process_does_not_depend_on_how_its_prior_is_written(mean):
    x = np.linspace(0.0, 3.0, 40)
    kernel = np.exp(-0.5 * (x[:, None] - x) ** 2) + 1e-3 * np.eye(40)
    y = (np.sin(3 * x) > 0) * 1.0
    found = []
    for spread in ("covariance", "precision"):
        model = hg.Model()
        given = {spread: kernel if spread == "covariance" else np.linalg.inv(kernel)}
        f = model.variable("f", MultivariateGaussian(np.full(40, mean), **given))
        model.bernoulli("y", probit=np.eye(40) @ f, observed=y)
        posterior = model.infer()
        found.append((posterior.log_evidence, posterior[f].mean, posterior[f].variance))
    for one, other in zip(*found, strict=True):
        assert one == pytest.approx(other, rel=1e-7, abs=1e-8)
