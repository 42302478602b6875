"""Data as they come: tables whose columns changed places, bytes, masks, codes of missing groups, rows and columns of vectors."""

import warnings

import numpy as np
import pytest

import heliograph as hg

TURN = np.array([[1.0, 0.3], [-0.2, 0.5]])


def regression(data):
    model = hg.Model()
    X = model.data("X", data)
    w = model.gaussian("w", np.zeros(2), covariance=100 * np.eye(2))
    model.gaussian("y", X @ w, sd=0.1, observed=np.asarray(data) @ [2.0, -1.0])
    return model, model.infer()


def test_columns_that_changed_places_are_refused():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(np.random.default_rng(0).standard_normal((9, 2)), columns=["a", "b"])
    model, posterior = regression(frame)
    for call in (lambda x: posterior.predict("y", X=x, seed=0), lambda x: model.observe(X=x)):
        with pytest.raises(hg.ModelError, match=r"column 'b' was number 1 and is number 0 now.*frame\[\['a', 'b'\]\]"):
            call(frame[["b", "a"]])
    same = posterior.predict("y", X=frame.iloc[:3], seed=0)
    np.testing.assert_allclose(same.mean, frame.to_numpy()[:3] @ [2.0, -1.0], atol=0.1)
    renamed = posterior.predict("y", X=frame.iloc[:3].set_axis(["c", "d"], axis=1), seed=0)
    np.testing.assert_array_equal(renamed.mean, same.mean)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.float16])
def test_what_is_computed_of_small_types_does_not_overflow(dtype):
    model = hg.Model()
    x = model.data("x", np.array([100, 120], dtype=dtype))
    w = model.gaussian("w", 0.0, sd=1.0)
    model.gaussian("y", w * (x * x * x), sd=1.0, observed=[1e6, 1728000.0])
    assert model.infer()[w].mean == pytest.approx(1.0, abs=1e-5)


MASKED = np.ma.masked_array([[1.0, 1e6], [1.0, 1.0]], mask=[[False, True], [False, False]])


@pytest.mark.parametrize(
    "use",
    [
        lambda m, x, w: m.gaussian("y", MASKED @ w, sd=1.0),
        lambda m, x, w: m.gaussian("y", x * MASKED[0], sd=1.0),
        lambda m, x, w: m.gaussian("y", x + MASKED[0], sd=1.0),
        lambda m, x, w: m.gaussian("y", x, sd=MASKED[0]),
        lambda m, x, w: m.constrain(x > MASKED[0]),
    ],
)
def test_masked_entries_are_missing_values_and_no_numbers(use):
    model = hg.Model()
    x, w = model.gaussian("x", 0.0, sd=1.0), model.gaussian("w", np.zeros(2), covariance=np.eye(2))
    with pytest.raises(hg.ModelError, match="masked entries"):
        use(model, x, w)
    model.gaussian(
        "whole", x + np.ma.masked_array([1.0, 2.0], mask=False), sd=1.0
    )  # with nothing masked it is an array


def test_a_code_of_a_missing_group_is_warned_of():
    model = hg.Model()
    u = model.gaussian("u", 0.0, sd=1.0, size=3)
    with pytest.warns(hg.AccuracyWarning, match="holds -1 2 times, which is entry 2") as said:
        u[np.array([0, 1, 2, -1, 1, -1])]
    assert said[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        u[np.array([-1, 0, 1])], u[-1], u[np.array([0, 1, 2, 2, 1])], u[np.array([-3, -2, -1, 2])]


VALUES = np.array([[0.0, 1.0], [5.0, 7.0], [2.0, 3.0]])


@pytest.mark.parametrize("matrix", [TURN, TURN[:, :1], np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 1.0]])])
@pytest.mark.parametrize("n", [2, 3])
def test_vectors_are_rows_on_the_left_and_columns_on_the_right(matrix, n):
    model = hg.Model()
    v = model.gaussian("v", VALUES[:n], covariance=1e-6 * np.eye(2))
    posterior = model.infer()
    np.testing.assert_allclose(posterior[v @ matrix].mean, VALUES[:n] @ matrix, atol=1e-9)
    np.testing.assert_allclose(posterior[matrix.T @ v].mean, matrix.T @ VALUES[:n].T, atol=1e-9)
    np.testing.assert_allclose(posterior[v @ matrix[:, 0]].mean, VALUES[:n] @ matrix[:, 0], atol=1e-9)


