"""Wrong input is an error of ours with a sentence: every builder, operator, setting and family, times every kind of wrong value.

What is accepted on purpose is left out of a row's values, and the reason stands beside it.
"""

import numpy as np
import pytest

import heliograph as hg
from heliograph.errors import HeliographError

DAYS = np.array(["2020-01-01", "2020-01-02", "2020-01-03"], dtype="datetime64[D]")
WRONG = {
    "word": "nought",
    "complex": 1 + 2j,
    "complex array": np.array([1 + 2j, 1j, 3.0]),
    "date": DAYS[0],
    "dates": DAYS,
    "NaN": np.nan,
    "inf": np.inf,
    "-inf": -np.inf,
    "objects": np.array([object()] * 3, dtype=object),
    "ragged": [[1.0, 2.0], [3.0]],
    "dict": {"a": 1},
    "None": None,
    "set": {1},
    "bytes": b"1",
    "function": len,
    "Beta message": hg.Beta(1.0, 1.0),
    "negative": -1.0,
    "zero": 0.0,
    "half": 0.5,
    "wrong shape": np.ones((2, 5)),
    "empty": np.array([]),
    "too long": [1.0] * 7,
}
ALL = tuple(WRONG)
NOT_A_NUMBER = tuple(
    k for k in ALL if k not in ("None", "negative", "zero", "half", "wrong shape", "too long")
)  # neither a finite number nor an array of them


def but(*accepted):
    return tuple(k for k in ALL if k not in accepted)


def small_model():
    m = hg.Model()
    m.z = m.gaussian("z", 0.0, variance=1.0, size=3)
    m.g = m.gamma("g", 2.0, 1.0, size=3)
    m.p = m.beta("p", 1.0, 1.0, size=3)
    m.w = m.gaussian("w", np.zeros(2), covariance=np.eye(2))
    m.c = m.categorical("c", [0.3, 0.7])
    m.b = m.bernoulli("b", 0.4)
    return m


@hg.factor(output=hg.Gaussian)
def square(u, v=0.0):
    return u**2 + v


