"""An entry of NaN is "no answer": it passes through the algebra as NaN and leaves its neighbours alone."""

from __future__ import annotations

import numpy as np
import pytest
from family_members import FAMILIES, draw

from heliograph.errors import ModelError
from heliograph.families import Bernoulli, Beta, Categorical, Dirichlet, Gamma, MultivariateGaussian

MIDDLE = np.array([False, True, False])


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.__name__)
def test_the_algebra_carries_a_row_of_nan_and_leaves_the_others_alone(family):
    rng = np.random.default_rng(0)
    a, b = draw(family, rng, (3,)), draw(family, rng, (3,))
    broken = a.without(MIDDLE)
    assert broken.proper.tolist() == [True, False, True]
    assert not broken.is_point.any() and not broken.is_uniform[1]
    for whole, part in ((a * b, broken * b), (a / b, broken / b), (b / a, b / broken), (a**0.5, broken**0.5)):
        for x, y in zip(whole.naturals, part.naturals, strict=True):
            np.testing.assert_array_equal(x[~MIDDLE], y[~MIDDLE])
            assert np.isnan(y[1]).all()
    assert np.isnan(broken.mean[1]).all()
    np.testing.assert_array_equal(broken.mean[~MIDDLE], a[~MIDDLE].mean)
    np.testing.assert_allclose(broken.log_normaliser()[~MIDDLE], a[~MIDDLE].log_normaliser())
    np.testing.assert_allclose(broken.kl(b)[~MIDDLE], a[~MIDDLE].kl(b[~MIDDLE]))
    assert "nan" in repr(broken[1])


def test_projections_raise_when_a_user_calls_them_and_give_nan_rows_when_a_factor_does():
    cases = [
        (lambda strict: Gamma.from_mean_and_log_gap([1.0, np.nan, 2.0], [0.5, 0.5, 0.1], strict=strict)),
        (lambda strict: Gamma.from_mean_and_log_gap([1.0, 2.0, 2.0], [0.5, -0.5, 0.1], strict=strict)),
        (lambda strict: Beta.from_mean_logit_and_gap([0.0, 0.0, 1.0], [0.2, np.nan, 0.1], strict=strict)),
        (
            lambda strict: Dirichlet.from_log_centre_and_gap(
                np.log([[0.5, 0.5], [0.5, 0.5], [0.2, 0.8]]), [0.1, -1.0, 0.2], strict=strict
            )
        ),
        (lambda strict: Bernoulli.from_log_odds([0.0, np.nan, 1.0], strict=strict)),
        (lambda strict: Categorical.from_log_p([[0.0, 1.0], [np.nan, 0.0], [0.0, 0.0]], strict=strict)),
    ]
    for make in cases:
        with pytest.raises(ModelError):
            make(True)
        made = make(False)
        assert made.proper.tolist() == [True, False, True]
        assert all(np.isnan(n[1]).all() and np.isfinite(n[[0, 2]]).all() for n in made.naturals)


def test_vectors_of_very_different_scales_are_whitened_without_losing_the_small_ones():
    # a general solver exchanges the rows of such a factor, and the second coordinate drowns in the first
    covariance = np.array([[9e-50, 8e-50], [8e-50, 2e20]])
    m = MultivariateGaussian(np.zeros((2, 2)), np.stack([covariance, np.eye(2)]))
    np.testing.assert_allclose(m.covariance[0], covariance, rtol=1e-12)
