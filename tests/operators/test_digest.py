"""A digest: messages of a plate that is known cost no evaluation, and are as good as they are said to be."""

import numpy as np
import pytest
from scipy.special import expit

import heliograph as hg
from heliograph.factors.black_box import RunOptions
from heliograph.families import Beta, Gaussian, MultivariateGaussian
from heliograph.operators import Learned
from heliograph.operators.learned.digest import Digested
from heliograph.operators.learned.made import like, pooled
from heliograph.oracles import QuadratureOracle

N = 12


class Counted:
    """A black box of two unknown numbers, with a counter inside the function."""

    def __init__(self):
        self.n_calls = 0

        @hg.factor(output=hg.Beta)
        def softmax(a, b):
            self.n_calls += np.size(a)
            return expit(b - np.logaddexp(0.0, a) - 0.5 * a)

        self.box = softmax

    def send(self, rng, to, incoming, tolerance=1e-3):
        run = np.random.default_rng(rng.integers(2**63))  # each plate in a run of its own
        self.box.form_values.clear()  # a digest has to do without tables of the function
        return self.box.send(to, incoming, RunOptions(run, tolerance=tolerance, n_factors=N))


def plate(rng):
    label = rng.integers(0, 2, N)
    a, b = (Gaussian(rng.normal(0, 1, N), np.exp(rng.normal(-0.7, 0.2, N))) for _ in range(2))
    return {"a": a, "b": b, "out": Beta(1.0 + label, 2.0 - label)}


def known(rng, n_plates=25):
    counted = Counted()
    for _ in range(n_plates):
        counted.send(rng, "a", plate(rng))
    return counted


def test_a_plate_of_two_moving_messages_that_is_known_costs_no_evaluation():
    rng = np.random.default_rng(0)
    counted = known(rng)
    n_free = 0
    for _ in range(10):
        at = counted.n_calls
        reply = counted.send(rng, "a", plate(rng))
        n_free += counted.n_calls == at
        assert (reply.expected_kl > 0).all()
        assert np.isfinite(reply.log_variance[~reply.asked]).all()
    assert n_free >= 6  # a row far out goes the long way


def test_its_messages_are_within_what_is_stated_of_them():
    rng = np.random.default_rng(1)
    counted = known(rng)
    n_free, realised, stated = 0, 0.0, 0.0
    for _ in range(6):
        incoming, at = plate(rng), counted.n_calls
        reply = counted.send(rng, "a", incoming)
        if counted.n_calls > at:
            continue
        n_free += 1
        exact = counted.box.ask(incoming, oracle=QuadratureOracle(1e-8)).beliefs["a"]
        kl = exact.kl(reply.message * incoming["a"])
        assert kl.max() < 1e-3 / N  # one message's share of the tolerance
        realised, stated = realised + np.sqrt(kl).sum(), stated + np.sqrt(reply.expected_kl).sum()
    assert n_free >= 3
    assert realised < stated  # as errors add that pull the same way


def test_log_z_of_a_known_plate_costs_no_evaluation_either_and_is_right():
    rng = np.random.default_rng(2)
    counted, options = Counted(), RunOptions(rng, tolerance=1e-3, n_factors=N)
    for _ in range(25):
        counted.box.log_z(plate(rng), options=options)
    n_free = 0
    for _ in range(5):
        incoming, at = plate(rng), counted.n_calls
        log_z = counted.box.log_z(incoming, options=options)
        if counted.n_calls > at:
            continue
        n_free += 1
        exact = counted.box.ask(incoming, oracle=QuadratureOracle(1e-8)).log_z
        assert np.abs(log_z - exact).max() < np.sqrt(10 * 1e-3 / N)  # ten shares of the tolerance, as a variance
    assert n_free >= 2