SHAPED = (*NOT_A_NUMBER, "None", "wrong shape", "too long")
MODEL = {
    "mean": (lambda m, v: m.gaussian("x", v, variance=1.0), (*NOT_A_NUMBER, "None")),
    "variance": (lambda m, v: m.gaussian("x", 0.0, variance=v), (*NOT_A_NUMBER, "None", "negative", "zero")),
    "precision": (lambda m, v: m.gaussian("x", 0.0, precision=v), (*NOT_A_NUMBER, "None", "negative", "zero")),
    "covariance": (lambda m, v: m.gaussian("x", np.zeros(2), covariance=v), ALL),
    "vector mean": (lambda m, v: m.gaussian("x", v, covariance=np.eye(2)), ALL),
    "size": (lambda m, v: m.gaussian("x", 0.0, variance=1.0, size=v), but("None")),  # None: as large as the parameters
    # NaN is a missing value, None says that nothing was observed
    "observed": (lambda m, v: m.gaussian("x", 0.0, variance=1.0, size=3, observed=v), but("NaN", "None")),
    "child's observed": (lambda m, v: m.gaussian("x", m.z, variance=1.0, observed=v), but("NaN", "None", "-inf")),
    "missing": (lambda m, v: m.gaussian("x", m.z, variance=1.0, observed=[1.0, 2.0, 3.0], missing=v), but("None")),
    "name": (lambda m, v: m.gaussian(v, 0.0, variance=1.0), but("word")),
    "gamma shape": (lambda m, v: m.gamma("x", v, 1.0), (*NOT_A_NUMBER, "None", "negative", "zero")),
    "gamma rate": (lambda m, v: m.gamma("x", 1.0, v), (*NOT_A_NUMBER, "None", "negative", "zero")),
    "gamma observed": (lambda m, v: m.gamma("x", 1.0, 1.0, size=3, observed=v), but("NaN", "None")),
    "beta a": (lambda m, v: m.beta("x", v, 1.0), but("Beta message", "half", "wrong shape", "too long")),
    "beta b": (lambda m, v: m.beta("x", 1.0, v), but("half", "wrong shape", "too long")),
    "bernoulli p": (
        lambda m, v: m.bernoulli("x", v),
        but("zero", "half", "wrong shape", "too long"),
    ),  # p = 1 is certain
    "bernoulli logit": (lambda m, v: m.bernoulli("x", logit=v), ALL),
    "bernoulli probit": (lambda m, v: m.bernoulli("x", probit=v), ALL),
    "bernoulli observed": (lambda m, v: m.bernoulli("x", 0.5, size=3, observed=v), but("NaN", "None")),
    "categorical p": (lambda m, v: m.categorical("x", v), ALL),
    "categorical given": (lambda m, v: m.categorical("x", np.eye(2), given=v), but("None")),
    "categorical table": (lambda m, v: m.categorical("x", v, given=m.c), ALL),
    "categorical observed": (lambda m, v: m.categorical("x", [0.3, 0.7], observed=v), but("NaN", "None", "zero")),
    "concentration": (lambda m, v: m.dirichlet("x", v), but("wrong shape", "too long")),
    "poisson rate": (lambda m, v: m.poisson("x", v, observed=1), ALL),
    "poisson log_rate": (lambda m, v: m.poisson("x", log_rate=v, observed=1), ALL),
    "poisson observed": (lambda m, v: m.poisson("x", m.g, observed=v), but("NaN", "zero", "None")),
    "binomial n": (lambda m, v: m.binomial("x", v, m.p, observed=1), ALL),
    "binomial p": (lambda m, v: m.binomial("x", 3, v, observed=1), ALL),
    "binomial observed": (lambda m, v: m.binomial("x", 3, m.p, observed=v), but("NaN", "zero", "None")),
    "a variable's prior": (lambda m, v: m.variable("x", v), but("Beta message")),
    "selector": (lambda m, v: m.mixture("x", v, m.z, 1.0), ALL),
    "means": (lambda m, v: m.mixture("x", m.b, v, 1.0), ALL),
    "a mixture's variance": (lambda m, v: m.mixture("x", m.b, m.z[:2], v), but("half")),
    "a mixture's precision": (lambda m, v: m.mixture("x", m.b, m.z[:2], precision=v), but("half")),
    "constrain": (lambda m, v: m.constrain(v), ALL),
    "equal": (lambda m, v: m.equal(m.z, v), ALL),
    "equal to": (lambda m, v: m.equal(v, m.z), ALL),
    "attach": (lambda m, v: m.attach(m.z, v), ALL),
    "attach to": (lambda m, v: m.attach(v, hg.Gaussian(0.0, 1.0)), ALL),
    "observe": (lambda m, v: m.observe(m.z, v), ALL),
    "observe what": (lambda m, v: m.observe(v, 1.0), ALL),
    "exp": (lambda m, v: m.exp(v), ALL),
    "sigmoid": (lambda m, v: m.sigmoid(v), ALL),
    "maximum": (lambda m, v: m.maximum(m.z, v), SHAPED),
    "between's lower": (lambda m, v: m.between(m.z, v, 1.0), tuple(k for k in SHAPED if k != "-inf")),  # no bound
    "between's upper": (lambda m, v: m.between(m.z, -2.0, v), tuple(k for k in SHAPED if k != "inf")),
    "between what": (lambda m, v: m.between(v, -1.0, 1.0), ALL),
    "switch": (lambda m, v: m.select(v, m.z, 1.0), ALL),
    "select": (lambda m, v: m.select(m.b, v, m.z), SHAPED),
    "stack": (lambda m, v: m.stack(v), ALL),
    "plus": (lambda m, v: m.z + v, SHAPED),
    "minus": (lambda m, v: m.z - v, SHAPED),
    "minus from the right": (lambda m, v: v - m.z, SHAPED),
    "times": (lambda m, v: m.z * v, SHAPED),
    "over": (lambda m, v: m.z / v, (*SHAPED, "zero")),
    "greater": (lambda m, v: m.z > v, SHAPED),
    "less": (lambda m, v: m.z < v, SHAPED),
    "abs": (lambda m, v: abs(m.z) < v, (*(k for k in SHAPED if k != "inf"), "negative", "zero")),
    "a vector plus": (lambda m, v: m.w + v, (*NOT_A_NUMBER, "None", "wrong shape", "too long")),
    "a vector times": (lambda m, v: m.w * v, (*NOT_A_NUMBER, "None", "wrong shape", "too long")),
    "matrix": (lambda m, v: m.w @ v, but("wrong shape")),  # (2, 5), which fits
    "matrix of scalars": (lambda m, v: m.z @ v, ALL),
    "index": (lambda m, v: m.z[v], but("None", "empty")),  # a new axis; no entries, which no factor takes
    "reshape": (lambda m, v: m.z.reshape(v), ALL),
    "box": (lambda m, v: square(m.z, v), (*SHAPED[:-2], "too long")),  # a matrix with a row per entry is data too
    "operator": (lambda m, v: m.infer(operator=v), ALL),
    "oracle": (lambda m, v: m.infer(oracle=v), but("None")),  # the default
    "schedule": (lambda m, v: m.infer(schedule=v), ALL),
    "damping": (lambda m, v: m.infer(damping=v), but("None", "zero", "half")),  # adaptive, none, half
    "power": (lambda m, v: m.infer(power=v), but("half")),
    "improper": (lambda m, v: m.infer(improper=v), ALL),
    "tolerance": (lambda m, v: m.infer(tolerance=v), but("zero", "half")),
    "max_sweeps": (lambda m, v: m.infer(max_sweeps=v), ALL),
    "stop": (lambda m, v: m.infer(stop=v), but("None")),  # the default
    "seed": (lambda m, v: m.infer(seed=v), ALL),
    "executor": (lambda m, v: m.infer(executor=v), but("None")),
    "progress": (lambda m, v: m.infer(progress=v), but("None")),
    "steps": (lambda m, v: hg.steps(m, max_sweeps=v), ALL),
}
OTHER_FAMILY = {
    "a Gamma in a sum": lambda m: m.z + m.g,
    "a vector in a sum": lambda m: m.z + m.w,
    "a vector in a product": lambda m: m.z * m.w,
    "a Beta in a comparison": lambda m: m.z > m.p,
    "a Gamma as a mean": lambda m: m.gaussian("x", m.g, variance=1.0),
    "a Gaussian as a rate": lambda m: m.poisson("x", m.z, observed=1),
    "a Gamma as a log rate": lambda m: m.poisson("x", log_rate=m.g, observed=1),
    "a Gaussian as a precision": lambda m: m.gaussian("x", 0.0, precision=m.z),
    "a Gaussian as a selector": lambda m: m.mixture("x", m.z, m.z, 1.0),
    "a Gamma as means": lambda m: m.mixture("x", m.b, m.g[:2], 1.0),
    "a Gamma to exp": lambda m: m.exp(m.g),
    "a vector to exp": lambda m: m.exp(m.w),
    "a Gamma in between": lambda m: m.between(m.g, 0.0, 1.0),
    "a Gaussian equal to a Gamma": lambda m: m.equal(m.z, m.g),
    "a Gaussian as a constraint": lambda m: m.constrain(m.z),
    "a Categorical as a switch": lambda m: m.select(m.c, m.z, 0.0),
    "a Gaussian as given": lambda m: m.categorical("x", np.eye(2), given=m.z),
    "a Gaussian as p": lambda m: m.binomial("x", 3, m.z, observed=1),
    "a stack of Gammas": lambda m: m.stack(m.g),
    "a matrix times Gammas": lambda m: np.eye(3) @ m.g,
    "a random size": lambda m: m.gaussian("x", 0.0, variance=1.0, size=m.z),
    "random observations": lambda m: m.gaussian("x", 0.0, variance=1.0, observed=m.z),
    "random bounds": lambda m: m.between(m.z, m.g, 1.0),
    "a random covariance": lambda m: m.gaussian("x", np.zeros(2), covariance=m.w),
    "a random exponent": lambda m: m.z**m.z,
}


