"""Conjugate gradients and probes: the mean is exact, the variances are as far off as the estimate says."""

import numpy as np
import pytest
from sparse_cases import SHAPES, case, dense_information, dense_precision, dense_rows, solved, with_negative_weights

from heliograph.numerics import sparse
from heliograph.numerics.sparse import make_rows

KINDS = {
    "scalars": {},
    "sites of two": {"width": 2},
    "a vector": {"vector": 4},
    "a vector, sites of three": {"vector": 3, "width": 3},
}
DEVIATIONS = 5.0  # standard errors that the worst of some hundred rows may be off


def _estimate(model, n_probes, seed=0, **keywords):
    parts = [model.prior, model.sites]
    plan = sparse.analyse(parts, model.vectors)
    prober = sparse.with_probes(np.random.default_rng(seed), sparse.bare_of(plan, parts), n_probes=n_probes)
    right = sparse.information(model.sites, model.tau, model.nu)
    return sparse.estimate(prober, [model.prior_tau, model.tau], right, **keywords)


def _truth(rows, covariance):
    a, q = dense_rows(rows), rows.width
    whole = a @ covariance @ a.T
    return np.diagonal(whole) if q == 1 else np.stack([whole[i : i + q, i : i + q] for i in range(0, len(a), q)])


def _check(model, result):
    """The standard error is stated from the sampled term itself, so if that is low by r of the truth, so is the statement."""
    n_probes = result.probes.shape[1]
    allowance = DEVIATIONS / (1 - DEVIATIONS * np.sqrt(2 / n_probes))
    covariance = np.linalg.inv(dense_precision(model))
    assert result.settled
    np.testing.assert_allclose(result.mean, covariance @ dense_information(model), rtol=1e-7, atol=1e-8)
    for rows, found, error in zip((model.prior, model.sites), result.variances, result.errors, strict=True):
        truth = _truth(rows, covariance)
        if rows.width > 1:  # all entries, on the scale of the standard deviations
            sd = np.sqrt(np.einsum("kii->ki", truth))
            scale = np.where(sd[:, :, None] * sd[:, None, :] > 0, sd[:, :, None] * sd[:, None, :], 1.0)
            off = np.abs(found - truth) / scale
            per_row = error.reshape(-1, rows.width)
            allowed = 2 * np.maximum(per_row[:, :, None], per_row[:, None, :])
        else:
            off, allowed = (
                np.abs(found - truth) / np.where(truth > 0, truth, 1.0),
                2 * error,
            )  # of a variance: twice a sd's
        assert (off <= allowance * allowed + 1e-4).all()  # the probes are solved to 1e-5


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_variances_are_within_what_the_estimate_states(shape, kind):
    for seed, n in enumerate((1, 2, 5, 17, 60)):
        model = case(seed, shape, n, **KINDS[kind])
        _check(model, _estimate(model, 64))
        _check(model, _estimate(model, 4096))


@pytest.mark.parametrize("kind", KINDS)
def test_sites_of_negative_weight_are_estimated_without_bias(kind):
    for seed, n in enumerate((2, 9, 30)):
        model = with_negative_weights(case(seed, "random", n, **KINDS[kind]))
        _check(model, _estimate(model, 4096))


@pytest.mark.parametrize("kind", KINDS)
def test_few_probes_of_negative_weights_leave_no_negative_variance(kind):
    for seed in range(10):
        result = _estimate(with_negative_weights(case(seed, "random", 30, **KINDS[kind])), 3, seed)
        assert all((v if v.ndim == 1 else np.linalg.eigvalsh(v)).min() > -1e-12 for v in result.variances)


def test_the_stated_error_is_that_of_repeated_estimates():
    model = case(0, "grid", 49)
    truth = _truth(model.sites, np.linalg.inv(dense_precision(model)))
    results = [_estimate(model, 32, seed) for seed in range(60)]
    found = np.array([r.variances[1] for r in results])
    kept = truth > 0
    realised = np.sqrt(np.mean((np.sqrt(found[:, kept] / truth[kept]) - 1) ** 2))
    stated = np.sqrt(np.mean(np.array([r.errors[1] for r in results])[:, kept] ** 2))
    assert 0.7 * stated < realised < 1.2 * stated  # signs vary less than normal draws, for which the statement holds


def test_conditioning_on_the_other_variables_beats_plain_probes():
    """A plain sample variance of 64 draws is off by 9 % of a standard deviation."""
    model = case(1, "random", 60)
    assert np.mean(_estimate(model, 64).errors[1]) < 0.5 * np.sqrt(2 / 64) / 2


