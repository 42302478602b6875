"""Clusters: those of far-apart groups are found from every seed, also with missing coordinates and far from 0."""

import numpy as np
import pytest

from heliograph.numerics.k_means import k_means


def groups(rng, centres, n):
    """Points around centres, and the group of each."""
    which = rng.integers(0, len(centres), n)
    return centres[which] + rng.standard_normal((n, centres.shape[1])), which


def same_partition(a, b):
    """Whether two labellings put the same points together."""
    return len({*zip(a, b, strict=True)}) == len(set(a)) == len(set(b))


@pytest.mark.parametrize("shift", [0.0, 1e7])
def test_groups_twelve_sds_apart_are_found_from_every_seed(shift):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        points, which = groups(rng, 12.0 * np.arange(5.0)[:, None], 300)
        assert same_partition(k_means(rng, points + shift, 5), which)


def test_a_point_with_a_missing_coordinate_goes_by_the_others():
    rng = np.random.default_rng(3)
    points, which = groups(rng, np.array([[0.0, 0.0], [0.0, 20.0], [20.0, 0.0]]), 300)
    tells = np.where(which == 1, 0, 1)  # the coordinate that does not tell this group from the first
    gone = (rng.random(300) < 0.3) & (which > 0)
    points[gone, tells[gone]] = np.nan
    assert same_partition(k_means(rng, points, 3), which)


def test_no_other_partition_of_a_few_points_has_a_smaller_sum_of_squares():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        points = rng.standard_normal((7, 2))

        def squares(label, points=points):
            return sum(((p := points[label == j]) - p.mean(axis=0)).__pow__(2).sum() for j in set(label))

        every = np.array(np.meshgrid(*[[0, 1]] * 7)).reshape(7, -1).T
        least = min(squares(label) for label in every)
        assert squares(k_means(rng, points, 2, n_starts=20)) == pytest.approx(least)


def test_fewer_points_than_clusters_leave_some_empty():
    label = k_means(np.random.default_rng(0), np.array([[1.0], [1.0], [2.0]]), 4)
    assert label[0] == label[1] != label[2]
