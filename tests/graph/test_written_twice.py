"""An expression that is written twice is one quantity: a function of the same is the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

import heliograph as hg

_Z = np.linspace(-9.0, 9.0, 60_001)


def _truth(log_likelihood: np.ndarray) -> tuple[float, float, float]:
    log_density = stats.norm.logpdf(_Z, 1.0, 1.0) + log_likelihood
    weight = np.exp(log_density - log_density.max())
    mean = (weight @ _Z) / weight.sum()
    sd = np.sqrt(weight @ (_Z - mean) ** 2 / weight.sum())
    return mean, sd, np.log(weight.sum() * (_Z[1] - _Z[0])) + log_density.max()


def _compare(
    build: Callable[[hg.Model, Any], Any], value: Callable[[np.ndarray], np.ndarray], seen: list[float]
) -> None:
    model = hg.Model()
    z = model.gaussian("z", 1.0, sd=1.0)
    for k, y in enumerate(seen):
        model.gaussian(f"y{k}", build(model, z), sd=0.5, observed=y)
    posterior = model.infer(seed=0)
    mean, sd, evidence = _truth(sum(stats.norm.logpdf(y, value(_Z), 0.5) for y in seen))
    assert float(posterior[z].mean) == pytest.approx(mean, abs=2e-3 * sd)
    assert float(posterior[z].sd) == pytest.approx(sd, rel=2e-3)
    assert posterior.log_evidence == pytest.approx(evidence, abs=2e-3)


def _box() -> hg.BlackBox:
    return hg.factor(output=hg.Gaussian)(lambda z: np.sinh(z))


_SUMS = {
    "squares": (lambda m, z: z**2 + z**2, lambda z: 2 * z**2),
    "nothing is left of squares": (lambda m, z: (2 * z + 1) ** 2 - (2 * z + 1) ** 2 + z, lambda z: z),
    "magnitudes": (lambda m, z: abs(z) + abs(z), lambda z: 2 * np.abs(z)),
    "maxima": (lambda m, z: m.maximum(z, 0.5) + m.maximum(z, 0.5), lambda z: 2 * np.maximum(z, 0.5)),
    "a product with itself": (lambda m, z: z * z, lambda z: z**2),
    "a product with itself and a number": (lambda m, z: z * (z + 1), lambda z: z * (z + 1)),
    "a product with the rest": (lambda m, z: z * (1 - z), lambda z: z * (1 - z)),
}


@pytest.mark.parametrize("name", _SUMS)
def test_terms_that_are_the_same_are_added_as_such(name: str) -> None:
    build, value = _SUMS[name]
    _compare(build, value, [0.7])


@pytest.mark.parametrize("times", [2, 8])
@pytest.mark.parametrize("name", ["square", "magnitude", "product", "box"])
def test_a_value_that_is_seen_several_times_is_one_value(name: str, times: int) -> None:
    box = _box()
    build, value = {
        "square": (lambda m, z: z**2, np.square),
        "magnitude": (lambda m, z: abs(z), np.abs),
        "product": (lambda m, z: z * z, np.square),
        "box": (lambda m, z: box(z), np.sinh),
    }[name]
    _compare(build, value, list(np.linspace(0.2, 1.4, times)))


def test_the_values_of_a_black_box_are_added_as_what_they_are() -> None:
    box = _box()
    _compare(lambda m, z: box(z) + box(z), lambda z: 2 * np.sinh(z), [1.0])
    _compare(lambda m, z: box(z) - box(z) + z, lambda z: z, [1.0])


def test_what_is_drawn_is_drawn_anew() -> None:
    noisy = hg.factor(output=hg.Gaussian)(lambda z, rng: z + rng.standard_normal(z.shape))
    model = hg.Model()
    z = model.gaussian("z", 0.0, sd=1.0)
    assert noisy(z) is not noisy(z)
    box = _box()
    assert box(z) is box(z)
    assert box(z) is not _box()(z)


def test_what_is_not_the_same_is_told_apart() -> None:
    model = hg.Model()
    x = model.gaussian("x", [0.0, 1.0, 2.0], sd=1.0)
    a = model.data("a", [1.0, 2.0, 3.0])
    b = model.data("b", [1.0, 2.0, 3.0])
    assert x[1] ** 2 is not x[2] ** 2
    assert (a * x) ** 2 is (a * x) ** 2
    assert (a * x) ** 2 is not (b * x) ** 2
    model.observe(a=[3.0, 2.0, 1.0])
    model.gaussian("y", (a * x) ** 2, sd=1.0, observed=[1.0, 2.0, 3.0])
    model.observe(x[1] ** 2, 4.0)
    assert x[1] ** 2 is not x[1] ** 2 or (x[1] ** 2).node.observed is None


def test_expressions_of_a_gate_stay_inside() -> None:
    model = hg.Model()
    on, z = model.bernoulli("on", 0.5), model.gaussian("z", 1.0, sd=1.0)
    with model.when(on):
        inside = z**2
        model.gaussian("y", inside, sd=0.5, observed=1.0)
    with model.when(~on):
        assert z**2 is not inside
        model.gaussian("y", z**2, sd=1.0, observed=1.0)
    truth = [_truth(stats.norm.logpdf(1.0, _Z**2, sd))[2] for sd in (0.5, 1.0)]
    assert model.infer().log_evidence == pytest.approx(np.logaddexp(*truth) + np.log(0.5), abs=1e-3)


def test_hyper_parameters_with_one_reference_are_told_apart() -> None:
    model = hg.Model()
    s, t = model.half_normal("s", 1.0), model.half_normal("t", 1.0)
    z = model.gaussian("z", 0.0, sd=1.0)
    assert (s * z) ** 2 is not (t * z) ** 2


# ---- sums of functions --------------------------------------------------------------------------------------------------
def test_a_black_box_can_be_added_to_something_in_one_model_and_stand_alone_in_another() -> None:
    box = _box()
    for _ in range(2):
        _compare(lambda m, z: z + box(z), lambda z: z + np.sinh(z), [1.0])
        _compare(lambda m, z: box(z), np.sinh, [1.0])
        _compare(lambda m, z: 3.0 - z - box(z), lambda z: 3.0 - z - np.sinh(z), [1.0])


@pytest.mark.filterwarnings("ignore::heliograph.errors.AccuracyWarning", "ignore:overflow:RuntimeWarning")
def test_two_black_boxes_are_added_after_either_stood_alone() -> None:
    one, other = _box(), hg.factor(output=hg.Gaussian)(lambda z: np.cos(z))
    for build in (lambda z: one(z), lambda z: one(z) + other(z), lambda z: other(z) + z, lambda z: other(z) - one(z)):
        model = hg.Model()
        z = model.gaussian("z", 1.0, sd=1.0)
        model.gaussian("y", build(z), sd=0.5, observed=1.0)
        assert abs(float(model.infer(seed=0)[z].mean)) < 2.0


@pytest.mark.parametrize("y", [-1.0, 0.3, 2.0, 6.0])
def test_a_line_that_bends_at_a_known_place(y: float) -> None:
    _compare(lambda m, z: z + m.maximum(z, 0.3), lambda z: z + np.maximum(z, 0.3), [y])
    _compare(lambda m, z: m.maximum(1.0, z) - 3.0 * z, lambda z: np.maximum(z, 1.0) - 3.0 * z, [y])
