"""Two laws of every oracle: rows in any order give the same rows, and a plate gives what its rows give one by one."""

import inspect

import numpy as np
import pytest

import heliograph.oracles as room
from heliograph.families import Beta, Gaussian
from heliograph.oracles import Oracle, sampler_of

ORACLES = [
    o for name in room.__all__ if inspect.isclass(o := getattr(room, name)) and hasattr(o, "ask") and o is not Oracle
]
# fewer draws than the defaults: the laws hold for any number
SMALL = {
    "ImportanceOracle": lambda: room.ImportanceOracle(2048),
    "AbcOracle": lambda: room.AbcOracle(sampling=room.ImportanceOracle(2048, proposal="cavity", draws="random", adapt=False)),
}
FACTORS = {
    "logistic": (sampler_of(lambda z: 1 / (1 + np.exp(-z)), Beta, name="logistic"), lambda m, v: Beta(1 + v, 1 + m**2)),
    "square": (sampler_of(lambda z: z**2, Gaussian, name="square"), lambda m, v: Gaussian(m**2, 0.01 * v)),
    "constant": (sampler_of(lambda z: 0 * z + 2.0, Gaussian, name="constant"), lambda m, v: Gaussian(m, v)),
}


def plate(factor, n):
    rng = np.random.default_rng(n)
    mean, variance = rng.normal(size=n), np.exp(rng.normal(size=n))
    if n > 2:
        mean[2], variance[2] = mean[0], variance[0]  # two rows alike
    if n > 6:
        variance[5] = 1e8  # and one that is vague
    return {"z": Gaussian(mean, variance), "out": FACTORS[factor][1](mean, np.minimum(variance, 4.0))}


def ask(make, factor, incoming):
    return SMALL.get(make.__name__, make)().ask(np.random.default_rng(3), FACTORS[factor][0], incoming)


def check_same(a, b, rows_a, rows_b, factor):
    """Equal to rounding, that of sums over many draws or cells, which may be taken in another order."""
    np.testing.assert_array_equal(a.failed[rows_a], b.failed[rows_b])
    ok = ~a.failed[rows_a]
    for port, belief in a.beliefs.items():
        np.testing.assert_array_equal(a.failed_at(port)[rows_a], b.failed_at(port)[rows_b])
        for got, want in zip(belief[rows_a].naturals, b.beliefs[port][rows_b].naturals, strict=True):
            np.testing.assert_allclose(got[ok], want[ok], rtol=1e-6, atol=1e-9, err_msg=f"{factor} {port}")
    np.testing.assert_allclose(a.log_z[rows_a], b.log_z[rows_b], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("factor", list(FACTORS))
@pytest.mark.parametrize("make", ORACLES, ids=lambda o: o.__name__)
class TestEveryOracle:
    def test_rows_in_any_order_give_the_same_rows(self, make, factor):
        incoming = plate(factor, 21)
        # the second of two equal rows has draws of its own: they stay in their order
        order = np.argsort(np.random.default_rng(0).permutation(21), kind="stable")
        first, second = np.flatnonzero(order == 0)[0], np.flatnonzero(order == 2)[0]
        if first > second:
            order[first], order[second] = 2, 0
        together = ask(make, factor, incoming)
        shuffled = ask(make, factor, {k: m[order] for k, m in incoming.items()})
        check_same(shuffled, together, np.arange(21), order, factor)

    @pytest.mark.parametrize("n", [1, 2, 3, 7, 20, 21, 50])
    def test_a_plate_gives_what_its_rows_give_one_by_one(self, make, factor, n):
        incoming = plate(factor, n)
        together = ask(make, factor, incoming)
        for i in np.unique([0, 1, n // 2, min(5, n - 1), n - 1]):  # (row 2 is the second of two equal ones)
            if i < n and i != 2:
                alone = ask(make, factor, {k: m[i : i + 1] for k, m in incoming.items()})
                check_same(alone, together, np.array([0]), np.array([i]), factor)


def test_equal_rows_have_draws_of_their_own():
    incoming = plate("square", 7)
    answer = ask(room.ImportanceOracle, "square", incoming)
    assert answer.beliefs["z"].mean[0] != answer.beliefs["z"].mean[2]


def test_draws_for_a_stochastic_factor_agree_within_their_errors_in_any_order():
    sampler = sampler_of(lambda z, rng: z + rng.standard_normal(z.shape), Gaussian, name="noisy")
    rng = np.random.default_rng(1)
    incoming = {"z": Gaussian(rng.normal(size=20), np.ones(20)), "out": Gaussian(rng.normal(size=20), np.full(20, 0.5))}
    order = rng.permutation(20)
    a = room.ImportanceOracle().ask(np.random.default_rng(3), sampler, incoming)
    b = room.ImportanceOracle().ask(np.random.default_rng(3), sampler, {k: m[order] for k, m in incoming.items()})
    kl = a.beliefs["z"][order].kl(b.beliefs["z"])
    # the function draws for the whole plate at once, so only the errors are alike: the difference of two answers has twice
    # the KL of one, and 20 halved chi-squares of two degrees stay below 8 in all but one of 150 cases
    assert (kl < 8 * (a.expected_kl["z"][order] + b.expected_kl["z"])).all()
