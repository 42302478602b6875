"""Two unknowns of one vector may be given in any units: what is joint is no wider, narrower or further off for it."""

import warnings

import numpy as np
import pytest

import heliograph as hg
from heliograph.engine.blocks.plate import vector_beliefs
from heliograph.engine.properness import apply_policy
from heliograph.families import MultivariateGaussian

X = np.linspace(0.0, 3.0, 12)
Y = 2.0 * np.exp(-0.7 * X) + 0.1 * np.sin(17.0 * X)


@hg.factor(output=hg.Gaussian)
def decay(a, b, x):
    return a * np.exp(-b * x)


def _through_a_box(m, a, b, unit):
    m.gaussian("y", decay(a, b, X), sd=0.1 * unit, observed=unit * Y)


def _product(m, a, b, unit):
    m.gaussian("y", (a * (1.0 + X)) * b, sd=0.3 * unit, observed=unit * 2.5 * (1.0 + X) + unit * Y)


def _maximum(m, a, b, unit):
    m.gaussian("y", m.maximum(a * (1.0 + X), 2.0 * unit * b), sd=0.3 * unit, observed=unit * 2.0 * (1.0 + X))


@pytest.mark.parametrize("unit", [1e-9, 1e-4, 1e5, 1e9])
@pytest.mark.parametrize("say", [_through_a_box, _product, _maximum])
def test_one_of_two_unknowns_in_another_unit_gives_the_same_answer(say, unit):
    def answer(unit):
        m = hg.Model()
        a, b = m.gaussian("a", unit, sd=unit), m.gaussian("b", 0.5, sd=0.5)
        say(m, a, b, unit)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", hg.AccuracyWarning)  # of posteriors that bend, in any unit
            posterior = m.infer()
        assert posterior.converged
        evidence = posterior.log_evidence + len(Y) * np.log(unit)
        return np.array(
            [posterior[a].mean / unit, posterior[a].sd / unit, posterior[b].mean, posterior[b].sd, evidence]
        )

    # what is known of a to 1e-9 of it is lost to rounding in a box, whose cells have edges: 1e-4 of an evidence
    assert answer(unit) == pytest.approx(answer(1.0), rel=1e-6, abs=1e-4)


def test_vectors_whose_variances_differ_by_far_are_left_as_they_are_and_singular_ones_are_not():
    unit = np.array([1e6, 1.0, 1e-5])
    good = np.array([[1.0, 0.3, 0.2], [0.3, 1.0, -0.4], [0.2, -0.4, 1.0]])
    flat = np.ones((3, 3))
    covariance = np.stack([good, flat]) * unit[:, None] * unit
    belief = vector_beliefs(np.zeros((2, 3)), covariance)
    assert belief.covariance[0] / unit[:, None] / unit == pytest.approx(good, rel=1e-9)
    assert belief.proper.all()
    assert belief.variance[1] == pytest.approx(unit**2, rel=1e-7)


def test_the_nearest_message_that_is_a_distribution_is_the_same_in_all_units():
    def kept(unit):
        scale = np.diag(1.0 / unit)
        cavity = MultivariateGaussian.from_naturals((scale @ [1.0, 2.0], scale @ np.diag([2.0, 3.0]) @ scale))
        new = MultivariateGaussian.from_naturals((scale @ [0.5, 0.1], scale @ [[1.0, 1.2], [1.2, 0.4]] @ scale))
        old = MultivariateGaussian.uniform((1,), 2)
        sent = apply_policy(new.reshape((1,)), old, cavity.reshape((1,)), "keep mean").message
        return unit[:, None] * sent.naturals[1][0] * unit

    assert kept(np.array([1e5, 1e-3])) == pytest.approx(kept(np.ones(2)), rel=1e-9)