def refused(kind, write):
    try:
        write()
    except HeliographError as error:
        sentence = str(error)
        assert len(sentence.split()) >= 4, kind
        assert "\n" not in sentence, kind
    else:
        raise AssertionError(f"{kind} was accepted")


@pytest.mark.parametrize("what", MODEL)
def test_a_wrong_value_is_refused_with_a_sentence_and_leaves_the_model_as_it_was(what):
    model = small_model()
    before = model.summary(), set(model.draft.names)
    write, kinds = MODEL[what]
    for kind in kinds:
        refused(kind, lambda kind=kind: write(model, WRONG[kind]))
        assert (model.summary(), set(model.draft.names)) == before, kind


@pytest.mark.parametrize("what", OTHER_FAMILY)
def test_a_variable_of_another_family_is_refused_and_leaves_the_model_as_it_was(what):
    model = small_model()
    before = model.summary(), set(model.draft.names)
    refused(what, lambda: OTHER_FAMILY[what](model))
    assert (model.summary(), set(model.draft.names)) == before


IN_VAIN = {  # what was said, and nothing heard
    "a message of NaN": lambda m: m.attach(m.g[0], hg.Gamma.from_naturals((np.array(np.nan), np.array(1.0)))),
    "a period of a kernel without": lambda m: m.gp("x", np.arange(3.0), "rbf", period=2.0),
    "censored, and nothing seen": lambda m: m.exponential("x", m.g[0], censored=True),
    "until, and nothing seen": lambda m: m.exponential("x", m.g[0], until=2.0),
    "an audit of a word": lambda m: m.infer(audit="yes"),
    "a number over a variable": lambda m: 1.0 / m.z,
    "weights beyond 1": lambda _: hg.Mixture([0.5, 0.6], hg.Gaussian(np.zeros(2), np.ones(2))),
    "weights of NaN": lambda _: hg.Mixture([0.5, np.nan], hg.Gaussian(np.zeros(2), np.ones(2))),
    "no sweep": lambda _: hg.after(0),
    "a word of sweeps": lambda _: hg.after("a"),
    "time that is over": lambda _: hg.after_seconds(-1.0),
    "a change below 0": lambda _: hg.changed_less_than(-1.0),
    "a change of NaN": lambda _: hg.changed_less_than(np.nan),
    "infer of a number": lambda _: hg.infer(3),
    "steps of a word": lambda _: hg.steps("model"),
}


