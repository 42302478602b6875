"""The sparse solver against dense algebra: random numbers on chains, trees, grids, arrows, islands and random graphs."""

import numpy as np
import pytest
from sparse_cases import (
    SHAPES,
    case,
    dense_information,
    dense_precision,
    dense_rows,
    solved,
    with_negative_weights,
)

from heliograph.numerics import sparse
from heliograph.numerics.sparse import Dense, make_rows, rounds

SIZES = (1, 2, 3, 5, 9, 17, 34, 60)
CLOSE = {"rtol": 1e-9, "atol": 1e-11}  # the cases have condition numbers below 1e5, and numbers of order one


@pytest.fixture(params=["as shipped", "sparse to the end", "tail of eight"])
def tail(request, monkeypatch):
    """Small models are one dense tail as shipped, so the rounds are forced as well."""
    if request.param != "as shipped":
        monkeypatch.setattr(rounds, "SMALL_TAIL", 0 if request.param == "sparse to the end" else 8)
        monkeypatch.setattr(rounds, "MODEST_TAIL", 0)
        monkeypatch.setattr(rounds, "DENSE_ENOUGH", 2.0)
    return request.param


KINDS = {
    "scalars": {},
    "sites of two": {"width": 2},
    "sites of three": {"width": 3},
    "a vector": {"vector": 4},
    "a vector, sites of two": {"vector": 3, "width": 2},
}