def test_neither_messages_of_the_tenth_regression_nor_its_evidence_cost_an_evaluation():
    calls, n, before, sent = [0], 200, 0, 1

    @hg.factor(output=hg.Beta)
    def logistic(z):
        calls[0] += np.size(z)
        return expit(z)

    rng = np.random.default_rng(3)
    for k in range(10):
        x = rng.standard_normal((n, 5))
        y = (rng.random(n) < expit(x @ rng.standard_normal(5))).astype(float)
        model = hg.Model()
        w = model.gaussian("w", np.zeros(5), covariance=np.eye(5))
        model.bernoulli("y", logistic(x @ w), observed=y)
        before = calls[0]
        posterior = model.infer(seed=k, progress=False)
        assert posterior.converged
        sent = calls[0]
        assert np.isfinite(posterior.log_evidence)
    assert sent == before
    assert calls[0] == sent


def test_a_problem_that_is_solved_twice_begins_no_digest():
    calls = [0]

    @hg.factor(output=hg.Gamma)
    def catch(z):
        calls[0] += np.size(z)
        abundance = np.exp(np.minimum(z, 12.0))
        return 0.05 + 40.0 * -np.expm1(-((abundance / 40.0) ** 1.3)) + 0.2 * np.log1p(abundance)

    rng = np.random.default_rng(6)
    x = np.column_stack([np.ones(200), 0.6 * rng.standard_normal((200, 3))])
    counts = rng.poisson(catch(x @ np.array([2.5, 1.0, -0.7, 0.4])))
    cost = []
    for seed in range(2):
        model = hg.Model()
        w = model.gaussian("w", np.zeros(4), covariance=4 * np.eye(4))
        model.poisson("counts", catch(x @ w), observed=counts)
        calls[0] = 0
        posterior = model.infer(seed=seed, progress=False)
        assert posterior.converged
        cost.append(calls[0])
    assert cost[1] < 0.05 * cost[0]  # rows that are made for a digest would cost more


def test_a_shift_goes_the_long_way_and_stays_right():
    rng = np.random.default_rng(4)
    counted = known(rng)
    incoming = plate(rng)
    incoming["a"] = Gaussian(incoming["a"].mean + 6.0, 4.0 * incoming["a"].variance)
    reply = counted.send(rng, "a", incoming)
    exact = counted.box.ask(incoming, oracle=QuadratureOracle(1e-8)).beliefs["a"]
    assert exact.kl(reply.message * incoming["a"]).max() < 10 * 1e-3 / N


def test_the_same_seed_gives_the_same_bits_with_a_digest_in_use():
    def run():
        rng = np.random.default_rng(5)
        counted = known(rng, 12)
        return [counted.send(rng, "a", plate(rng)).message.naturals[0] for _ in range(3)]

    assert all(np.array_equal(a, b) for a, b in zip(run(), run(), strict=True))


def test_a_digest_goes_when_the_process_has_changed_its_mind():
    rng = np.random.default_rng(6)
    counted = known(rng)
    digests = counted.box.operator("learned").digests
    ((key, digest),) = [item for item in digests.kept.items() if item[1].known is not None]
    digest.teacher.process.refit()
    before = counted.n_calls
    counted.send(rng, "a", plate(rng))
    assert counted.n_calls >= before + N * 289
    assert digests.kept[key] is not digest


def test_more_is_stated_when_the_process_turns_out_worse_than_it_said():
    rng = np.random.default_rng(8)
    counted = known(rng)
    incoming, digests = plate(rng), counted.box.operator("learned").digests
    (digest,) = [d for d in digests.kept.values() if d.known is not None]
    said = counted.send(rng, "a", incoming).expected_kl
    digest.teacher.calibration.stated *= 1e16  # what the process said of these labels is far below what a digest adds
    again = counted.send(rng, "a", incoming).expected_kl
    assert (again >= said).all()
    assert again.sum() > 1.2 * said.sum()