@pytest.mark.parametrize("what", IN_VAIN)
def test_what_would_be_said_in_vain_is_refused(what):
    refused(what, lambda: IN_VAIN[what](small_model()))


def test_there_are_more_than_a_thousand_of_them():
    assert sum(len(kinds) for _, kinds in MODEL.values()) > 1000


# ---- families ---------------------------------------------------------------------------------------------------
MESSAGES = {
    "Gaussian": hg.Gaussian(0.0, 1.0),
    "MultivariateGaussian": hg.MultivariateGaussian(np.zeros(2), np.eye(2)),
    "Gamma": hg.Gamma(1.0, 1.0),
    "Beta": hg.Beta(1.0, 2.0),
    "Bernoulli": hg.Bernoulli(0.3),
    "Categorical": hg.Categorical([0.2, 0.8]),
    "Dirichlet": hg.Dirichlet([1.0, 2.0]),
}
NO_PARAMETER = (*(k for k in NOT_A_NUMBER if k not in ("inf", "-inf", "empty")), "None")
MADE = {
    "Gaussian mean": (lambda v: hg.Gaussian(v, 1.0), (*NO_PARAMETER, "inf", "-inf")),
    "Gaussian variance": (lambda v: hg.Gaussian(0.0, v), (*NO_PARAMETER, "negative")),  # inf: it says nothing
    "Gaussian precision": (lambda v: hg.Gaussian(0.0, precision=v), (*NO_PARAMETER, "-inf")),  # negative: improper
    "Gaussian shapes": (lambda v: hg.Gaussian(np.zeros(3), v), ("wrong shape", "too long")),
    "MultivariateGaussian mean": (lambda v: hg.MultivariateGaussian(v, np.eye(2)), ALL),
    "MultivariateGaussian covariance": (lambda v: hg.MultivariateGaussian(np.zeros(2), v), ALL),
    "Gamma shape": (lambda v: hg.Gamma(v, 1.0), (*NO_PARAMETER, "inf", "negative", "zero")),
    "Gamma rate": (lambda v: hg.Gamma(1.0, v), (*NO_PARAMETER, "inf", "negative", "zero")),
    "Beta a": (lambda v: hg.Beta(v, 1.0), (*NO_PARAMETER, "inf", "negative", "zero")),
    "Beta b": (lambda v: hg.Beta(1.0, v), (*NO_PARAMETER, "inf", "negative", "zero")),
    "Bernoulli": (lambda v: hg.Bernoulli(v), (*NO_PARAMETER, "inf", "negative")),
    "Categorical": (lambda v: hg.Categorical(v), ALL),
    "Dirichlet": (lambda v: hg.Dirichlet(v), but("wrong shape", "too long")),
}