def _check(model, result):
    precision = dense_precision(model)
    covariance = np.linalg.inv(precision)
    a, q = dense_rows(model.sites), model.sites.width
    np.testing.assert_allclose(result.mean, covariance @ dense_information(model), **CLOSE)
    np.testing.assert_allclose(result.factor.log_determinant, np.linalg.slogdet(precision)[1], **CLOSE)
    truth = a @ covariance @ a.T
    if q == 1:
        truth = np.diagonal(truth)
    else:
        truth = np.stack([truth[i : i + q, i : i + q] for i in range(0, len(a), q)])
    np.testing.assert_allclose(result.variances, truth, **CLOSE)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_means_variances_and_log_determinant_are_those_of_dense_algebra(shape, kind, tail):
    for seed, n in enumerate(SIZES):
        model = case(seed, shape, n, **KINDS[kind])
        _check(model, solved(model))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_core_of_any_scalars_changes_nothing(shape, tail):
    for seed, n in enumerate(SIZES):
        model = case(seed, shape, n)
        chosen = np.random.default_rng(seed).permutation(n)[: max(1, n // 4)]
        result = solved(model, core=chosen)
        assert result.plan.n_core == len(chosen)
        _check(model, result)


def test_a_scalar_in_very_many_rows_joins_the_core():
    model = case(0, "arrow", 300)
    result = solved(model)
    assert list(result.plan.order[-result.plan.n_core :]) == [0]
    _check(model, result)


def test_everything_in_the_core_is_solved_too():
    model = case(3, "random", 20)
    result = solved(model, core=np.arange(20))
    assert result.plan.n_sparse == 0
    _check(model, result)


def test_two_vectors_over_overlapping_rows():
    rng = np.random.default_rng(0)
    n, m = 9, 30
    dense = (
        Dense(0, 0, rng.normal(size=(20, 4))),
        Dense(10, 4, rng.normal(size=(20, 3))),
        Dense(15, 0, rng.normal(size=(3, 4))),
    )
    sites = make_rows(n, np.arange(m), rng.integers(9, size=m), rng.normal(size=m), n_rows=m, dense=dense)
    model = case(0, "chain", n)._replace(sites=sites, tau=rng.gamma(1.0, size=m), nu=rng.normal(size=m))
    _check(model, solved(model))


@pytest.mark.parametrize("kind", KINDS)
def test_negative_weights_are_allowed_while_the_whole_stays_positive(kind, tail):
    for seed, n in enumerate(SIZES):
        model = with_negative_weights(case(seed, "random", n, **KINDS[kind]))
        _check(model, solved(model))


@pytest.mark.parametrize("shape", SHAPES)
def test_permuting_variables_and_rows_changes_nothing(shape, tail):
    for seed, n in enumerate(SIZES):
        model = case(seed, shape, n)
        plain = solved(model)
        rng = np.random.default_rng(seed)
        new, moved = (
            rng.permutation(n),
            rng.permutation(model.sites.n_rows),
        )  # variable v becomes new[v]; row moved[i] comes i-th

        def permuted(rows, order, new=new):
            a = dense_rows(rows)[order][:, np.argsort(new)]
            return make_rows(
                rows.n_variables, *np.nonzero(a), a[np.nonzero(a)], n_rows=len(a), constant=rows.constant[order]
            )

        prior, sites = permuted(model.prior, np.arange(n)), permuted(model.sites, moved)
        other = solved(model._replace(prior=prior, sites=sites, tau=model.tau[moved], nu=model.nu[moved]))
        np.testing.assert_allclose(other.mean[new], plain.mean, **CLOSE)
        np.testing.assert_allclose(other.variances, plain.variances[moved], **CLOSE)
        np.testing.assert_allclose(other.factor.log_determinant, plain.factor.log_determinant, **CLOSE)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_units_of_the_variables_do_not_matter(shape, kind, tail):
    for seed, n in enumerate(SIZES):
        model = case(seed, shape, n, **KINDS[kind])
        plain = solved(model)
        unit = 10.0 ** np.random.default_rng(seed).integers(-6, 7, size=model.sites.n_variables)

        def scaled(rows, unit=unit):  # x = unit * y
            dense = tuple(
                Dense(d.first, d.start, d.matrix * unit[d.start : d.start + d.matrix.shape[1]]) for d in rows.dense
            )
            row = np.repeat(np.arange(rows.n_rows), np.diff(rows.indptr))
            return make_rows(
                rows.n_variables, row, rows.indices, rows.values * unit[rows.indices],
                n_rows=rows.n_rows, constant=rows.constant, width=rows.width, dense=dense,
            )  # fmt: skip

        other = solved(model._replace(prior=scaled(model.prior), sites=scaled(model.sites)))
        np.testing.assert_allclose(other.mean * unit, plain.mean, **CLOSE)
        np.testing.assert_allclose(other.variances, plain.variances, **CLOSE)
        log_units = 2 * np.log(unit).sum()
        np.testing.assert_allclose(
            other.factor.log_determinant - log_units, plain.factor.log_determinant, rtol=1e-9, atol=1e-9
        )


@pytest.mark.parametrize("kind", KINDS)
def test_samples_have_the_covariance_of_the_precision(kind, tail):
    model = case(5, "random", 12, **KINDS[kind])
    covariance = np.linalg.inv(dense_precision(model))
    n_draws = 40_000
    draws = sparse.sample(np.random.default_rng(1), solved(model).factor, n_draws)
    scale = np.sqrt(np.diagonal(covariance))
    error = (draws.T @ draws / n_draws - covariance) / np.outer(scale, scale)
    assert np.abs(error).max() < 5 * np.sqrt(2 / n_draws)  # five standard errors of a variance


@pytest.mark.parametrize("kind", KINDS)
def test_covariances_of_expressions_outside_the_pattern(kind, tail):
    for seed, n in enumerate(SIZES):
        model = case(seed, "random", n, **KINDS[kind])
        rng = np.random.default_rng(seed)
        total = model.sites.n_variables
        a, b = rng.normal(size=(3, total)), rng.normal(size=(2, total))
        rows = make_rows(total, *np.nonzero(a), a.ravel())
        others = make_rows(total, 0, 0, n_rows=2, dense=(Dense(0, 0, b),))
        b[0, 0] += 1.0
        factor, covariance = solved(model).factor, np.linalg.inv(dense_precision(model))
        others = others if total else rows
        b_rows = dense_rows(others)
        np.testing.assert_allclose(sparse.covariance(factor, rows), a @ covariance @ a.T, **CLOSE)
        np.testing.assert_allclose(sparse.covariance(factor, rows, others), a @ covariance @ b_rows.T, **CLOSE)


def test_several_right_hand_sides_are_solved_at_once(tail):
    model = case(2, "grid", 36, vector=2)
    right = np.random.default_rng(0).normal(size=(38, 5))
    np.testing.assert_allclose(
        sparse.solve(solved(model).factor, right), np.linalg.solve(dense_precision(model), right), **CLOSE
    )
