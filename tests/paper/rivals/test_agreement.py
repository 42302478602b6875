"""The average of trees and their disagreement, against a search for the best average."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from heliograph.families import Beta, Gamma, Gaussian
from heliograph.families.coordinates import logs_of
from heliograph.paper.rivals.forest import Agreement, average_belief, disagreement


def make(kind, y):
    return Gaussian(y[..., 0], np.exp(y[..., 1])) if kind is Gaussian else kind(*np.exp(np.moveaxis(y, -1, 0)))


@pytest.mark.parametrize("kind", [Gaussian, Beta, Gamma])
def test_no_member_is_nearer_to_the_trees_than_their_average(kind):
    y = np.random.default_rng(0).normal(0.5, 0.4, (7, 1, 2))
    beliefs = make(kind, y)
    best = minimize(lambda p: beliefs.kl(make(kind, p.reshape(1, 1, 2))).mean(), y.mean(axis=0)[0], tol=1e-10)
    assert disagreement(beliefs)[0] == pytest.approx(best.fun, rel=1e-7)
    found = make(kind, best.x.reshape(1, 2))
    assert found.kl(average_belief(beliefs))[0] < 1e-9  # the minimiser is found to about 1e-5


@pytest.mark.parametrize("kind", [Gaussian, Beta, Gamma])
def test_trees_in_logarithms_are_combined_as_beliefs(kind):
    y = np.random.default_rng(1).normal(0.5, 0.4, (7, 5, 2))
    agreement = Agreement(logs_of(kind))
    beliefs = make(kind, y)
    np.testing.assert_allclose(make(kind, agreement.combine(y)).kl(average_belief(beliefs)), 0, atol=1e-12)
    np.testing.assert_allclose(agreement.disagreement(y), disagreement(beliefs), rtol=1e-12)


def test_trees_that_all_say_the_same_agree():
    y = np.tile(np.random.default_rng(1).normal(size=(1, 5, 2)), (7, 1, 1))
    agreement = Agreement(logs_of(Gaussian))
    np.testing.assert_allclose(agreement.combine(y), y[0], atol=1e-12)
    np.testing.assert_allclose(agreement.disagreement(y), 0, atol=1e-12)


def test_a_tree_without_a_belief_puts_its_row_in_doubt_and_no_other():
    y = np.zeros((3, 4, 2))
    y[1, 2, 1] = 1e4  # log variance
    agreement = Agreement(logs_of(Gaussian))
    assert np.isinf(agreement.disagreement(y)).tolist() == [False, False, True, False]
    np.testing.assert_allclose(agreement.combine(y)[[0, 1, 3]], 0, atol=1e-12)
