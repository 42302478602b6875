"""The median heuristic against the appendix written out, and the cases it must survive."""

import numpy as np
import pytest

from heliograph.families import Beta, Gamma, Gaussian
from heliograph.kernels import (
    JointGaussian,
    embed,
    heuristic,
    joint_grid,
    mean_variances,
    median_distance2,
    median_heuristic,
)
from heliograph.kernels.widths import median_gaps2


def tuples(n=30):
    rng = np.random.default_rng(0)
    return [Gaussian(rng.normal(size=n) * 3, rng.gamma(3, 1 / 4, n)), Beta(rng.uniform(1, 4, n), rng.uniform(1, 4, n))]


def test_the_median_heuristic_is_the_appendix_written_out():
    messages = tuples()
    width2 = np.array([m.variance.mean() for m in messages])
    distances = []
    for i in range(30):
        for j in range(30):
            product = {}
            for a, b in ((i, i), (j, j), (i, j)):
                total = [width2[k] + m.variance[a] + m.variance[b] for k, m in enumerate(messages)]
                gaps = [m.mean[a] - m.mean[b] for m in messages]
                terms = [np.sqrt(w / t) * np.exp(-0.5 * g * g / t) for w, t, g in zip(width2, total, gaps, strict=True)]
                product[a, b] = np.prod(terms)
            distances.append(product[i, i] + product[j, j] - 2 * product[i, j])
    kernel = median_heuristic(messages)
    np.testing.assert_allclose(kernel.width2, width2)
    assert kernel.gamma2 == pytest.approx(np.median(distances), rel=1e-10)
    assert median_heuristic(messages, factor=0.5).gamma2 == pytest.approx(0.5 * kernel.gamma2)


def test_widths_on_the_chart_are_free_of_the_messages_units():
    rng = np.random.default_rng(0)
    shape, rate = rng.uniform(1, 50, 40), np.exp(rng.uniform(-4, 11, 40))
    a, b = (median_heuristic([Gamma(shape, rate * unit)], axis="chart") for unit in (1.0, 1e6))
    assert a.width2 == pytest.approx(b.width2)
    assert a.gamma2 == pytest.approx(b.gamma2, rel=1e-9)


def test_equal_tuples_point_masses_and_uniform_messages_leave_usable_widths():
    same = [Gaussian(np.ones(5), 2.0)]
    assert median_heuristic(same) == JointGaussian((2.0,), 1.0)
    points = [np.array([1.0, 2.0, 3.0]), np.full(3, 4.0)]
    np.testing.assert_allclose(mean_variances(points), [2 / 3, 1.0])
    some = [Gaussian([0.0, 1.0, 5.0], precision=[0.0, 0.5, 0.25])]
    np.testing.assert_allclose(mean_variances(some), [3.0])
    assert np.isfinite(median_heuristic(some).gram(some)).all()
    np.testing.assert_allclose(mean_variances([Gaussian.uniform((4,))]), [1.0])


def test_a_long_plate_gives_nearly_the_widths_of_all_its_pairs():
    rng = np.random.default_rng(0)
    long = [Gaussian(rng.normal(size=2500) * 3, rng.gamma(3, 1 / 4, 2500))]
    width2 = mean_variances(long)
    rows = embed(long)
    gram = JointGaussian(tuple(width2), 1.0).gram(rows)
    assert median_distance2(rows, width2) == pytest.approx(np.median(-2 * np.log(gram)), rel=0.05)


def test_median_gaps_ignore_equal_pairs_where_these_are_most():
    column = np.array([0.0] * 8 + [1.0, 3.0])
    assert median_gaps2(column[:, None])[0] == pytest.approx(np.median([1.0] * 16 + [9.0] * 16 + [4.0] * 2))
    assert median_gaps2(np.ones((4, 1)))[0] == 1.0


def test_the_grid_holds_the_heuristic_itself():
    messages = tuples()
    kernels = joint_grid(messages, inner=(0.1, 1.0), outer=(1.0, 4.0))
    assert len(kernels) == 4
    assert median_heuristic(messages) in kernels
    assert heuristic("joint_gaussian", messages) in kernels
