"""What every oracle promises, put to each one that the room exports."""

import inspect

import numpy as np
import pytest
from black_boxes import logistic, product

import heliograph.oracles as room
from heliograph.families import Beta, Gaussian
from heliograph.oracles import Answer, Oracle, sampler_of

ORACLES = [
    o for name in room.__all__ if inspect.isclass(o := getattr(room, name)) and hasattr(o, "ask") and o is not Oracle
]
LOGISTIC = sampler_of(logistic, Beta)


def ask(oracle, sampler, incoming, seed=0):
    return oracle.ask(np.random.default_rng(seed), sampler, incoming)


def plate():
    return {"z": Gaussian([0.5, -1.0, 2.0], [1.0, 3.0, 0.2]), "out": Beta([2.0, 1.0, 3.0], [1.0, 2.0, 4.0])}


def test_the_listing_finds_them():
    assert {o.__name__ for o in ORACLES} >= {"ImportanceOracle", "QuadratureOracle", "AbcOracle"}


@pytest.mark.parametrize("make", ORACLES, ids=lambda o: o.__name__)
class TestEveryOracle:
    def test_an_answer_has_the_shapes_it_says(self, make):
        incoming = plate()
        answer = ask(make(), LOGISTIC, incoming)
        assert isinstance(answer, Answer)
        assert list(answer.beliefs) == ["z", "out"]
        for field in ("log_z", "log_z_error", "ess", "pareto_k", "failed"):
            assert getattr(answer, field).shape == (3,)
        assert answer.failed.dtype == bool and not answer.failed.any()
        for port, belief in answer.beliefs.items():
            assert type(belief) is type(incoming[port]) and belief.shape == (3,) and belief.proper.all()
            errors = answer.standard_errors[port]
            assert [e.shape for e in errors] == [s.shape for s in belief.expected_statistics()]
            assert answer.covariances[port].shape == answer.chart_covariances[port].shape == (3, 2, 2)
            np.testing.assert_allclose(np.sqrt(answer.covariances[port][:, 0, 0]), errors[0], rtol=1e-12)
            assert (answer.expected_kl[port] >= 0).all()
        assert answer.n_evaluations > 0

    def test_the_same_seed_gives_the_same_bits(self, make):
        first, second = ask(make(), LOGISTIC, plate(), 7), ask(make(), LOGISTIC, plate(), 7)
        np.testing.assert_array_equal(first.beliefs["z"].naturals, second.beliefs["z"].naturals)
        np.testing.assert_array_equal(first.log_z, second.log_z)

    def test_a_uniform_output_says_nothing_of_the_input(self, make):
        incoming = {"z": plate()["z"], "out": Beta.uniform((3,))}
        answer = ask(make(), LOGISTIC, incoming)
        assert (incoming["z"].kl(answer.beliefs["z"]) < 1e-3).all()
        np.testing.assert_allclose(answer.log_z, 0.0, atol=0.02)  # Beta(1, 1) has density 1

    def test_a_narrow_input_tends_to_a_point_mass(self, make):
        point, narrow = Gaussian.point_mass([0.7]), Gaussian([0.7], [1e-10])
        b, out = Gaussian([1.0], [2.0]), Gaussian([3.0], [1.0])
        sampler = sampler_of(product, Gaussian)
        at, near = (ask(make(), sampler, {"a": a, "b": b, "out": out}) for a in (point, narrow))
        assert at.beliefs["b"].kl(near.beliefs["b"])[0] < 2e-3
        np.testing.assert_allclose(near.log_z, at.log_z, atol=0.03)

    def test_incoming_messages_are_left_as_they_were(self, make):
        incoming = plate()
        before = [a.copy() for m in incoming.values() for a in m.naturals]
        ask(make(), LOGISTIC, incoming)
        after = [a for m in incoming.values() for a in m.naturals]
        for a, b in zip(before, after, strict=True):
            np.testing.assert_array_equal(a, b)
