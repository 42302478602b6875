"""Laws for every operator found by listing: rows land where they belong, and a row that failed is failed and no other."""

import warnings

import numpy as np
import pytest
from logistic_world import GridOracle, logistic_factor, plate

import heliograph as hg
from heliograph.factors.black_box import RunOptions
from heliograph.families import Beta, Gaussian
from heliograph.operators import Reply
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


# ---- operators that users hand in -----------------------------------------------------------------------------------
def boxed(slope):
    return hg.factor(output=hg.Beta, name=f"slope {slope}")(lambda z: 1 / (1 + np.exp(-slope * z)))


def solve_logistic(box, **settings):
    model = hg.Model()
    z = model.gaussian("z", np.linspace(-1, 1, 6), variance=1.0)
    model.bernoulli("y", box(z), observed=[0, 1, 0, 1, 1, 1])
    return model.infer(progress=False, oracle="quadrature", **settings)


@pytest.mark.parametrize("name", ["learned", "kjit"])
def test_what_one_factor_taught_is_not_given_to_another(name):
    one, other = boxed(1.0), boxed(3.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solve_logistic(one, operator=name)
    trained = one.operators[name]
    assert not trained.empty
    with pytest.raises(
        hg.ModelError, match=r"has learned the messages of factor 'slope 1.0', and factor 'slope 3.0' is another"
    ):
        solve_logistic(other, operator=trained)
    recipe = make_operator(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solve_logistic(one, operator=recipe)
        solve_logistic(other, operator=recipe)  # each keeps its own copy of one that knows nothing


class Handmade:
    """Asks about everything, and may spoil its reply."""

    name = "handmade"

    def __init__(self, spoil=lambda reply: reply):
        self.spoil = spoil

    def send(self, rng, to, incoming, ask, setting=None):
        answer = ask(incoming)
        failed = answer.failed_at(to)
        return self.spoil(Reply(answer.beliefs[to] / incoming[to], failed, asked=np.ones(len(failed), dtype=bool)))


def test_an_operator_that_keeps_nothing_serves_any_factor_and_is_right():
    operator = Handmade()
    for slope in (1.0, 3.0):
        found, asked = (solve_logistic(boxed(slope), operator=o) for o in (operator, "ask"))
        assert found["z"].mean == pytest.approx(asked["z"].mean, abs=1e-9)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda reply: None, "returned a NoneType and not a Reply"),
        (lambda reply: reply._replace(message=reply.message[:2]), r"'message' the shape \(2,\), not \(6,\)"),
        (lambda reply: reply._replace(asked=reply.asked[:3]), r"'asked' the shape \(3,\), not \(6,\)"),
        (lambda reply: reply._replace(failed=np.zeros((6, 1), dtype=bool)), r"'failed' the shape \(6, 1\)"),
        (lambda reply: reply._replace(expected_kl=np.zeros(2)), r"'expected_kl' the shape \(2,\)"),
        (lambda reply: reply._replace(message=hg.Gamma(np.ones(6), 1.0)), "sent a Gamma where"),
    ],
)
def test_a_reply_that_is_none_is_said_in_a_sentence(spoil, said):
    with pytest.raises(hg.ModelError, match=r"operator 'handmade', asked for 6 messages to .*" + said):
        solve_logistic(boxed(1.0), operator=Handmade(spoil))


def test_a_class_in_place_of_an_operator_is_said():
    with pytest.raises(hg.ModelError, match=r"give an object of it, Handmade\(\)"):
        solve_logistic(boxed(1.0), operator=Handmade)
