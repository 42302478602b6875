"""Targets: numbers and back again, for every family, and nothing that is no belief passes for one."""

from __future__ import annotations

import numpy as np
import pytest

from heliograph.families import Bernoulli, Beta, Categorical, Dirichlet, Gamma, Gaussian, MultivariateGaussian
from heliograph.operators.kjit.targets import OutgoingRate, target_named


def vectors(rng, n, d):
    root = rng.normal(size=(n, d, d))
    return MultivariateGaussian(rng.normal(size=(n, d)), root @ np.swapaxes(root, 1, 2) + 0.3 * np.eye(d))


def members(n=40):
    rng = np.random.default_rng(0)
    u = lambda low, high: np.exp(rng.uniform(low, high, n))  # noqa: E731
    return {
        "Gaussian": (Gaussian(rng.normal(0, 5, n), u(-5, 5)), Gaussian(rng.normal(size=n), u(-2, 2))),
        "Beta": (Beta(u(-2, 5), u(-2, 5)), Beta(u(-1, 1), u(-1, 1))),
        "Gamma": (Gamma(u(-2, 5), u(-6, 6)), Gamma(u(-1, 1), u(-1, 1))),
        "Bernoulli": (Bernoulli(rng.uniform(0.01, 0.99, n)), Bernoulli(rng.uniform(0.1, 0.9, n))),
        "Categorical": (Categorical(rng.dirichlet(np.ones(4), n)), Categorical(rng.dirichlet(np.ones(4), n))),
        "Dirichlet": (Dirichlet(np.exp(rng.uniform(-1, 3, (n, 3)))), Dirichlet(np.exp(rng.uniform(-1, 1, (n, 3))))),
        "MultivariateGaussian": (vectors(rng, n, 3), vectors(rng, n, 3)),
    }


TARGETS = {name: target_named(name) for name in ("statistics", "log", "message")}


@pytest.mark.parametrize("family", members())
@pytest.mark.parametrize("target", TARGETS)
def test_the_message_comes_back_from_the_numbers_of_its_belief(target, family):
    belief, cavity = members()[family]
    y, learnable = TARGETS[target].forward(belief, cavity)
    message, valid = TARGETS[target].inverse(y, cavity)
    assert learnable.all() and valid.all()
    assert np.isfinite(y).all()
    # compared as beliefs: statistics hold fewer digits of a narrow belief than its parameters do
    assert np.max((message * cavity).kl(belief)) < 1e-12


@pytest.mark.parametrize("family", members())
@pytest.mark.parametrize("target", TARGETS)
def test_whatever_numbers_are_predicted_a_valid_row_is_a_belief_and_nothing_raises(target, family):
    _, cavity = members()[family]
    rng = np.random.default_rng(1)
    q = TARGETS[target].forward(cavity, cavity.as_uniform())[0].shape[1]
    y = rng.normal(size=(len(cavity), q)) * 10 ** rng.uniform(-2, 4, (len(cavity), 1))
    y[0], y[1], y[2], y[3] = np.nan, np.inf, -np.inf, 1e300
    message, valid = TARGETS[target].inverse(y, cavity)
    assert not valid[:3].any()
    assert (message[valid] * cavity[valid]).proper.all()
    for a in message.naturals:
        assert np.isfinite(a[3:]).all()


def test_a_second_moment_below_the_squared_mean_is_no_gaussian():
    message, valid = target_named("statistics").inverse(np.array([[2.0, 3.9], [2.0, 4.1]]), Gaussian([0.0, 0.0], 10.0))
    assert valid.tolist() == [False, True]
    assert message[:1].is_uniform.all()


def test_beta_statistics_that_exceed_a_distribution_are_no_beta():
    # exp(E log p) + exp(E log(1 - p)) < 1 for every Beta
    y = np.log(np.array([[0.5, 0.6], [0.4, 0.5]]))
    _, valid = target_named("statistics").inverse(y, Beta([1.0, 1.0], 1.0))
    assert valid.tolist() == [False, True]


def test_the_text_and_the_programs_coordinates_are_those_of_the_paper():
    g = Gaussian([2.0], 3.0)
    np.testing.assert_allclose(target_named("statistics").forward(g, g)[0], [[2.0, 7.0]])
    np.testing.assert_allclose(target_named("log").forward(g, g)[0], [[2.0, np.log(3.0)]])
    b = Beta([2.0], 5.0)
    np.testing.assert_allclose(target_named("log").forward(b, b)[0], np.log([[2.0, 5.0]]))
    t = Gamma([2.0], 5.0)
    np.testing.assert_allclose(target_named("log").forward(t, t)[0], np.log([[2.0, 5.0]]))


def test_points_and_improper_beliefs_are_not_learned():
    belief = Gaussian.from_naturals((np.array([0.0, 1.0, 0.0]), np.array([0.0, -1.0, 1.0])), None)
    point = Gaussian.point_mass(np.array([3.0, np.nan, np.nan]))
    for target in TARGETS.values():
        _, learnable = target.forward(belief * point, Gaussian(np.zeros(3), 1.0))
        assert learnable.tolist() == [False, False, True]


def test_a_rate_alone_keeps_the_beliefs_mean_and_the_cavitys_shape():
    cavity, belief = Gamma([30.0, 30.0, 3.0], [2.0, 2.0, 5.0]), Gamma([29.0, 40.0, 2.5], [2.0, 2.0, 5.0])
    y, learnable = OutgoingRate().forward(belief, cavity)
    assert learnable.tolist() == [True, False, True]  # a mean above the cavity's needs a negative rate
    message, valid = OutgoingRate().inverse(y, cavity)
    assert valid.tolist() == [True, False, True]
    product = message * cavity
    np.testing.assert_allclose(product.mean[valid], belief.mean[valid])
    np.testing.assert_allclose(product.shape_parameter, cavity.shape_parameter)
    with pytest.raises(TypeError, match="for Gamma messages, not Gaussian"):
        OutgoingRate().forward(Gaussian([0.0], 1.0), Gaussian([0.0], 1.0))


def test_targets_are_found_by_name():
    assert [target_named(n).name for n in ("statistics", "log", "message")] == ["statistics", "log", "message"]
    with pytest.raises(ValueError, match="there is no target 'belief'"):
        target_named("belief")
