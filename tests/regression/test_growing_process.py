"""A process that grows with its labels, against the dense formulas of a Gaussian process."""

import numpy as np
import pytest

from heliograph.errors import FileFormatError
from heliograph.regression.gaussian_process import Widths, condition
from heliograph.regression.growing_process import GrowingProcess, design
from heliograph.regression.labelled_rows import LabelledRows
from heliograph.regression.laid_out import LaidOut


def smooth(x):
    return np.stack([np.sin(x[:, 0]) + 0.3 * x[:, 1], np.cos(x[:, 0] * 0.7) * x[:, 1]], axis=1)


def grown(rng, n, noise=0.0, used=True):
    known = GrowingProcess(3, 2, start=20)
    if used:
        known.use()
    x = np.column_stack([rng.uniform(-2, 2, (n, 2)), np.full(n, 4.0)])  # the last column never varies
    y = smooth(x) + np.sqrt(noise) * rng.normal(size=(n, 2))
    for k in range(0, n, 7):
        part = slice(k, k + 7)
        known.append(x[part], y[part], np.full((len(y[part]), 2), noise))
    return known, x, y


def dense(known, at):
    """Mean and variance by solving with the whole covariance."""
    w = known.fitted.widths
    kept = np.isfinite(w.widths)

    def kernel(a, b):
        d = (a[:, None, kept] - b[None, :, kept]) / w.widths[kept]
        return np.exp(-0.5 * (d**2).sum(-1))

    mean, variance = np.empty((len(at), 2)), np.empty((len(at), 2))
    for q in range(2):
        own = 0.0 if known.fitted.labels.noise is None else known.noise[:, q] / w.signal[q]
        k = kernel(known.inputs, known.inputs) + np.diag(known.fitted.jitter + own + np.zeros(len(known)))
        c = kernel(at, known.inputs)
        mean[:, q] = c @ np.linalg.solve(k, known.targets[:, q])
        variance[:, q] = w.signal[q] * (1 - np.einsum("nd,dn->n", c, np.linalg.solve(k, c.T)))
    return mean, variance


@pytest.mark.parametrize("noise", [0.0, 1e-3])
def test_prediction_is_the_dense_one(noise):
    rng = np.random.default_rng(0)
    known, _, _ = grown(rng, 45, noise)
    at = np.column_stack([rng.uniform(-2, 2, (50, 2)), np.full(50, 4.0)])
    mean, variance, _ = known.predict(at)
    truth, spread = dense(known, at)
    assert np.allclose(mean, truth, atol=1e-6 * np.abs(truth).max())
    assert np.allclose(variance, spread, rtol=1e-3, atol=1e-9 * known.fitted.widths.signal.max())


def test_single_precision_is_used_only_where_it_does_no_harm():
    rng = np.random.default_rng(1)
    known, _, _ = grown(rng, 45, 1e-3)
    at = np.column_stack([rng.uniform(-2, 2, (1500, 2)), np.full(1500, 4.0)])
    full, variance, new = known.predict(at)
    finest = 1.01e-3 * known.fitted.widths.signal.max()
    mean, other, other_new = known.predict(at, None, finest)
    assert known.precision_for(None, finest) is np.float32
    assert np.abs(mean - full).max() ** 2 < finest
    assert np.abs(other - variance).max() < 2 * finest
    assert np.allclose(new, other_new, atol=1e-4)
    assert known.precision_for(None, 0.1 * finest) is np.float64
    again = known.predict(at, None, 0.1 * finest)
    assert np.array_equal(again.mean, full)


def test_rows_are_predicted_in_units_of_their_own_scale():
    rng = np.random.default_rng(2)
    known, x, _ = grown(rng, 40)
    at, s = x[:10] + 0.01, rng.uniform(0.1, 10, 10)
    a, b = known.predict(at), known.predict(at, s)
    assert np.allclose(b.mean, a.mean * s[:, None], rtol=1e-12)
    assert np.allclose(b.variance, a.variance * s[:, None] ** 2, rtol=1e-12)
    assert np.array_equal(b.new, a.new)


def test_widths_are_chosen_at_the_start_and_whenever_the_labels_have_doubled():
    rng = np.random.default_rng(3)
    known, _, _ = grown(rng, 90)
    assert known.n_refits == 3  # at 21, 42 and 84: labels came by sevens
    assert known.due == 168


def test_a_direction_that_nobody_uses_keeps_its_labels_and_makes_no_process():
    known, _, _ = grown(np.random.default_rng(4), 30, used=False)
    assert known.fitted is None and len(known) == 30
    known.use()
    assert known.fitted is not None


def test_how_new_a_row_is_depends_on_places_alone():
    known, x, _ = grown(np.random.default_rng(5), 40, noise=10.0)  # labels that say nothing
    assert known.predict(x)[2].max() < 1e-6
    far = x + np.array([50.0, 0.0, 0.0])
    assert known.predict(far)[2].min() > 0.99
    departed = x + np.array([0.0, 0.0, 1.0])  # a column that never moved before
    assert known.predict(departed)[2].min() == 1.0


def test_a_design_spreads_over_the_plate():
    rng = np.random.default_rng(6)
    x = np.concatenate([rng.normal(size=(200, 2)) * 0.05, rng.uniform(-3, 3, (20, 2))])
    chosen = design(x, np.zeros((0, 2)), 20)
    assert len(set(chosen)) == 20
    assert (chosen >= 200).sum() >= 12  # not the crowd in the middle


def test_state_comes_back_and_nonsense_is_refused():
    known, x, _ = grown(np.random.default_rng(7), 30)
    arrays = known.state()
    again = GrowingProcess.from_state(arrays, 20)
    for a, b in zip(known.predict(x), again.predict(x), strict=True):
        assert np.allclose(a, b, rtol=1e-9, atol=1e-12)
    for name, wrong in {
        "targets": arrays["targets"][:-1],
        "noise": -np.ones_like(arrays["noise"]),
        "widths": arrays["widths"][:-1],
        "signal": np.zeros_like(arrays["signal"]),
        "inputs": np.full_like(arrays["inputs"], np.nan),
    }.items():
        with pytest.raises(FileFormatError):
            GrowingProcess.from_state({**arrays, name: wrong}, 20)


@pytest.mark.parametrize("far", [1e3, 3e4, 1e5])
def test_labels_far_from_the_centre_are_seen_from_near_them_in_single_precision(far):
    x = np.array([[0.0, 0.0], [0.5, 0.0], [far, far], [far, far + 1.0]])
    y = np.array([[1.0], [2.0], [3.0], [-1.0]])
    process = condition(Widths(np.zeros(2), np.ones(2), np.ones(1), 1e-6), LabelledRows(x, y))
    at = np.array([[0.25, 0.0], [far, far + 0.5], [far + 1.0, far], [-far, far]])
    c, k = (np.exp(-0.5 * ((a[:, None] - x[None]) ** 2).sum(-1)) for a in (at, x))
    expected = c @ np.linalg.solve(k + 1e-6 * np.eye(4), y)
    mean, _, _ = LaidOut(process, np.float32).predict(at)
    np.testing.assert_allclose(mean, expected, atol=0.05)
