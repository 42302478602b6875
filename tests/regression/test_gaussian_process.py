"""The exact process against the dense formulas, written out the slow way."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from heliograph.errors import ModelError
from heliograph.regression import gaussian_process as gp
from heliograph.regression.labelled_rows import LabelledRows
from heliograph.regression.process_evidence import fit_widths, negative_log_evidence


def problem(n=60, k=3, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, k)) * 2 + 1
    y = np.stack([np.sin(x[:, 0]), np.cos(x[:, 1]) * x[:, 2] * 5], axis=1)
    return x, y


def naive_kernel(widths, a, b):
    """Loops over pairs, the obvious reference."""
    out = np.empty((len(a), len(b)))
    for i in range(len(a)):
        for j in range(len(b)):
            out[i, j] = np.exp(-0.5 * (((a[i] - b[j]) / widths.widths) ** 2).sum())
    return out


def naive(widths, x, y, z, label_noise=None):
    means, variances, evidences = [], [], []
    for q in range(y.shape[1]):
        s = widths.signal[q]
        k = s * naive_kernel(widths, x, x) + s * widths.noise * np.eye(len(x))
        if label_noise is not None:
            k = k + np.diag(label_noise[:, q])
        cross = s * naive_kernel(widths, z, x)
        means.append(cross @ np.linalg.solve(k, y[:, q]))
        variances.append(s - np.einsum("ij,ji->i", cross, np.linalg.solve(k, cross.T)))
        evidences.append(multivariate_normal(np.zeros(len(x)), k, allow_singular=False).logpdf(y[:, q]))
    return np.stack(means, 1), np.stack(variances, 1), np.array(evidences)


WIDTHS = gp.Widths(np.array([0.5, 1.0, 1.0]), np.array([2.0, 3.0, 4.0]), np.array([0.7, 11.0]), 1e-4)


@pytest.mark.parametrize("noisy", [False, True])
def test_prediction_and_evidence_are_the_dense_formulas(noisy):
    x, y = problem()
    z = problem(25, seed=1)[0]
    noise = np.random.default_rng(2).uniform(0.001, 0.5, y.shape) if noisy else None
    process = gp.condition(WIDTHS, LabelledRows(x, y, noise), profile=False)
    mean, variance = gp.predict(process, z)
    dense_mean, dense_variance, dense_evidence = naive(WIDTHS, x, y, z, noise)
    # the covariance has condition 1e6 at most: ten digits survive
    np.testing.assert_allclose(mean, dense_mean, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(variance, dense_variance, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(gp.log_evidence(process), dense_evidence, rtol=1e-9)


def test_the_profiled_signal_variance_is_the_one_of_largest_evidence():
    x, y = problem()
    best = gp.condition(WIDTHS, LabelledRows(x, y))
    for factor in (0.99, 1.01):
        other = gp.condition(
            best.widths._replace(signal=best.widths.signal * factor), LabelledRows(x, y), profile=False
        )
        assert (gp.log_evidence(other) < gp.log_evidence(best)).all()


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("k", [1, 7])
def test_points_appended_in_blocks_give_the_process_of_all_points(noisy, k):
    x, y = problem(50)
    z = problem(20, seed=1)[0]
    noise = np.random.default_rng(2).uniform(0.001, 0.5, y.shape) if noisy else None
    process = gp.condition(WIDTHS, LabelledRows(x[:0], y[:0], None if noise is None else noise[:0]))
    for start in range(0, 50, k):
        part = slice(start, start + k)
        process = gp.append(process, LabelledRows(x, y, noise).at(part))
    for a, b in zip(
        gp.predict(process, z), gp.predict(gp.condition(WIDTHS, LabelledRows(x, y, noise)), z), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-9)


def test_labels_with_noise_can_follow_labels_without():
    x, y = problem(30)
    z = problem(20, seed=1)[0]
    noise = np.full((10, 2), 0.3)
    process = gp.append(
        gp.condition(WIDTHS, LabelledRows(x[:20], y[:20]), profile=False), LabelledRows(x[20:], y[20:], noise)
    )
    dense = naive(WIDTHS, x, y, z, np.concatenate([np.zeros((20, 2)), noise]))
    np.testing.assert_allclose(gp.predict(process, z)[0], dense[0], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("noisy", [False, True])
def test_leave_one_out_equals_leaving_each_point_out(noisy):
    x, y = problem(25)
    noise = np.random.default_rng(2).uniform(0.001, 0.5, y.shape) if noisy else None
    residual, variance = gp.leave_one_out(gp.condition(WIDTHS, LabelledRows(x, y, noise), profile=False))
    for i in range(25):
        rest = np.arange(25) != i
        process = gp.condition(WIDTHS, LabelledRows(x, y, noise).at(rest), profile=False)
        mean, latent = gp.predict(process, x[i : i + 1])
        np.testing.assert_allclose(residual[i], y[i] - mean[0], rtol=1e-7, atol=1e-9)
        own = WIDTHS.noise * WIDTHS.signal + (0 if noise is None else noise[i])
        np.testing.assert_allclose(variance[i], latent[0] + own, rtol=1e-7)


@pytest.mark.parametrize("noisy", [False, True])
def test_the_gradient_of_the_evidence_is_its_difference_quotient(noisy):
    x, y = problem(40)
    noise = np.random.default_rng(2).uniform(0.001, 0.5, y.shape) if noisy else None
    log_base = np.log([2.0, 3.0, 4.0])
    theta = np.concatenate([log_base + np.array([0.3, -0.2, 0.1]), [np.log(1e-3)], [0.3, -0.2] if noisy else []])
    args = (x - x.mean(0), y, noise, log_base)
    gradient = negative_log_evidence(theta, *args)[1]
    steps = np.eye(len(theta)) * 1e-5
    quotient = [
        (negative_log_evidence(theta + h, *args)[0] - negative_log_evidence(theta - h, *args)[0]) / 2e-5 for h in steps
    ]
    np.testing.assert_allclose(gradient, quotient, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("noisy", [False, True])
def test_the_objective_is_the_evidence_of_the_process_plus_the_prior(noisy):
    x, y = problem(40)
    noise = np.random.default_rng(2).uniform(0.001, 0.5, y.shape) if noisy else None
    widths = WIDTHS if noisy else gp.condition(WIDTHS, LabelledRows(x, y)).widths
    log_base = np.log([1.0, 3.0, 4.0])
    theta = np.concatenate(
        [np.log(widths.widths), [np.log(widths.noise)], np.log(widths.signal) if noisy else np.zeros(0)]
    )
    value = negative_log_evidence(theta, x - x.mean(0), y, noise, log_base)[0]
    expected = -gp.log_evidence(gp.condition(widths, LabelledRows(x, y, noise))).sum() + 0.5 * (np.log(2.0) / 2) ** 2
    assert value == pytest.approx(expected, rel=1e-9)


def test_fitted_widths_are_long_where_an_input_does_not_matter_and_inside_their_bounds():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 3))
    y = np.sin(2 * x[:, :1])
    widths = fit_widths(LabelledRows(x, y))
    assert widths.widths[0] < 3 < 10 < min(widths.widths[1:])
    assert 1e-8 <= widths.noise <= 1e-2
    assert (widths.widths <= 100 * x.std(0) * (1 + 1e-12)).all()
    mean, _ = gp.predict(gp.condition(widths, LabelledRows(x, y)), x[:20] * 0.9)
    np.testing.assert_allclose(mean, np.sin(1.8 * x[:20, :1]), atol=1e-2)


def test_a_warm_start_ends_no_worse_than_a_cold_one():
    x, y = problem(60)
    cold = fit_widths(LabelledRows(x, y))
    warm = fit_widths(LabelledRows(x, y), start=cold)
    evidence = [gp.log_evidence(gp.condition(w, LabelledRows(x, y))).sum() for w in (cold, warm)]
    assert evidence[1] >= evidence[0] - 0.1  # nats; the prior on the widths moves the optimum a little


def test_noise_of_the_labels_is_told_apart_from_the_signal():
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 3, (120, 1))
    noise = np.full((120, 1), 0.3**2)
    y = np.sin(x) + 0.3 * rng.normal(size=(120, 1))
    process = gp.condition(fit_widths(LabelledRows(x, y, noise)), LabelledRows(x, y, noise))
    z = np.linspace(-2.5, 2.5, 50)[:, None]
    mean, variance = gp.predict(process, z)
    z_scores = (mean - np.sin(z)) / np.sqrt(variance)
    assert np.abs(z_scores).max() < 4
    assert np.sqrt(variance).max() < 0.2  # averaging makes it surer than a single label


def test_a_column_that_never_varied_is_dropped_and_departing_from_it_is_unknown_ground():
    x, y = problem(40)
    x[:, 2] = 7.0
    widths = fit_widths(LabelledRows(x, y[:, :1]))
    assert np.isinf(widths.widths[2])
    process = gp.condition(widths, LabelledRows(x, y[:, :1]))
    here, there = x[:3].copy(), x[:3].copy()
    there[:, 2] = 7.5
    assert (gp.predict(process, here)[1] < 1e-3 * process.widths.signal).all()
    mean, variance = gp.predict(process, there)
    np.testing.assert_array_equal(mean, 0.0)
    np.testing.assert_allclose(variance, np.broadcast_to(process.widths.signal, (3, 1)))
    grown = gp.append(process, LabelledRows(there, y[:3, :1]))
    assert np.isfinite(grown.widths.widths).all()
    assert (gp.predict(grown, there)[1] < 1e-2 * grown.widths.signal).all()


def variances_after(process, z, chosen):
    """Variances of all rows once some are labelled: appended with labels, which do not matter."""
    labelled = gp.append(process, LabelledRows(z[chosen], np.zeros((len(chosen), 2))), profile=False)
    return gp.predict(labelled, z)[1]


@pytest.mark.parametrize("n_points", [0, 20])
def test_choosing_takes_the_worst_row_first_and_stops_when_all_are_below_the_tolerance(n_points):
    x, y = problem(n_points)
    z = problem(80, seed=1)[0]
    process = gp.condition(WIDTHS, LabelledRows(x, y), profile=False)
    weights = np.random.default_rng(3).uniform(0.5, 2.0, (80, 2))
    chosen = gp.choose(process, z, weights, tolerance=0.05)
    expected = (weights * gp.predict(process, z)[1]).sum(1)
    assert chosen[0] == np.argmax(expected)
    assert len(set(chosen)) == len(chosen) < 80
    left = (weights * variances_after(process, z, chosen)).sum(1)
    assert (np.delete(left, chosen) <= 0.05).all()
    before_last = (weights * variances_after(process, z, chosen[:-1])).sum(1)
    assert before_last[chosen[-1]] > 0.05
    # the slow way: predict again after each choice
    slow, taken = process, []
    for _ in range(5):
        score = (weights * gp.predict(slow, z)[1]).sum(1)
        taken.append(int(np.argmax(score)))
        slow = gp.append(slow, LabelledRows(z[taken[-1:]], np.zeros((1, 2))), profile=False)
    assert list(chosen[:5]) == taken


def test_choosing_stops_at_the_limit_and_takes_nothing_where_all_is_known():
    x, y = problem(30)
    process = gp.condition(WIDTHS, LabelledRows(x, y))
    assert len(gp.choose(process, problem(50, seed=1)[0], limit=7)) == 7
    assert len(gp.choose(process, x, tolerance=1e-2)) == 0


def test_no_row_is_chosen_twice_even_when_its_label_will_leave_it_above_the_tolerance():
    noisy = gp.condition(WIDTHS._replace(noise=1e-2), LabelledRows(np.zeros((0, 3)), np.zeros((0, 2))))
    rows = np.repeat(problem(3)[0] * 100, 2, axis=0)
    assert sorted(gp.choose(noisy, rows)) == list(range(6))


def test_equal_points_do_not_break_the_factor():
    x, y = problem(10)
    widths = gp.start_widths(x, 2)._replace(noise=1e-8)
    process = gp.condition(widths, LabelledRows(np.repeat(x, 5, axis=0), np.repeat(y, 5, axis=0)))
    mean, variance = gp.predict(process, x)
    np.testing.assert_allclose(mean, y, atol=1e-4)
    assert (variance >= 0).all()
    fit_widths(LabelledRows(np.repeat(x, 5, axis=0), np.repeat(y, 5, axis=0)))


def test_a_singular_covariance_gets_ten_times_the_noise_until_it_factors():
    x = np.zeros((40, 1)) + np.linspace(0, 1e-9, 40)[:, None]
    widths = gp.Widths(np.zeros(1), np.ones(1), np.ones(1), 1e-18)
    process = gp.condition(widths, LabelledRows(x, np.ones((40, 1))), profile=False)
    assert process.jitter > widths.noise
    np.testing.assert_allclose(gp.predict(process, x)[0], 1.0, atol=1e-6)


def test_wrong_rows_are_refused_in_words():
    with pytest.raises(ModelError, match="3 rows of inputs and 2 of targets"):
        gp.condition(WIDTHS, LabelledRows(np.zeros((3, 3)), np.zeros((2, 2))))
    with pytest.raises(ModelError, match="not finite"):
        gp.condition(WIDTHS, LabelledRows(np.full((2, 3), np.nan), np.zeros((2, 2))))
    with pytest.raises(ModelError, match="at least 0"):
        gp.condition(WIDTHS, LabelledRows(np.zeros((2, 3)), np.zeros((2, 2)), np.full((2, 2), -1.0)))
    assert gp.predict(gp.condition(WIDTHS, LabelledRows(np.zeros((0, 3)), np.zeros((0, 2)))), np.zeros((4, 3)))[
        1
    ].shape == (4, 2)
