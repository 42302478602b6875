"""A user's function: what is read from its signature, and what is said when it misbehaves."""

import numpy as np
import pytest

from heliograph.errors import FactorError, ModelError
from heliograph.families import Bernoulli, Beta, Categorical, Gamma, Gaussian, MultivariateGaussian
from heliograph.oracles import evaluate, sampler_of


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_ports_are_the_parameters_and_rng_makes_it_stochastic():
    s = sampler_of(lambda a, b: a + b, Gaussian, name="add")
    assert (s.name, s.ports, s.stochastic, s.vectorized, s.expensive) == ("add", ("a", "b", "out"), False, True, False)
    assert sampler_of(lambda x, rng: x, Gaussian).stochastic
    assert sampler_of(lambda x, rng: x, Gaussian).inputs == ("x",)


def test_an_input_called_out_renames_the_output_port():
    assert sampler_of(lambda out: out, Gaussian).ports == ("out", "output")


@pytest.mark.parametrize("bad", [lambda *x: x, lambda **x: x, lambda rng: 0.0])
def test_a_signature_without_named_inputs_is_refused(bad):
    with pytest.raises(ModelError, match="factor"):
        sampler_of(bad, Gaussian)


def test_a_function_without_inputs_is_told_how_many_samples_to_draw(rng):
    s = sampler_of(lambda rng, size: rng.gamma(1.0, size=size), Gamma)
    assert evaluate(rng, s, {}, size=7).shape == (7,)


def test_per_sample_code_gives_the_same_as_vectorised_code(rng):
    def one(a, v):
        return a + v[0] if a > 0 else -v[1]

    def many(a, v):
        return np.where(a > 0, a + v[:, 0], -v[:, 1])

    inputs = {"a": rng.standard_normal(50), "v": rng.standard_normal((50, 2))}
    slow = evaluate(rng, sampler_of(one, Gaussian, vectorized=False), inputs)
    np.testing.assert_array_equal(slow, evaluate(rng, sampler_of(many, Gaussian), inputs))


def test_vectors_arrive_with_the_samples_first(rng):
    seen = {}

    def f(position, anchor):
        seen.update(position=position.shape, anchor=anchor.shape)
        return position[:, 0]

    evaluate(rng, sampler_of(f, Gaussian), {"position": np.zeros((5, 3)), "anchor": np.zeros((5, 2))})
    assert seen == {"position": (5, 3), "anchor": (5, 2)}


def broken(x):
    if (x > 2).any():
        raise ZeroDivisionError("too large")
    return x


@pytest.mark.parametrize(
    ("function", "output", "pattern"),
    [
        (broken, Gaussian, r"factor 'f' raised ZeroDivisionError: too large.*x="),
        (lambda x: x[:2], Gaussian, r"factor 'f' returned shape \(2,\) for 4 samples"),
        (lambda x: x[:, None], Gaussian, r"returned shape \(4, 1\)"),
        (lambda x: x, MultivariateGaussian, r"MultivariateGaussian needs \(4, d\)"),
        (lambda x: np.where(x > 2, np.nan, x), Gaussian, r"returned nan at x=3"),
        (lambda x: np.where(x > 2, np.inf, x), Gaussian, r"returned inf at x=3"),
        (lambda x: -x - 0.5, Gamma, r"returned -0.5 at x=0.*outside the support of Gamma"),
        (lambda x: x * 0.4, Beta, r"returned 1.2 at x=3.*outside the support of Beta"),
        (lambda x: x / 2, Bernoulli, r"returned 0.5 at x=1.*outside the support of Bernoulli"),
        (lambda x: x - 0.5, Categorical, r"outside the support of Categorical"),
        (lambda x: np.array(["a"] * 4), Gaussian, r"where numbers are needed"),
        (lambda x: x.astype(complex), Gaussian, r"where numbers are needed"),
        (lambda x: None, Gaussian, r"factor 'f' returned"),
    ],
)
def test_misbehaviour_names_the_factor_and_shows_an_input(rng, function, output, pattern):
    with pytest.raises(FactorError, match=pattern):
        evaluate(rng, sampler_of(function, output, name="f"), {"x": np.arange(4.0)})


def test_per_sample_code_that_raises_shows_that_very_sample(rng):
    def f(x):
        return 1 / (x - 2)

    with pytest.raises(FactorError, match=r"'f' raised ZeroDivisionError.*at x=2"):
        evaluate(rng, sampler_of(f, Gaussian, vectorized=False), {"x": np.arange(4.0)})


def test_per_sample_results_of_different_shapes_are_an_error(rng):
    s = sampler_of(lambda x: [0.0] * int(x), MultivariateGaussian, name="f", vectorized=False)
    with pytest.raises(FactorError, match="different shapes"):
        evaluate(rng, s, {"x": np.array([1.0, 2.0])})


def test_a_value_that_rounds_onto_the_edge_of_an_open_support_is_no_error(rng):
    out = evaluate(rng, sampler_of(lambda z: 1 / (1 + np.exp(-z)), Beta), {"z": np.array([-800.0, 0.0, 40.0])})
    np.testing.assert_array_equal(out, [0.0, 0.5, 1.0])
