"""A process on landmarks, against dense solves and against the exact process."""

import numpy as np
import pytest

from heliograph.regression import gaussian_process as exact
from heliograph.regression import landmarks as sparse
from heliograph.regression.gaussian_process import choose, predict
from heliograph.regression.labelled_rows import LabelledRows
from heliograph.regression.landmark_choice import choose_landmarks
from heliograph.regression.landmarks import append, condition, leave_one_out
from heliograph.regression.squared_exponential import Widths


def world(n, noise, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, (n, 2))
    own = noise * rng.uniform(0.5, 2.0, (n, 2)) if noise else None
    y = np.stack([np.sin(2 * x[:, 0]) * x[:, 1], np.cos(x[:, 0] + x[:, 1])], axis=1)
    if own is not None:
        y = y + np.sqrt(own) * rng.normal(size=y.shape)
    return x, y, own, rng.uniform(-2, 2, (40, 2))


WIDTHS = Widths(np.array([0.1, -0.2]), np.array([0.9, 1.3]), np.array([1.5, 0.7]), 1e-5)


def kernel(a, b):
    return np.exp(-0.5 * (((a[:, None] - b[None]) / WIDTHS.widths) ** 2).sum(-1))


def dense(z, x, y, own, at):
    """FITC by inverting the whole covariance of the labels, written down from its definition."""
    mean, variance = np.empty((len(at), 2)), np.empty((len(at), 2))
    inner = np.linalg.inv(kernel(z, z))
    q_xx, q_ax = kernel(x, z) @ inner @ kernel(z, x), kernel(at, z) @ inner @ kernel(z, x)
    for f in range(2):
        noise = WIDTHS.noise + (0.0 if own is None else own[:, f] / WIDTHS.signal[f]) + 1 - np.diag(q_xx)
        whole = np.linalg.inv(q_xx + np.diag(noise - np.diag(q_xx) + np.diag(q_xx)))
        mean[:, f] = q_ax @ whole @ y[:, f]
        variance[:, f] = WIDTHS.signal[f] * (1 - np.einsum("an,nm,am->a", q_ax, whole, q_ax))
    return mean, variance


@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_it_is_fitc_by_its_definition(noise):
    x, y, own, at = world(150, noise)
    known = condition(WIDTHS, LabelledRows(x, y, own), limit=25, profile=False)
    assert len(known) == 25
    truth, spread = dense(known.inputs, x, y, own, at)
    mean, variance = predict(known, at)  # type: ignore[arg-type]
    # the dense reference inverts a matrix of condition 1e7
    np.testing.assert_allclose(mean, truth, atol=1e-7)
    np.testing.assert_allclose(variance, spread, atol=1e-8)


@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_with_every_label_a_landmark_it_is_the_exact_process(noise):
    x, y, own, at = world(60, noise)
    known = condition(WIDTHS, LabelledRows(x, y, own), limit=60, least=1e-10)
    whole = exact.condition(WIDTHS, LabelledRows(x, y, own))
    mean, variance = predict(known, at)  # type: ignore[arg-type]
    truth, spread = predict(whole, at)
    # a row of which less than 1e-10 is left adds that to a noise of 1e-5, and targets are of size one
    np.testing.assert_allclose(mean, truth, atol=1e-4)
    np.testing.assert_allclose(variance, spread, atol=1e-6)
    if not noise:
        np.testing.assert_allclose(known.widths.signal, whole.widths.signal, rtol=1e-4)


@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_labels_one_after_the_other_are_labels_at_once(noise):
    x, y, own, at = world(160, noise)
    at_once = condition(WIDTHS, LabelledRows(x, y, own), limit=30, profile=False)
    chosen = choose_landmarks(at_once.widths, x, 30)
    order = np.concatenate([chosen, np.setdiff1d(np.arange(160), chosen)])
    x, y, own = x[order], y[order], None if own is None else own[order]
    grown = condition(WIDTHS, LabelledRows(x[:30], y[:30], None if own is None else own[:30]), limit=30, profile=False)
    for k in range(30, 160, 13):
        part = slice(k, k + 13)
        grown = append(grown, LabelledRows(x, y, own).at(part), limit=30, profile=False)
    assert len(grown) == len(at_once)
    a, b = predict(grown, at), predict(at_once, at)  # type: ignore[arg-type]
    np.testing.assert_allclose(a[0], b[0], atol=1e-8)  # the same landmarks in another order
    np.testing.assert_allclose(a[1], b[1], atol=1e-9)
    for r, s in zip(
        leave_one_out(grown), leave_one_out(condition(WIDTHS, LabelledRows(x, y, own), 30, False)), strict=True
    ):
        np.testing.assert_allclose(r, s, atol=1e-7)


