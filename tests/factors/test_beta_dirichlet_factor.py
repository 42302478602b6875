"""Probabilities with fixed parameters, and categories of unknown probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import betaln, gammaln, psi

from heliograph.factors import BetaFactor, CategoricalDirichlet, DirichletFactor
from heliograph.families import Beta, Categorical, Dirichlet


@pytest.mark.parametrize("power", [1.0, 0.5])
def test_a_beta_prior_and_its_evidence(power):
    incoming = {"a": 2.0, "b": 3.0, "p": Beta(4.0, 1.5)}
    sent = BetaFactor().message("p", incoming, power)
    np.testing.assert_allclose([sent.a, sent.b], [1 + power * 1.0, 1 + power * 2.0])
    expected = betaln(4 + power, 1.5 + 2 * power) - power * betaln(2, 3) - betaln(4, 1.5)
    np.testing.assert_allclose(BetaFactor().log_z(incoming, power), expected, rtol=1e-12)


def test_a_dirichlet_prior_and_its_evidence():
    a, b = np.array([2.0, 3.0, 0.5]), np.array([1.0, 4.0, 2.0])
    incoming = {"concentration": a, "p": Dirichlet(b)}
    np.testing.assert_allclose(DirichletFactor().message("p", incoming).concentration, a)
    log_b = lambda c: gammaln(c).sum() - gammaln(c.sum())  # noqa: E731
    np.testing.assert_allclose(DirichletFactor().log_z(incoming), log_b(a + b - 1) - log_b(a) - log_b(b), rtol=1e-11)


def test_a_known_category_counts_one():
    p = Dirichlet([2.0, 3.0, 0.5])
    incoming = {"p": p, "x": Categorical.point_mass(1, 3)}
    belief = CategoricalDirichlet().belief("p", incoming)
    np.testing.assert_allclose(belief.concentration, [2.0, 4.0, 0.5], rtol=1e-14)
    np.testing.assert_allclose(CategoricalDirichlet().log_z(incoming), np.log(3.0 / 5.5), rtol=1e-14)
    np.testing.assert_array_equal(
        CategoricalDirichlet().message("p", {"p": p, "x": np.array(1)}).naturals[0], [0.0, 1.0, 0.0]
    )


def test_a_category_is_told_the_mean_of_its_probabilities():
    incoming = {"p": Dirichlet([2.0, 3.0, 0.5]), "x": Categorical([0.2, 0.3, 0.5])}
    np.testing.assert_allclose(CategoricalDirichlet().message("x", incoming).p, np.array([2, 3, 0.5]) / 5.5, rtol=1e-14)
    z = np.log(np.array([0.2, 0.3, 0.5]) @ [2, 3, 0.5] / 5.5)
    np.testing.assert_allclose(CategoricalDirichlet().log_z(incoming), z, rtol=1e-13)
    known = {**incoming, "p": Dirichlet.point_mass([0.1, 0.9, 0.0])}
    np.testing.assert_allclose(CategoricalDirichlet().message("x", known).p, [0.1, 0.9, 0.0], rtol=1e-14)


def test_an_uncertain_category_matches_the_expected_logarithms():
    a, q = np.array([2.0, 3.0, 0.5]), np.array([0.2, 0.3, 0.5])
    belief = CategoricalDirichlet().belief("p", {"p": Dirichlet(a), "x": Categorical(q)})
    w = q * a / (q @ a)
    expected = sum(w[k] * (psi(a + np.eye(3)[k]) - psi(a.sum() + 1)) for k in range(3))
    np.testing.assert_allclose(belief.expected_statistics()[0], expected, rtol=1e-11)


def test_an_unknown_category_says_nothing():
    incoming = {"p": Dirichlet([2.0, 3.0, 0.5]), "x": Categorical.uniform((), 3)}
    assert CategoricalDirichlet().message("p", incoming).is_uniform
    nearly = {**incoming, "x": Categorical([1 / 3, 1 / 3 + 1e-7, 1 / 3 - 1e-7])}
    assert np.allclose(CategoricalDirichlet().message("p", nearly).naturals, 0.0, atol=1e-5)


def test_improper_probabilities_give_uniform_messages():
    wild = Dirichlet.from_naturals((np.array([-2.0, 0.0, 0.0]),))
    incoming = {"p": wild, "x": Categorical([0.2, 0.3, 0.5])}
    assert CategoricalDirichlet().message("p", incoming).is_uniform
    assert CategoricalDirichlet().message("x", incoming).is_uniform
