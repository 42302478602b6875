"""Laws for every operator found by listing: rows land where they belong, and a row that failed is failed and no other."""

import warnings

import numpy as np
import pytest
from logistic_world import GridOracle, logistic_factor, plate

from heliograph.factors.black_box import RunOptions
from heliograph.families import Beta, Gaussian
from heliograph.operators.learned import Learned, decide
from heliograph.operators.registry import make_operator, operator_names
from heliograph.oracles import Answer
from heliograph.paper.rivals.neural import Neural

TOLERANCE = 1e-4  # nats for a plate together
SIZES = (1, 2, 3, 7, 20, 21, 50)


def trained(name):
    """A factor and an operator: trained where it cannot ask, new otherwise. The same every time."""
    box = logistic_factor()
    teacher = plate(0, 600)
    if name == "neural":
        box.train(np.random.default_rng(0), teacher, Neural(max_iter=60), GridOracle())
        return box, next(iter(box.operators.values()))
    return box, make_operator(name)


def rows_of(incoming, rows):
    return {p: m[rows] for p, m in incoming.items()}


def send(box, operator, incoming, to="z", oracle=None, seed=0):
    conduct = RunOptions(
        np.random.default_rng(seed),
        operator,
        GridOracle() if oracle is None else oracle,
        TOLERANCE,
        n_factors=len(incoming["z"]),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return box.send(to, incoming, conduct)


def truth(incoming, to="z"):
    return GridOracle().ask(None, None, incoming).beliefs[to]


@pytest.mark.parametrize("to", ["z", "out"])
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", operator_names())
def test_every_row_gets_its_own_answer_whatever_the_size_of_the_plate(name, n, to):
    if name == "neural":
        pytest.skip("it never asks: the order of its rows has a law below")
    box, operator = trained(name)
    incoming = plate(n, n)
    reply = send(box, operator, incoming, to)
    assert not reply.failed.any()
    # forests and the paper's operator have not filled their first batch, so all is asked and exact
    assert truth(incoming, to).kl(reply.message * incoming[to]).sum() < TOLERANCE


@pytest.mark.parametrize("name", operator_names())
def test_rows_in_any_order_give_the_same_rows(name):
    incoming, rng = plate(1, 50), np.random.default_rng(2)
    order = rng.permutation(50)
    box, operator = trained(name)
    if name == "neural":  # nothing is learned on the way, so the rows are the same to rounding
        a, b = send(box, operator, incoming), send(box, operator, rows_of(incoming, order))
        np.testing.assert_allclose(b.message.naturals[1], a.message.naturals[1][order], rtol=1e-9)
        return
    other_box, other = trained(name)
    a, b = send(box, operator, incoming), send(other_box, other, rows_of(incoming, order))
    one, two = (a.message * incoming["z"])[order], b.message * incoming["z"][order]
    assert one.kl(two).sum() < 4 * TOLERANCE  # each is within the tolerance of the truth; roots add


@pytest.mark.parametrize("n", SIZES)
def test_a_learned_plate_equals_its_rows_one_by_one(n):
    incoming = plate(n, n)
    box, operator = trained("learned")
    send(box, operator, plate(90, 200))  # it knows something already, so that most is predicted
    whole = send(box, operator, incoming).message * incoming["z"]
    for i in range(n):
        one = rows_of(incoming, slice(i, i + 1))
        alone = send(box, operator, one).message * one["z"]
        assert float(whole[i : i + 1].kl(alone)[0]) < 4 * TOLERANCE


def test_rows_of_mixed_kinds_and_blocks_land_where_they_belong(monkeypatch):
    monkeypatch.setattr(decide, "BLOCK", 16)  # several blocks, and a rest
    rng = np.random.default_rng(3)
    box, operator = logistic_factor(), Learned(audit=0.0)
    for k in range(4):  # the later ones through what was learned, and through a lattice
        n = 57
        shift, tau = np.array(plate(k, n)["z"].naturals)
        uniform = rng.random(n) < 0.2
        incoming = {"z": Gaussian.from_naturals((shift, tau)), "out": Beta(1.0 + ~uniform, np.where(uniform, 1.0, 2.0))}
        reply = send(box, operator, incoming)
        assert truth(incoming).kl(reply.message * incoming["z"]).sum() < TOLERANCE
        assert reply.expected_kl.shape == (n,) and np.isfinite(reply.expected_kl).all()


class Failing(GridOracle):
    """Fails at rows whose mean is above a limit, and does not know the output where it is below another."""

    def ask(self, rng, sampler, incoming):
        answer = super().ask(rng, sampler, incoming)
        failed, blind = incoming["z"].mean > 1.0, incoming["z"].mean < -1.0
        kl = {p: np.where(failed | (blind & (p == "out")), np.inf, k) for p, k in answer.expected_kl.items()}
        beliefs = {}
        for p, b in answer.beliefs.items():
            unknown = ~np.isfinite(kl[p])
            naturals = tuple(
                np.where(unknown, mine, its) for mine, its in zip(incoming[p].naturals, b.naturals, strict=True)
            )
            beliefs[p] = b.from_naturals(naturals)
        return Answer(
            *answer[:0], beliefs, np.where(failed, -np.inf, answer.log_z), *answer[2:5], kl, *answer[6:9], failed, 0
        )


@pytest.mark.parametrize("to", ["z", "out"])
@pytest.mark.parametrize("name", [n for n in operator_names() if n != "neural"])
def test_a_row_that_nobody_can_answer_is_failed_in_its_own_direction_and_no_other(name, to):
    box, operator = trained(name)
    incoming = plate(5, 12)  # fewer than any first batch: all is asked
    mean = incoming["z"].mean
    reply = send(box, operator, incoming, to, Failing())
    unknown = (mean > 1.0) | ((mean < -1.0) & (to == "out"))
    assert unknown.any() and not unknown.all()
    np.testing.assert_array_equal(reply.failed, unknown)
    known = ~unknown
    assert truth(incoming, to)[known].kl((reply.message * incoming[to])[known]).max() < 1e-9
    if reply.expected_kl is not None:
        np.testing.assert_array_equal(np.isinf(reply.expected_kl), unknown)
