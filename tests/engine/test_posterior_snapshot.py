"""A posterior belongs to the model as it was: nothing that is added or observed later changes it."""

import numpy as np
import pytest

import heliograph as hg

X = np.array([[1.0, 0.5], [0.0, 2.0], [-1.0, 1.0]])


def regression():
    model = hg.Model()
    w = model.gaussian("w", np.zeros(2), covariance=[[2.0, 0.5], [0.5, 1.0]])
    e = model.gaussian("e", 0.0, variance=1.0, size=3)
    y = model.gaussian("y", X @ w + e, variance=0.5, observed=[1.0, 2.0, -1.0])
    model.bernoulli("label", logit=X @ w, observed=[1, 0, 1])
    return model, w, e, y


def grow(model, w, y):
    """Add variables and factors, observe other values, and let a statement fail on the way."""
    model.observe(y, [7.0, 8.0, 9.0])
    more = model.gaussian("more", X @ w, variance=0.1, observed=[5.0, 5.0, 5.0])
    with pytest.raises(hg.ModelError):
        model.gaussian("w", 0.0, variance=1.0)
    return more


def numbers(posterior, w, e, y):
    """Everything that a reader may ask for."""
    return [
        posterior[w].mean,
        posterior["w"].covariance,
        posterior[e[1:]].variance,
        posterior[y].mean,
        posterior[X @ w].mean,
        posterior.as_prior()["w"].mean,
        posterior.log_evidence,
    ]


@pytest.mark.parametrize("schedule", ["parallel", "sequential"])
@pytest.mark.parametrize("read_before", [True, False])
def test_an_old_posterior_gives_the_same_numbers_after_the_model_has_changed(schedule, read_before):
    untouched = regression()
    want_posterior = untouched[0].infer(schedule=schedule)
    want, want_text = numbers(want_posterior, *untouched[1:]), want_posterior.summary()
    model, w, e, y = regression()
    posterior = model.infer(schedule=schedule)
    if read_before:
        numbers(posterior, w, e, y)
    grow(model, w, y)
    for a, b in zip(numbers(posterior, w, e, y), want, strict=True):
        np.testing.assert_array_equal(a, b)
    assert posterior.summary().splitlines()[:4] == want_text.splitlines()[:4]
    assert repr(posterior) == repr(want_posterior)


def test_a_run_in_steps_is_of_the_model_as_it_was_when_it_began():
    plain, changed = regression(), regression()
    want = [posterior[plain[1]].mean for posterior, _ in hg.steps(plain[0])]
    model, w, _, y = changed
    got = []
    for k, (posterior, _) in enumerate(hg.steps(model)):
        if k == 0:
            grow(model, w, y)
        got.append(posterior[w].mean)
    np.testing.assert_array_equal(got, want)


def test_a_new_run_sees_what_was_added():
    model, w, _, y = regression()
    old = model.infer()
    more = grow(model, w, y)
    new = model.infer()
    np.testing.assert_array_equal(new[more].mean, [5.0, 5.0, 5.0])
    assert abs(new[w].mean - old[w].mean).max() > 0.5
    with pytest.raises(hg.ModelError, match=r"'more' was added .* run infer again"):
        old[more]
    with pytest.raises(hg.ModelError, match="no variable is called 'more'"):
        old["more"]


def test_the_posterior_of_another_model_is_not_asked():
    (model, *_), (_, w, *_) = regression(), regression()
    with pytest.raises(hg.ModelError, match="another model"):
        model.infer()[w]


# ---- expressions that were no part of the run -------------------------------------------------------------------
def test_an_expression_of_a_vector_that_was_no_part_of_the_run_is_exact():
    model, w, _, _ = regression()
    posterior = model.infer()
    mean, covariance = posterior[w].mean, posterior[w].covariance
    z = np.array([[0.3, -2.0], [1.0, 1.0]])
    rows = 2 * z + z @ np.eye(2)
    found = posterior[z @ (2 * w + 1) + z @ w]
    np.testing.assert_allclose(found.mean, rows @ mean + z.sum(axis=1), rtol=1e-10)
    np.testing.assert_allclose(found.variance, np.diag(rows @ covariance @ rows.T), rtol=1e-8)
    np.testing.assert_allclose(posterior[3 * w - 1].covariance, 9 * covariance, rtol=1e-8)


def test_an_expression_of_independent_variables_is_exact_and_a_constant_is_a_point():
    model = hg.Model()
    x = model.gaussian("x", [1.0, 2.0], variance=[3.0, 4.0])
    posterior = model.infer()
    found = posterior[x[0] - 2 * x[1] + x[0]]
    assert (float(found.mean), float(found.variance)) == (-2.0, pytest.approx(28.0, rel=1e-12))
    assert float(posterior[x[0] - x[0] + 4].mean) == 4.0
    assert float(posterior[x[0] - x[0] + 4].variance) == 0.0


def two_tied_and_one_free():
    model = hg.Model()
    x = model.gaussian("x", 0.0, variance=1.0, size=3)
    model.gaussian("y", x[0] + x[1], variance=0.1, observed=2.0)
    return model, x


def test_an_expression_of_variables_that_depend_on_each_other_is_exact():
    model, x = two_tied_and_one_free()
    posterior = model.infer()
    found = posterior[x[0] - x[1]]  # the data say nothing of it
    assert float(found.mean) == pytest.approx(0.0, abs=1e-12)
    assert float(found.variance) == pytest.approx(2.0, rel=1e-12)
    found = posterior[x[0] + x[1] - x[2]]
    assert float(found.mean) == pytest.approx(2.0 * 2.0 / 2.1, rel=1e-12)
    assert float(found.variance) == pytest.approx(2.0 * 0.1 / 2.1 + 1.0, rel=1e-12)


def test_the_same_expression_of_a_factorised_run_comes_with_a_warning():
    model, x = two_tied_and_one_free()
    posterior = model.infer(structure="factorised")
    with pytest.warns(hg.AccuracyWarning, match="as if 'x' were independent"):
        posterior[x[0] - x[1]]
    posterior[x[0] - x[2]]  # nothing ties these: no warning, which would be an error here
