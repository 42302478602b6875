"""The nearest labels, against the exact process on just those."""

import numpy as np
import pytest

from heliograph.regression.gaussian_process import condition, predict
from heliograph.regression.labelled_rows import LabelledRows
from heliograph.regression.neighbours import Neighbours
from heliograph.regression.squared_exponential import Widths

WIDTHS = Widths(np.array([0.1, -0.2, 3.0]), np.array([0.7, 1.3, np.inf]), np.array([1.5, 0.7]), 1e-5)


def world(n, noise):
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.uniform(-2, 2, (n, 2)), np.full(n, 3.0)])  # the last column never varies
    y = np.stack([np.sin(2 * x[:, 0]) * x[:, 1], np.cos(x[:, 0] + x[:, 1])], axis=1)
    own = noise * rng.uniform(0.5, 2.0, (n, 2)) if noise else None
    return x, y, own, np.column_stack([rng.uniform(-2, 2, (70, 2)), np.full(70, 3.0)])


@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_it_is_the_exact_process_on_the_nearest_labels(noise):
    x, y, own, at = world(200, noise)
    mean, variance, new = Neighbours(WIDTHS, LabelledRows(x, y, own), n_near=12).predict(at)
    for i in range(0, 70, 7):
        d2 = (((x - at[i])[:, :2] / WIDTHS.widths[:2]) ** 2).sum(axis=1)
        near = np.argsort(d2)[:12]
        process = condition(WIDTHS, LabelledRows(x, y, own).at(near), profile=False)
        truth, spread = predict(process, at[i : i + 1])
        # a condition of 1e5 and targets of size one
        np.testing.assert_allclose(mean[i], truth[0], atol=1e-8)
        np.testing.assert_allclose(variance[i], spread[0], atol=1e-8)
        assert new[i] == pytest.approx(1 - np.exp(-d2[near[0]]))


def test_with_all_labels_near_it_is_the_exact_process_and_never_claims_more():
    x, y, own, at = world(100, 0.02)
    whole = condition(WIDTHS, LabelledRows(x, y, own), profile=False)
    truth, spread = predict(whole, at)
    mean, variance, _ = Neighbours(WIDTHS, LabelledRows(x, y, own), n_near=500).predict(at)
    np.testing.assert_allclose(mean, truth, atol=1e-8)
    np.testing.assert_allclose(variance, spread, atol=1e-8)
    assert (Neighbours(WIDTHS, LabelledRows(x, y, own), n_near=9).predict(at)[1] > spread - 1e-9).all()


def test_nothing_is_known_of_a_row_whose_constant_column_moved_or_without_labels():
    x, y, own, at = world(50, 0.0)
    moved = at + np.array([0.0, 0.0, 1.0])
    mean, variance, new = Neighbours(WIDTHS, LabelledRows(x, y, own)).predict(moved)
    assert (mean == 0).all() and (variance == WIDTHS.signal).all() and (new == 1).all()
    _, variance, new = Neighbours(WIDTHS, LabelledRows(x[:0], y[:0])).predict(at)
    assert (variance == WIDTHS.signal).all() and (new == 1).all()


def test_labels_at_one_place_do_no_harm():
    x, y, _, _ = world(40, 0.0)
    twice = np.repeat(x[:4], 30, axis=0)
    mean, variance, new = Neighbours(WIDTHS, LabelledRows(twice, np.repeat(y[:4], 30, axis=0)), n_near=64).predict(
        x[:4]
    )
    np.testing.assert_allclose(mean, y[:4], atol=1e-4)  # thirty labels with a noise of 1e-5 in variance each
    assert (variance > 0).all() and (variance < 1e-5).all() and np.allclose(new, 0.0)