def test_a_sum_of_many_variables_is_estimated_with_the_plain_error():
    model = case(2, "chain", 60)
    total = make_rows(60, 0, np.arange(60), np.random.default_rng(0).normal(size=60))
    model = model._replace(sites=total, tau=np.array([0.3]), nu=np.array([1.0]))
    result = _estimate(model, 1024)
    _check(model, result)
    np.testing.assert_allclose(result.errors[1], np.sqrt(2 / 1024) / 2)


def test_the_same_seed_gives_the_same_bits_and_a_previous_estimate_saves_work():
    model = case(4, "grid", 60)
    first, again = _estimate(model, 64), _estimate(model, 64)
    np.testing.assert_array_equal(first.variances[1], again.variances[1])
    near = model._replace(tau=model.tau * 1.001)
    warm, cold = _estimate(near, 64, previous=first), _estimate(near, 64)
    assert warm.n_iterations < cold.n_iterations
    np.testing.assert_allclose(warm.variances[1], cold.variances[1], rtol=1e-4, atol=1e-12)


@pytest.mark.parametrize("vector", [0, 3])
def test_units_do_not_matter(vector):
    model = case(3, "random", 40, vector=vector)
    plain = _estimate(model, 64)
    unit = 10.0 ** np.random.default_rng(0).integers(-6, 7, size=40 + vector)
    unit[40:] = 1e3

    def scaled(rows):
        dense = tuple(sparse.Dense(d.first, d.start, d.matrix * 1e3) for d in rows.dense)
        row = np.repeat(np.arange(rows.n_rows), np.diff(rows.indptr))
        values = rows.values * unit[rows.indices]
        return make_rows(
            40 + vector, row, rows.indices, values, n_rows=rows.n_rows, constant=rows.constant, dense=dense
        )

    other = _estimate(model._replace(prior=scaled(model.prior), sites=scaled(model.sites)), 64)
    np.testing.assert_allclose(other.mean * unit, plain.mean, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(other.variances[1], plain.variances[1], rtol=1e-4, atol=1e-12)


@pytest.mark.parametrize("vector", [0, 3])
def test_an_indefinite_precision_is_refused(vector):
    model = case(3, "random", 40, vector=vector)
    tau = model.tau.copy()
    tau[0] = -1e4
    with pytest.raises(sparse.NotPositiveDefiniteError):
        _estimate(model._replace(tau=tau), 64)


def test_negative_curvature_behind_a_positive_diagonal_is_refused():
    prior, difference = make_rows(2, [0, 1], [0, 1]), make_rows(2, [0, 0], [0, 1], [1.0, -1.0])
    plan = sparse.analyse([prior, difference])
    prober = sparse.with_probes(np.random.default_rng(0), sparse.bare_of(plan, [prior, difference]))
    with pytest.raises(sparse.NotPositiveDefiniteError):  # eigenvalues 1 and 1 - 2 * .6
        sparse.estimate(prober, [np.ones(2), np.array([-0.6])], np.array([1.0, -0.5]))


def test_estimates_do_not_need_a_plan_within_its_budget():
    model = case(5, "random", 60)
    parts = [model.prior, model.sites]
    plan = sparse.analyse(parts, budget=sparse.Budget(flops=0.0))
    prober = sparse.with_probes(np.random.default_rng(0), sparse.bare_of(plan, parts), queried=[False, True])
    result = sparse.estimate(prober, [model.prior_tau, model.tau], sparse.information(model.sites, model.tau, model.nu))
    assert not plan.affordable and result.variances[0] is None
    np.testing.assert_allclose(result.mean, solved(model).mean, rtol=1e-7, atol=1e-9)


def test_an_expander_is_recognised_before_it_is_filled():
    """A random graph of 6,000 variables and 60,000 edges has a dense remainder of thousands, whatever the order."""
    rng = np.random.default_rng(0)
    n = 6_000
    pairs = rng.integers(n, size=(60_000, 2))
    rows = make_rows(n, np.repeat(np.arange(len(pairs)), 2), pairs.ravel(), rng.normal(size=2 * len(pairs)))
    plan = sparse.analyse([rows])
    assert not plan.affordable and plan.tail > 3_000
    assert plan.flops > plan.tail**3


def test_a_sparse_graph_with_one_loose_end_is_not_taken_for_an_expander():
    """The first round removes little more than the loose end, which says nothing of the torus that it hangs on."""
    side = 100
    at = np.arange(side * side).reshape(side, side)
    pairs = np.concatenate(
        [np.stack([at, np.roll(at, 1, axis)], -1).reshape(-1, 2) for axis in (0, 1)] + [[[0, side * side]]]
    )
    rows = make_rows(
        side * side + 1, np.repeat(np.arange(len(pairs)), 2), pairs.ravel(), np.tile([1.0, -1.0], len(pairs))
    )
    plan = sparse.analyse([rows])
    assert plan.affordable and plan.tail < 1_000