@pytest.mark.parametrize("vector", [False, True])
def test_made_rows_are_proper_and_stay_among_the_classes_and_the_data_that_were_seen(vector):
    rng = np.random.default_rng(7)
    label, dose = rng.integers(0, 2, 40), rng.uniform(0.1, 2.0, 40)
    root = rng.normal(size=(40, 2, 3))
    z = (
        MultivariateGaussian(rng.normal(size=(40, 2)), root @ np.swapaxes(root, 1, 2))
        if vector
        else Gaussian(rng.normal(size=40), rng.gamma(2.0, 1.0, 40))
    )
    kind = {"z": "proper", "dose": "data", "day": "data", "out": "proper"}
    rows = {"z": z, "dose": dose, "day": rng.integers(0, 9, 40).astype(float), "out": Beta(1.0 + label, 2.0 - label)}
    pool = pooled(None, rows)
    made = like(rng, kind, pool, 200)
    assert made["z"].proper.all()
    assert np.unique(made["out"].naturals[0]).size == 2
    assert dose.min() <= made["dose"].min() <= made["dose"].max() <= dose.max()
    assert set(made["day"]) <= set(rows["day"])
    assert len(pooled(pool, {p: m[np.arange(600) % 40] for p, m in rows.items()})["z"]) == 512


def test_the_trace_says_how_often_the_function_was_evaluated_and_what_for():
    calls = [0]

    @hg.factor(output=hg.Gaussian)
    def swing(a, b):
        calls[0] += np.size(a)
        return np.tanh(a) + b

    rng, spent = np.random.default_rng(9), []
    for k in range(9):
        model = hg.Model()
        a, b = (model.gaussian(name, rng.normal(0, 1, N), variance=0.5) for name in "ab")
        model.gaussian("y", swing(a, b), variance=0.1, observed=rng.normal(0, 1, N))
        before = calls[0]
        posterior = model.infer(seed=k, progress=False)
        assert posterior[a].proper.all()
        assert posterior[b].proper.all()
        spent.append(posterior.trace.evaluations)
        checks = 8 if k == 0 else 0  # that it draws no random numbers is checked once, outside of all messages
        assert sum(spent[-1].values()) + checks == calls[0] - before
    assert spent[0]["answers"] > 0
    assert spent[0]["tables"] == 0
    assert sum(s["tables"] for s in spent) > 0


def test_a_few_outliers_of_a_known_plate_cost_what_they_cost_by_themselves():
    rng = np.random.default_rng(0)
    counted = known(rng)
    counted.send(rng, "a", plate(rng))
    far = plate(rng)
    far["a"] = Gaussian(np.where(np.arange(N) == 3, 6.0, far["a"].mean), far["a"].variance)
    at = counted.n_calls
    reply = counted.send(rng, "a", far)
    assert not reply.asked.any()
    assert 0 < counted.n_calls - at <= 2 * (33 * 33 + 8)  # the references of a row or two; 128 rows were made for them


def test_rows_that_a_digest_knows_are_no_reason_to_make_more_when_they_go_the_long_way(monkeypatch):
    rng = np.random.default_rng(0)
    counted = known(rng)
    digests = counted.box.operator("learned").digests
    digest = next(d for (_, to), d in digests.kept.items() if to == "a")
    settled = plate(rng)
    for _ in range(3):
        counted.send(rng, "a", settled)
    digest.n_owed, made = 0, digest.n_made
    monkeypatch.setattr(digests, "read", lambda task, kind, incoming, beside: Digested(None, np.arange(N), beside))
    for _ in range(3):  # as for an audit
        counted.send(rng, "a", settled)
    assert digest.n_made == made
    assert digest.n_owed <= 3


def test_an_audit_of_one_direction_is_one_of_every_direction_that_would_have_been_trusted():
    rng, counted, operator, n_asked = np.random.default_rng(1), Counted(), Learned(audit=1.0), 0
    for k in range(8):
        for to in ("a", "b"):
            options = RunOptions(np.random.default_rng(k), operator, tolerance=1e-3, n_factors=N)
            n_asked += counted.box.send(to, plate(rng), options).asked.sum()
    directions = next(iter(counted.box.operator(operator).kinds.values()))
    assert [directions[to].calibration.n_audits for to in ("a", "b")] == [2, 2]  # a tenth of the labels, each
    assert n_asked == 22