@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_rows_become_landmarks_where_the_others_say_little(noise):
    x, y, own, at = world(200, noise)
    left = x[:, 0] < 0
    first, second = np.flatnonzero(left), np.flatnonzero(~left)
    pick = lambda rows: (x[rows], y[rows], None if own is None else own[rows])  # noqa: E731
    known = condition(WIDTHS, LabelledRows(*pick(first)), limit=40, profile=False)
    n_first = len(known)
    for k in range(0, len(second), 10):
        known = append(known, LabelledRows(*pick(second[k : k + 10])), limit=60, profile=False)
    assert len(known) > n_first
    # what settles later is what the definition says, with the noise each label was given when it came
    z, order = known.inputs, np.concatenate([first, second])
    inner = np.linalg.inv(kernel(z, z))
    features, crossed = kernel(x[order], z), kernel(at, z)
    for f in range(2):
        extra = WIDTHS.noise + known.left + (0.0 if own is None else own[order, f] / WIDTHS.signal[f])
        whole = np.linalg.inv(features @ inner @ features.T + np.diag(extra))
        mean, variance = predict(known, at)  # type: ignore[arg-type]
        q = crossed @ inner @ features.T
        np.testing.assert_allclose(mean[:, f], q @ whole @ y[order, f], atol=1e-5)
        spread = WIDTHS.signal[f] * (1 - np.einsum("an,nm,am->a", q, whole, q))
        np.testing.assert_allclose(variance[:, f], spread, atol=1e-6)


def test_leave_one_out_is_prediction_from_the_others():
    x, y, own, _ = world(80, 0.02)
    known = condition(WIDTHS, LabelledRows(x, y, own), limit=20, profile=False)
    residual, variance = leave_one_out(known)
    for i in (0, 7, 33):
        if (x[i] == known.inputs).all(axis=1).any():
            continue  # without it there would be other landmarks
        rest = np.arange(80) != i
        mean, spread = dense(known.inputs, x[rest], y[rest], own[rest], x[i : i + 1])
        np.testing.assert_allclose(residual[i], y[i] - mean[0], atol=1e-8)
        np.testing.assert_allclose(variance[i], spread[0] + own[i] + WIDTHS.noise * WIDTHS.signal, atol=1e-8)


def test_what_no_landmark_explains_is_not_claimed_to_be_known():
    x, y, own, _ = world(300, 0.0)
    far = np.array([[30.0, 0.0], [0.0, -40.0]])
    known = condition(WIDTHS, LabelledRows(x, y, own), limit=10)
    _, variance = predict(known, far)  # type: ignore[arg-type]
    np.testing.assert_allclose(variance, np.broadcast_to(known.widths.signal, (2, 2)))
    _, inside = predict(known, x)  # type: ignore[arg-type]
    ratio = (predict(known, x)[0] - y) ** 2 / inside  # type: ignore[arg-type]
    assert 0.2 < ratio.mean() < 2  # ten landmarks are far too few, and it knows


def test_choosing_rows_works_as_for_the_exact_process():
    x, y, _, at = world(60, 0.0)
    known, whole = (
        condition(WIDTHS, LabelledRows(x[:30], y[:30]), limit=30),
        exact.condition(WIDTHS, LabelledRows(x[:30], y[:30])),
    )
    a = choose(known, at, limit=5)  # type: ignore[arg-type]
    assert list(a) == list(choose(whole, at, limit=5))


def test_a_column_that_was_constant_may_begin_to_vary():
    x, y, _, _ = world(60, 0.0)
    widths = WIDTHS._replace(widths=np.array([0.9, np.inf]), centre=np.array([0.0, 1.0]))
    flat = np.column_stack([x[:, 0], np.ones(60)])
    known = condition(widths, LabelledRows(flat[:40], y[:40]), limit=20)
    known = append(known, LabelledRows(x[40:], y[40:]), limit=20)
    assert np.isfinite(known.widths.widths).all()
    assert len(known.labels.inputs) == 60


def test_many_equal_rows_need_one_landmark():
    x = np.repeat([[0.3, 0.4]], 500, axis=0)
    rng = np.random.default_rng(3)
    y = 1.0 + 0.1 * rng.normal(size=(500, 2))
    known = condition(WIDTHS, LabelledRows(x, y, np.full((500, 2), 0.01)), limit=100)
    assert len(known) == 1
    mean, variance = predict(known, x[:1])  # type: ignore[arg-type]
    # the mean of 500 labels, drawn to 0 by less than a hundredth of a standard error
    np.testing.assert_allclose(mean[0], y.mean(axis=0), atol=1e-3)
    np.testing.assert_allclose(variance[0], 0.01 / 500, rtol=1e-2)


def test_the_number_of_labels_does_not_enter_the_price_of_a_prediction():
    x, y, own, _ = world(3000, 0.02)
    small, large = (condition(WIDTHS, LabelledRows(x[:n], y[:n], own[:n]), limit=30) for n in (300, 3000))
    assert small.inverse_lower.shape == large.inverse_lower.shape == (2, 30, 30)
    assert sparse.worth(WIDTHS, own) > sparse.worth(WIDTHS, None)
