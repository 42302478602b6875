"""Every wrong model is refused before any sweep, in one sentence that names the thing and the remedy."""

import numpy as np
import pytest
import scipy.sparse

import heliograph as hg
from heliograph.errors import HeliographError


def _model():
    m = hg.Model()
    m.z = m.gaussian("z", 0.0, variance=1.0, size=3)
    m.g = m.gamma("g", 2.0, 1.0)
    m.p = m.beta("p", 1.0, 1.0)
    m.w = m.gaussian("w", np.zeros(2), covariance=np.eye(2))
    return m


# (what the user writes, words that the sentence must hold)
BAD = {
    "variance that is negative": (lambda m: m.gaussian("x", 0.0, variance=-1.0), ["'x'", "variance", "-1"]),
    "variance that is zero": (lambda m: m.gaussian("x", 0.0, variance=0.0), ["'x'", "variance", "greater than 0"]),
    "precision that is negative": (lambda m: m.gaussian("x", 0.0, precision=-2.0), ["'x'", "precision"]),
    "no spread at all": (lambda m: m.gaussian("x", 0.0), ["'x'", "exactly one", "variance="]),
    "two spreads": (lambda m: m.gaussian("x", 0.0, variance=1.0, precision=1.0), ["'x'", "exactly one"]),
    "mean that is NaN": (lambda m: m.gaussian("x", np.nan, variance=1.0), ["'x'", "NaN", "observed="]),
    "mean that is infinite": (lambda m: m.gaussian("x", np.inf, variance=1.0), ["'x'", "infinite"]),
    "mean that is a word": (lambda m: m.gaussian("x", "nought", variance=1.0), ["'x'", "mean", "str"]),
    "covariance that is not symmetric": (
        lambda m: m.gaussian("x", np.zeros(2), covariance=[[1.0, 0.5], [0.0, 1.0]]),
        ["'x'", "not symmetric", "(C + C.T) / 2"],
    ),
    "covariance that is not positive definite": (
        lambda m: m.gaussian("x", np.zeros(2), covariance=[[1.0, 2.0], [2.0, 1.0]]),
        ["'x'", "not positive definite", "eigenvalue"],
    ),
    "covariance of the wrong size": (
        lambda m: m.gaussian("x", np.zeros(3), covariance=np.eye(2)),
        ["'x'", "covariance", "(3, 3)"],
    ),
    "label 2 for a Bernoulli": (
        lambda m: m.bernoulli("y", 0.5, size=3, observed=[0, 1, 2]),
        ["'y'", "2", "Bernoulli", "0 and 1"],
    ),
    "probability above one": (lambda m: m.bernoulli("y", 1.5), ["'y'", "between 0 and 1"]),
    "both p and logit": (lambda m: m.bernoulli("y", 0.5, logit=m.z), ["'y'", "exactly one"]),
    "a Gaussian as a probability": (lambda m: m.bernoulli("y", m.z), ["'z'", "Beta", "logit="]),
    "a Gamma as a logit": (lambda m: m.bernoulli("y", logit=m.g), ["'g'", "Gaussian", "Gamma"]),
    "negative counts": (lambda m: m.poisson("k", m.g, observed=[-1]), ["'k'", "whole numbers", "-1"]),
    "fractional counts": (lambda m: m.poisson("k", m.g, observed=[1.5]), ["'k'", "whole numbers", "1.5"]),
    "more successes than trials": (lambda m: m.binomial("k", 3, m.p, observed=4), ["'k'", "trials"]),
    "infinite data": (
        lambda m: m.gaussian("x", m.z, variance=1.0, observed=[0.0, np.inf, 0.0]),
        ["'x'", "infinite", "NaN"],
    ),
    "observed of the wrong shape": (
        lambda m: m.gaussian("x", m.z, variance=1.0, size=3, observed=[0.0, 1.0]),
        ["'x'", "(2,)", "(3,)"],
    ),
    "observed words": (lambda m: m.bernoulli("y", 0.5, observed=["yes"]), ["'y'", "numbers"]),
    "parents whose shapes do not fit": (
        lambda m: m.gaussian("x", m.z, variance=[1.0, 2.0]),
        ["'gaussian'", "shapes", "(3,)", "(2,)"],
    ),
    "X with too many columns": (lambda m: np.zeros((5, 3)) @ m.w, ["(5, 3)", "'w'", "2 entries"]),
    "X that holds NaN": (lambda m: np.full((5, 2), np.nan) @ m.w, ["'w'", "NaN", "rows"]),
    "sparse X with too few columns": (lambda m: scipy.sparse.eye_array(1) @ m.w, ["(1, 1)", "'w'"]),
    "a name used twice": (lambda m: m.gamma("z", 1.0, 1.0), ["'z'", "exists already"]),
    "an empty name": (lambda m: m.gamma("", 1.0, 1.0), ["needs a name"]),
    "a random variance": (lambda m: m.gaussian("x", 0.0, variance=m.z), ["'z'", "precision="]),
    "a random shape": (lambda m: m.gamma("x", m.g, 1.0), ["'g'", "shape"]),
    "a quotient of variables": (lambda m: m.z / m.z, ["'z'", "product", "@hg.factor"]),
    "a chained comparison": (lambda m: 0 < m.z < 1, ["'z", "between(x, lower, upper)"]),
    "bounds the wrong way round": (lambda m: m.between(m.z, 1.0, 0.0), ["'z'", "below"]),
    "a constraint that is no event": (lambda m: m.constrain(m.z), ["event", "a > b"]),
    "indexing by a random variable": (lambda m: m.z[m.g], ["'z'", "'g'", "mixture"]),
    "an index out of range": (lambda m: m.z[7], ["'z'", "(3,)", "7"]),
    "soft evidence of the wrong family": (lambda m: m.attach(m.z, hg.Gamma(1.0, 1.0)), ["'z'", "Gaussian", "Gamma"]),
    "an improper prior": (lambda m: m.gaussian("x", hg.Gaussian.uniform(())), ["'x'", "improper"]),
    "size that is negative": (lambda m: m.gaussian("x", 0.0, variance=1.0, size=-1), ["'x'", "size"]),
    "probabilities that do not sum to one": (lambda m: m.categorical("c", [0.5, 0.6]), ["'c'", "sum to 1"]),
    "a concentration of zero": (lambda m: m.dirichlet("d", [1.0, 0.0]), ["'d'", "concentration"]),
    "a schedule that does not exist": (lambda m: m.infer(schedule="random"), ["schedule", "'random'", "sequential"]),
    "damping of one": (lambda m: m.infer(damping=1.0), ["damping", "[0, 1)"]),
    "a policy that does not exist": (lambda m: m.infer(improper="hope"), ["improper", "'hope'", "keep mean"]),
    "a negative tolerance": (lambda m: m.infer(tolerance=-1.0), ["tolerance", "-1"]),
    "an empty model": (lambda m: hg.Model().infer(), ["empty", "model.gaussian"]),
    "a variable of another model": (lambda m: m.gaussian("x", _model().z, variance=1.0), ["'z'", "another model"]),
    "a posterior asked for a stranger": (lambda m: m.infer()["stranger"], ["'stranger'", "'w'"]),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_input_is_refused_with_a_sentence_that_names_thing_and_remedy(what):
    write, words = BAD[what]
    with pytest.raises(HeliographError) as caught:
        write(_model())
    sentence = str(caught.value)
    for word in words:
        assert word in sentence, f"{word!r} is missing from: {sentence}"
    assert "\n" not in sentence


def test_there_are_at_least_thirty_of_them():
    assert len(BAD) >= 30


def test_a_variable_without_a_prior_is_refused():
    m = hg.Model()
    node = m.draft.node("free", hg.Gaussian, (), None, given=True)
    free = hg.Variable(m, node)
    with pytest.raises(hg.ModelError, match="'free' is disconnected"):
        m.infer()
    m.gaussian("x", free, variance=1.0, observed=1.0)
    with pytest.raises(hg.ModelError, match="'free' has no prior"):
        m.infer()


def test_a_refused_variable_leaves_the_model_as_it_was():
    m = _model()
    before = m.summary()
    for what in ("label 2 for a Bernoulli", "a name used twice", "covariance of the wrong size"):
        with pytest.raises(HeliographError):
            BAD[what][0](m)
    assert m.summary() == before
    m.infer()
