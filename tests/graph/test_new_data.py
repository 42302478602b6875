"""New data for a model that is written already: the same bits as a model written with them, and nothing lost on a mistake."""

import numpy as np
import pytest

import heliograph as hg
from heliograph.errors import ModelError


def _world(seed: int, n: int):
    rng = np.random.default_rng(seed)
    return {
        "X": rng.standard_normal((n, 3)),
        "group": rng.integers(0, 4, n),
        "y": (rng.random(n) < 0.5) * 1.0,
        "count": rng.poisson(3.0, n).astype(float),
    }


def _written(world):
    model = hg.Model()
    X, group = model.data("X", world["X"]), model.data("group", world["group"])
    w = model.gaussian("w", np.zeros(3), covariance=np.eye(3))
    u = model.gaussian("u", 0.0, variance=1.0, size=4)
    noise = model.gaussian("noise", 0.0, variance=0.1, size=X.rows)
    z = X @ w + u[group] + 0.1 * np.log1p(X[:, 0] ** 2)
    model.bernoulli("y", logit=z + noise, observed=world["y"])
    model.poisson("count", log_rate=z - 1.0, observed=world["count"])
    return model, w, u


def _figures(model, *variables):
    p = model.infer()
    return [p.log_evidence, *(a for v in variables for a in (p[v].mean, p[v].variance))]


@pytest.mark.parametrize("n", [1, 7, 60])
def test_new_data_give_the_same_bits_as_a_model_written_with_them(n: int) -> None:
    model, w, u = _written(_world(0, 20))
    old = model.infer()
    kept = old["w"].mean.copy()
    model.observe(**_world(1, n))
    for a, b in zip(_figures(model, w, u), _figures(*_written(_world(1, n))), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(old["w"].mean, kept)
    with pytest.raises(ModelError, match="other data since"):
        old[w]


def test_some_of_the_data_may_be_given_and_others_stay() -> None:
    first, second = _world(0, 20), _world(1, 20)
    model, w, u = _written(first)
    model.observe(y=second["y"])
    model.observe(X=second["X"])
    expected = _written({**first, "y": second["y"], "X": second["X"]})
    for a, b in zip(_figures(model, w, u), _figures(*expected), strict=True):
        np.testing.assert_array_equal(a, b)


def test_none_takes_observed_values_away_and_values_may_come_later() -> None:
    def written(observed):
        model = hg.Model()
        x = model.gaussian("x", 0.0, variance=1.0)
        model.gaussian("y", x, variance=1.0, observed=observed)
        return model, x

    model, x = written([1.0, 2.0])
    model.observe(y=None)
    assert model.infer()[x].mean == 0.0
    assert model["y"].shape == ()
    model.observe(y=[1.0, 2.0, 3.0])
    np.testing.assert_array_equal(_figures(model, x), _figures(*written([1.0, 2.0, 3.0])))


def test_values_set_by_observe_are_replaced_too() -> None:
    model = hg.Model()
    x = model.gaussian("x", 0.0, variance=1.0)
    y = model.gaussian("y", x, variance=1.0, size=2)
    model.observe(y, [1.0, 2.0])
    model.observe(y=[5.0, 6.0])
    assert model.infer()[x].mean == pytest.approx(11 / 3)


def test_a_mistake_leaves_the_model_as_it_was() -> None:
    model, w, u = _written(_world(0, 20))
    before = _figures(model, w, u)
    wrong = [
        {"X": np.zeros((5, 3))},
        {"y": np.full(20, 7.0)},
        {"X": "words"},
        {"group": np.full(20, 9)},
        {"nobody": 1.0},
        {"count": -np.ones(20)},
    ]
    for data in wrong:
        with pytest.raises(ModelError):
            model.observe(**data)
        for a, b in zip(_figures(model, w, u), before, strict=True):
            np.testing.assert_array_equal(a, b)


def test_names_that_nobody_has_are_answered_with_those_that_there_are() -> None:
    model, *_ = _written(_world(0, 5))
    with pytest.raises(ModelError, match=r"'z'.*'X', 'group'"):
        model.observe(z=1.0)
    with pytest.raises(ModelError, match="exist already"):
        model.data("X", [1.0])


def test_black_boxes_keep_what_they_have_learned() -> None:
    @hg.factor(output=hg.Beta)
    def logistic(z):
        return 1 / (1 + np.exp(-z))

    world = _world(3, 40)
    model = hg.Model()
    X = model.data("X", world["X"])
    w = model.gaussian("w", np.zeros(3), covariance=np.eye(3))
    model.bernoulli("y", logistic(X @ w), observed=world["y"])
    model.infer()
    other = _world(4, 30)
    model.observe(X=other["X"], y=other["y"])
    exact = hg.Model()
    v = exact.gaussian("w", np.zeros(3), covariance=np.eye(3))
    exact.bernoulli("y", logit=other["X"] @ v, observed=other["y"])
    assert float(exact.infer()[v].kl(model.infer()[w])) < 1e-3


def test_tables_with_labels_and_masks_are_taken_like_arrays() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is an extra")
    world = _world(5, 30)
    frame = pandas.DataFrame(world["X"], columns=["a", "b", "c"])
    series = pandas.Series(world["y"], index=range(100, 130))
    nullable = pandas.Series([1, None, 3], dtype="Int64")

    def figures(X, y, counts):
        model = hg.Model()
        named = model.data("X", X)
        w = model.gaussian("w", np.zeros(3), covariance=np.eye(3))
        rate = model.gamma("rate", 1.0, 1.0)
        model.bernoulli("y", logit=named @ w, observed=y)
        model.poisson("k", rate, observed=counts)
        return _figures(model, w, rate)

    expected = figures(world["X"], world["y"], [1, np.nan, 3])
    masked = np.ma.masked_array([1, 2, 3], mask=[False, True, False])
    for case in ((frame, series, nullable), (world["X"].tolist(), world["y"].astype(int), masked)):
        for a, b in zip(figures(*case), expected, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("how", ["series * a", "series + a", "a - series"])
def test_arithmetic_with_series_comes_to_the_variable(how: str) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is an extra")
    series = pandas.Series(_world(6, 8)["X"][:, 0])
    model = hg.Model()
    a = model.gaussian("a", 0.0, variance=1.0)
    z = {"series * a": lambda: series * a, "series + a": lambda: series + a, "a - series": lambda: a - series}[how]()
    assert isinstance(z, hg.Variable)
    assert z.shape == (8,)


def test_a_frame_times_a_variable_says_what_to_write_instead() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is an extra")
    frame = pandas.DataFrame(_world(6, 8)["X"])
    model = hg.Model()
    w = model.gaussian("w", np.zeros(3), covariance=np.eye(3))
    for product in (lambda: frame @ w, lambda: frame[0] @ w, lambda: frame.dot(w)):
        with pytest.raises(hg.ModelError, match=r"frame.to_numpy\(\) @ w"):
            product()
    assert (frame.to_numpy() @ w).shape == (8,)


def test_arrays_that_are_changed_in_place_later_are_not_seen_when_a_model_is_written_anew() -> None:
    t, shift, y = np.arange(4.0), np.ones(4), np.array([1.0, 2.0, 3.0, 4.0])

    def written():
        model = hg.Model()
        x = model.gaussian("x", 0.0, variance=1.0)
        u = model.data("u", np.ones(4)) + shift
        model.gaussian("y", x * t + u, variance=1.0, observed=y)
        return model, x

    expected = _figures(*written())
    model, x = written()
    for a in (t, shift, y):
        a[:] = 99.0
    model.observe(u=np.ones(4))
    np.testing.assert_array_equal(_figures(model, x), expected)
