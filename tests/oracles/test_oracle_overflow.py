"""Functions whose values leave the range of numbers: rows without an answer say so, the others keep theirs."""

import warnings

import numpy as np
import pytest

from heliograph.families import Gaussian
from heliograph.oracles import ImportanceOracle, QuadratureOracle, sampler_of


def explosion(a, b):
    with np.errstate(over="ignore"):
        return np.exp(0.5 * (a - b) ** 2)


def steep(z):
    with np.errstate(over="ignore"):
        return np.exp(z**2)


TWO = sampler_of(explosion, Gaussian, name="explosion")
ONE = sampler_of(steep, Gaussian, name="steep")
SEEN = Gaussian(np.array([1e100, 1.3, 2.0]), np.ones(3))


def exact(y, noise=1.0):
    """The variance of a - b ~ N(0, 18), of which the function of both is seen as y with noise of some variance."""
    d = np.linspace(-40, 40, 400_001)
    with np.errstate(over="ignore"):
        log_p = -(d**2) / 36 - 0.5 * (y - np.exp(np.minimum(0.5 * d**2, 300.0))) ** 2 / noise
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    return p @ d**2 - (p @ d) ** 2


@pytest.mark.parametrize(
    ("oracle", "seed"), [(ImportanceOracle(), 0), (ImportanceOracle(), 1), (QuadratureOracle(), 0)]
)
def test_two_unknowns(oracle, seed):
    incoming = {p: Gaussian(np.zeros(3), np.full(3, 9.0)) for p in "ab"} | {"out": SEEN}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answer = oracle.ask(np.random.default_rng(seed), TWO, incoming)
    for row in (1, 2):
        assert not answer.failed[row]
        half = 0.25 * (18.0 + exact(SEEN.mean[row]))  # a + b is as before, a - b is what was seen
        assert answer.beliefs["a"].variance[row] == pytest.approx(half, rel=0.03)
    assert answer.failed_at("out")[0]  # a value of 1e100 with a spread of 1 is no number


@pytest.mark.parametrize(
    "message", [Gaussian(np.zeros(2), np.zeros(2) + 900.0), Gaussian(np.zeros(2), np.zeros(2) + 1e6)]
)
def test_one_unknown(message):
    incoming = {"z": message, "out": Gaussian.uniform((2,))}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answer = QuadratureOracle().ask(np.random.default_rng(0), ONE, incoming)
    assert answer.failed_at("out").all()  # E exp(z^2) is infinite


@pytest.mark.parametrize("seed", range(4))
def test_draws_that_spread_over_trillions_have_parts_with_a_covariance(seed):
    out = Gaussian(np.array([5.8e15]), np.array([7.5059e14]))
    incoming = {p: Gaussian(np.zeros(1), np.full(1, 9.0)) for p in "ab"} | {"out": out}
    answer = ImportanceOracle().ask(np.random.default_rng(seed), TWO, incoming)
    if not answer.failed[0]:
        half = 0.25 * (18.0 + exact(5.8e15, 7.5059e14))
        assert answer.beliefs["a"].variance[0] == pytest.approx(half, rel=0.05)
