"""Counts that were not seen say nothing: the model is the one without them."""

import numpy as np

import heliograph as hg


def posterior(counts, entries):
    model = hg.Model()
    rate = model.gamma("rate", 2.0, 1.0, size=4)
    model.poisson("k", rate[entries], observed=counts)
    return model.infer(progress=False)[rate]


def test_a_missing_count_leaves_its_rate_at_the_prior():
    found = posterior(np.array([3.0, np.nan, 0.0, np.nan]), np.arange(4))
    # Gamma(2, 1) and a Poisson count: one more in the rate for each count seen
    np.testing.assert_allclose(found.shape_parameter, [5.0, 2.0, 2.0, 2.0])
    np.testing.assert_allclose(found.rate, [2.0, 1.0, 2.0, 1.0])


def test_counts_missing_among_repeated_entries_are_left_out_where_they_stand():
    with_gaps = posterior(np.array([3.0, np.nan, 5.0]), np.array([2, 0, 2]))
    without = posterior(np.array([3.0, 5.0]), np.array([2, 2]))
    np.testing.assert_allclose(with_gaps.shape_parameter, without.shape_parameter)
    np.testing.assert_allclose(with_gaps.rate, without.rate)