@pytest.mark.parametrize("what", MADE)
def test_a_message_is_not_made_of_what_is_no_parameter(what):
    make, kinds = MADE[what]
    for kind in kinds:
        refused(kind, lambda kind=kind: make(WRONG[kind]))


@pytest.mark.parametrize("what", MESSAGES)
def test_messages_of_different_families_are_not_compared_or_multiplied(what):
    message = MESSAGES[what]
    others = [m for name, m in MESSAGES.items() if name != what] + [
        v for v in WRONG.values() if not isinstance(v, hg.Family)
    ]
    for other in others:
        refused(str(other), lambda other=other: message.kl(other))
        refused(str(other), lambda other=other: message * other)
        refused(str(other), lambda other=other: message / other)


@pytest.mark.parametrize("what", MESSAGES)
def test_values_that_are_no_numbers_have_no_density_no_support_and_no_point_mass(what):
    message = MESSAGES[what]
    extra = (2,) if what == "Categorical" else ()
    for kind in ("word", "complex", "complex array", "date", "dates", "objects", "ragged", "dict", "None", "function"):
        refused(kind, lambda kind=kind: message.log_density(WRONG[kind]))
        refused(kind, lambda kind=kind: type(message).in_support(WRONG[kind]))
        refused(kind, lambda kind=kind: type(message).point_mass(WRONG[kind], *extra))
        refused(kind, lambda kind=kind: message ** WRONG[kind])
        refused(kind, lambda kind=kind: message.sample(WRONG[kind]))


def test_messages_of_different_dimensions_or_plates_are_not_multiplied():
    two, three = (hg.MultivariateGaussian(np.zeros(d), np.eye(d)) for d in (2, 3))
    one = hg.MultivariateGaussian(np.zeros(1), np.eye(1))
    pairs = [(two, three), (one, three), (hg.Dirichlet([1.0, 1.0]), hg.Dirichlet([1.0, 1.0, 1.0]))]
    pairs += [
        (hg.Categorical([0.5, 0.5]), hg.Categorical([0.2, 0.3, 0.5])),
        (hg.Gaussian(np.zeros(3), 1.0), hg.Gaussian(np.zeros(2), 1.0)),
    ]
    for a, b in pairs:
        refused(f"{a} and {b}", lambda a=a, b=b: a * b)
        refused(f"{a} and {b}", lambda a=a, b=b: a / b)
        refused(f"{a} and {b}", lambda a=a, b=b: a.kl(b))


def test_computed_moments_with_a_nan_touch_no_other_entry():
    found = hg.Gaussian.from_mean_variance([np.nan, 2.0], [1.0, 4.0])
    assert np.isnan(found.naturals[0][0])
    assert found.mean[1] == 2.0


# ---- black boxes ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("vectorized", [True, False])
def test_a_box_that_changes_its_input_in_place_is_refused_at_once(vectorized):
    @hg.factor(output=hg.Gaussian, vectorized=vectorized)
    def shifts_in_place(z):
        z = np.asarray(z) if vectorized else np.atleast_1d(z)
        if not vectorized:
            return float(z[0])
        z += 1.0
        return z

    model = hg.Model()
    x = model.gaussian("x", 0.0, variance=1.0)
    model.gaussian("y", shifts_in_place(x), variance=1.0, observed=1.0)
    if vectorized:
        with pytest.raises(HeliographError, match="changes its input in place"):
            model.infer()
    else:  # one number at a time cannot be changed in place
        model.infer(oracle="quadrature", operator="ask")


def test_arrays_that_the_user_changes_afterwards_leave_the_model_alone():
    x, variance = np.eye(2), np.ones(2)
    model = hg.Model()
    w = model.gaussian("w", np.zeros(2), covariance=np.eye(2))
    model.gaussian("y", x @ w, variance=variance, observed=[1.0, 2.0])
    before = model.infer()[w].mean
    x[:] = 7.0
    variance[:] = 1e6
    np.testing.assert_array_equal(model.infer()[w].mean, before)


def test_a_product_with_an_observed_vector_is_refused():
    model = hg.Model()
    w = model.gaussian("w", np.zeros(2), covariance=np.eye(2), observed=[1.0, 2.0])
    model.gaussian("y", np.ones((1, 2)) @ w, variance=1.0)
    with pytest.raises(hg.ModelError, match="'w' is observed"):
        model.infer()