@pytest.mark.parametrize("n", [3, 8])
def test_a_chain_of_vectors_is_a_kalman_filter_and_columns_are_refused(n):
    rng = np.random.default_rng(n)
    y, noise = rng.standard_normal(n), np.array([[0.2, 0.05], [0.05, 0.1]])
    model = hg.Model()
    start = hg.MultivariateGaussian(np.zeros(2), np.eye(2))
    x = model.chain("x", n, start, lambda before: model.gaussian("x", before @ TURN.T, covariance=noise))
    model.gaussian("y", x @ np.array([1.0, 0.0]), sd=0.5, observed=y)
    posterior = model.infer()
    step = np.eye(2 * n)
    for k in range(1, n):
        step[2 * k : 2 * k + 2] += TURN @ step[2 * k - 2 : 2 * k]
    spread = np.kron(np.eye(n), noise)
    spread[:2, :2] = np.eye(2)
    prior = step @ spread @ step.T
    seen = prior[::2, ::2] + 0.25 * np.eye(n)
    mean = prior[:, ::2] @ np.linalg.solve(seen, y)
    covariance = prior - prior[:, ::2] @ np.linalg.solve(seen, prior[::2])
    np.testing.assert_allclose(posterior[x].mean.ravel(), mean, atol=1e-8)
    np.testing.assert_allclose(posterior[x].sd.ravel(), np.sqrt(np.diag(covariance)), rtol=1e-8)
    model = hg.Model()
    with pytest.raises(hg.ModelError, match=r"write vectors @ X\.T"):
        model.chain("x", n, start, lambda before: model.gaussian("x", TURN @ before, covariance=noise))


def test_outputs_of_several_numbers_need_their_number():
    @hg.factor(output=hg.Categorical)
    def label(z, rng):
        return np.digitize(z + rng.standard_normal(z.shape), [-1.0, 1.0])

    model = hg.Model()
    z = model.gaussian("z", 0.0, sd=1.0)
    with pytest.raises(hg.ModelError, match=r"needs the number of categories.*dimension=3"):
        label(z, observed=1)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda m, x: m.gaussian("y", x, sd=1.0, observed=["a", "b"]), "not a list of words"),
        (lambda m, x: m.gaussian("y", x, sd=1.0, observed=[1 + 2j]), "not a list of complex numbers"),
        (lambda m, x: m.gaussian("y", [x, x], sd=1.0), r"join them with hg\.stack"),
        (lambda m, x: m.gaussian("y", np.array([x, x]), sd=1.0), r"join them with hg\.stack"),
        (lambda m, x: m.gaussian("y", x + np.zeros(3), sd=1.0, observed=np.zeros(4)), r"observed= \(4,\)"),
        (lambda m, x: (x + np.zeros(3))[np.array([0.0, 1.0])], r"pandas\.factorize"),
    ],
)
def test_a_sentence_says_what_was_given_and_what_to_write(call, words):
    model = hg.Model()
    with pytest.raises(hg.ModelError, match=words):
        call(model, model.gaussian("x", 0.0, sd=1.0))


def test_a_table_that_reads_as_rows_of_two_probabilities_is_warned_of():
    rows = np.array([[0.9, 0.1], [0.2, 0.8]])  # of 0 and of 1 for each a, or of 1 for each of two entries
    model = hg.Model()
    a, ab = model.bernoulli("a", 0.5, size=2), [model.bernoulli(n, 0.5, size=2) for n in "bc"]
    with pytest.warns(hg.AccuracyWarning, match=r"give those of 1 only, p\[\.\.\., 1\]") as said:
        model.bernoulli("x", rows, given=a)
    assert said[0].filename == __file__
    with pytest.warns(hg.AccuracyWarning, match="sum to 1"):
        model.bernoulli("xx", np.stack([rows, rows]), given=ab)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one = model.bernoulli("one", rows[:, 1], given=a)
        model.bernoulli("three", np.tile(rows[:1], (3, 1)), given=model.bernoulli("d", 0.5, size=3))
    np.testing.assert_allclose(model.infer()[one].mean, 0.45)
