"""A variable of another model is refused by every word of the language, and neither model is changed."""

import numpy as np
import pytest

import heliograph as hg


@hg.factor(output=hg.Gaussian)
def total(u, v):
    return u + v


def small_model():
    m = hg.Model()
    m.z = m.gaussian("z", 0.0, variance=1.0, size=2)
    m.g = m.gamma("g", 2.0, 1.0)
    m.p = m.beta("p", 1.0, 1.0)
    m.w = m.gaussian("w", np.zeros(2), covariance=np.eye(2))
    m.c = m.categorical("c", [0.3, 0.7])
    m.b = m.bernoulli("b", 0.4)
    m.d = m.dirichlet("d", [1.0, 1.0])
    return m


# m is asked, o is the other model
WORDS = {
    "constrain": lambda m, o: m.constrain(o.z > 1),
    "constrain an event": lambda m, o: m.constrain(o.b),
    "constrain an interval": lambda m, o: m.constrain(o.between(o.z, 0, 1)),
    "observe": lambda m, o: m.observe(o.z, [1.0, 2.0]),
    "observe an expression": lambda m, o: m.observe(o.z[0] - o.z[1], 1.0),
    "attach": lambda m, o: m.attach(o.z, hg.Gaussian(0.0, 1.0)),
    "equal": lambda m, o: m.equal(m.z, o.z),
    "equal of two others": lambda m, o: m.equal(o.z[0], o.z[1]),
    "between": lambda m, o: m.between(o.z, 0, 1),
    "stack": lambda m, o: m.stack(o.z),
    "exp": lambda m, o: m.exp(o.z),
    "sigmoid": lambda m, o: m.sigmoid(o.z),
    "maximum": lambda m, o: m.maximum(m.z, o.z),
    "select": lambda m, o: m.select(m.b, m.z[0], o.z[0]),
    "switch": lambda m, o: m.select(o.b, m.z[0], m.z[1]),
    "plus": lambda m, o: m.z + o.z,
    "minus": lambda m, o: m.z - 2 * o.z,
    "times": lambda m, o: m.z * o.z,
    "greater": lambda m, o: m.z > o.z,
    "less": lambda m, o: m.z < o.z,
    "vectors": lambda m, o: m.w + o.w,
    "products": lambda m, o: np.eye(2) @ m.w + np.eye(2) @ o.w,
    "a mean": lambda m, o: m.gaussian("x", o.z, variance=1.0),
    "a vector mean": lambda m, o: m.gaussian("x", o.w, covariance=np.eye(2)),
    "a precision": lambda m, o: m.gaussian("x", 0.0, precision=o.g),
    "a rate": lambda m, o: m.gamma("x", 1.0, o.g),
    "p": lambda m, o: m.bernoulli("x", o.p),
    "a logit": lambda m, o: m.bernoulli("x", logit=o.z),
    "a probit": lambda m, o: m.bernoulli("x", probit=o.z),
    "probabilities": lambda m, o: m.categorical("x", o.d),
    "given": lambda m, o: m.categorical("x", np.eye(2), given=o.c),
    "a Poisson rate": lambda m, o: m.poisson("x", o.g, observed=1),
    "a Poisson log rate": lambda m, o: m.poisson("x", log_rate=o.z, observed=[1, 2]),
    "a binomial p": lambda m, o: m.binomial("x", 3, o.p, observed=1),
    "a selector": lambda m, o: m.mixture("x", o.b, m.z, 1.0),
    "means": lambda m, o: m.mixture("x", m.b, o.z, 1.0),
    "a mixture's precision": lambda m, o: m.mixture("x", m.b, m.z, precision=o.g),
    "a black box": lambda m, o: total(m.z, o.z),
}


def state(model):
    """All that a model is: what a summary shows, the names taken, and the observed values."""
    seen = [None if n.observed is None else n.observed.point for n in model.graph.nodes]
    return model.summary(), sorted(model.draft.names), str(seen), len(model.graph.plates)


@pytest.mark.parametrize("what", WORDS)
def test_a_variable_of_another_model_is_refused_and_neither_model_is_changed(what):
    mine, other = small_model(), small_model()
    before, after = state(mine), other.infer()
    with pytest.raises(hg.ModelError, match="another model"):
        WORDS[what](mine, other)
    assert state(mine) == before
    # at most an event that nobody uses was added to the other model, which says nothing
    again = other.infer()
    for name in ("z", "g", "p", "w", "c", "b", "d"):
        assert np.array_equal(again[name].mean, after[name].mean)
    assert again.log_evidence == pytest.approx(after.log_evidence, abs=1e-12)
    assert not any(n.observed is not None for n in other.graph.nodes)


def test_a_name_is_free_again_after_a_call_that_failed():
    model = small_model()
    for write in (
        lambda: model.gaussian("x", model.z, variance=1.0, observed=[np.inf, 0.0]),
        lambda: model.bernoulli("x", logit=2 * model.z + 1, observed=[0, 2]),
        lambda: model.poisson("x", model.g, observed=-1),
        lambda: model.categorical("x", [0.5, 0.5, 0.0], observed=2),
        lambda: model.mixture("x", model.b, model.z, precision=model.g, observed="no"),
        lambda: model.gaussian("x", np.eye(2) @ (model.z[[0, 0]] + 1), variance=[1.0, 2.0, 3.0]),
    ):
        before = state(model)
        with pytest.raises(hg.HeliographError):
            write()
        assert state(model) == before
    x = model.gaussian("x", 2 * model.z + 1, variance=1.0, observed=[1.0, 3.0])
    # prior N(0, 1), y = 2 z + 1 + N(0, 1): mean 2 (y - 1) / 5
    np.testing.assert_allclose(model.infer()[model.z].mean, [0.0, 0.8], atol=1e-12)
    assert x.name == "x"
