"""Hard equality of any family, and soft evidence."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import betaln, gammaln
from scipy.stats import multivariate_normal, norm

from heliograph.errors import ContradictionError
from heliograph.factors import Equal, SoftEvidence
from heliograph.families import Bernoulli, Beta, Categorical, Dirichlet, Gamma, Gaussian, MultivariateGaussian

PAIRS = [
    (Gaussian(0.0, 1.0), Gaussian(1.0, 2.0), norm.logpdf(1.0, 0.0, np.sqrt(3.0))),
    (
        MultivariateGaussian([0.0, 1.0], np.eye(2)),
        MultivariateGaussian([1.0, 1.0], np.diag([2.0, 3.0])),
        multivariate_normal.logpdf([1.0, 1.0], [0.0, 1.0], np.diag([3.0, 4.0])),
    ),
    (
        Gamma(2.0, 3.0),
        Gamma(4.0, 1.0),
        gammaln(5) - 5 * np.log(4) - (gammaln(2) - 2 * np.log(3)) - (gammaln(4) - 0.0),
    ),
    (Beta(2.0, 3.0), Beta(1.5, 1.0), betaln(2.5, 3.0) - betaln(2, 3) - betaln(1.5, 1.0)),
    (Bernoulli(0.3), Bernoulli(0.6), np.log(0.3 * 0.6 + 0.7 * 0.4)),
    (Categorical([0.2, 0.3, 0.5]), Categorical([0.1, 0.1, 0.8]), np.log(0.02 + 0.03 + 0.4)),
    (Dirichlet([1.0, 2.0]), Dirichlet([2.0, 2.0]), betaln(2.0, 3.0) - betaln(1, 2) - betaln(2, 2)),
]
IDS = [type(a).__name__ for a, _, _ in PAIRS]


@pytest.mark.parametrize("a,b,log_z", PAIRS, ids=IDS)
def test_each_end_gets_what_the_other_says(a, b, log_z):
    f = Equal()
    assert f.message("a", {"a": a, "b": b}) is b
    assert f.message("b", {"a": a, "b": b}) is a
    product = a * b
    for x, y in zip(f.belief("a", {"a": a, "b": b}).naturals, product.naturals, strict=True):
        np.testing.assert_array_equal(x, y)
    np.testing.assert_allclose(f.log_z({"a": a, "b": b}), log_z, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("a,b,log_z", PAIRS, ids=IDS)
def test_soft_evidence_is_one_fixed_message(a, b, log_z):
    f = SoftEvidence(b)
    assert f.message("x", {"x": a}) is b
    np.testing.assert_allclose(f.log_z({"x": a}), log_z, rtol=1e-11, atol=1e-13)


def test_data_at_one_end_is_a_point_mass_of_the_other_ends_family():
    assert Equal().message("a", {"a": Gaussian(0.0, 1.0), "b": np.array(2.0)}).point == 2.0
    assert Equal().message("a", {"a": Categorical([0.5, 0.5]), "b": np.array(1)}).point == 1
    np.testing.assert_allclose(Equal().log_z({"a": Gaussian(0.0, 1.0), "b": np.array(2.0)}), norm.logpdf(2.0))


def test_two_point_masses_that_disagree_have_no_belief():
    incoming = {"a": Gaussian.point_mass(1.0), "b": Gaussian.point_mass(2.0)}
    assert Equal().log_z(incoming) == -np.inf
    with pytest.raises(ContradictionError):
        Equal().belief("a", incoming)


def test_a_distant_overlap_keeps_its_digits():
    incoming = {"a": Gaussian(1e6, 1e-4), "b": Gaussian(1e6 + 1e-2, 1e-4)}
    expected = norm.logpdf(1e-2, 0.0, np.sqrt(2e-4))
    # the means themselves are stored to 1e-10, so a hundredth of the deviation to 1e-8
    np.testing.assert_allclose(Equal().log_z(incoming), expected, rtol=1e-7)
