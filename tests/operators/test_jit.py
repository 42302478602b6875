"""The just-in-time loop's promises, with the paper's learner and with one written here in a few lines."""

from __future__ import annotations

import numpy as np
import pytest
from logistic_world import GridOracle, logistic_factor, plate

from heliograph.errors import ModelError
from heliograph.families import Beta, Gaussian
from heliograph.operators import JustInTime, Kjit, Reply
from heliograph.operators.protocol import rows_of


class Ask:
    """Counts rows; exact answers."""

    def __init__(self):
        self.rows, self.calls = 0, 0

    def __call__(self, incoming):
        self.rows += len(incoming["z"])
        self.calls += 1
        return GridOracle().ask(None, None, incoming)


class Nearest:
    """A whole new learner: answer as the nearest tuple seen did, in doubt in proportion to the distance."""

    def fit(self, rng, to, incoming, y):
        self.x, self.y = self._see(incoming), y

    def update(self, incoming, y):
        self.x, self.y = np.concatenate([self.x, self._see(incoming)]), np.concatenate([self.y, y])

    def predict(self, incoming):
        d2 = ((self._see(incoming)[:, None] - self.x[None]) ** 2).sum(-1)
        return self.y[d2.argmin(1)], d2.min(1)[:, None]

    def state(self):
        return {"x": self.x, "y": self.y}, {}

    def restore(self, arrays, header):
        self.x, self.y = arrays["x"], arrays["y"]

    @staticmethod
    def _see(incoming):
        return np.stack([incoming["z"].mean, np.log(incoming["z"].variance), 9 * incoming["out"].mean], axis=1)


OPERATORS = {
    "kjit": lambda: Kjit(100, 150, minibatch=150),
    "text": lambda: Kjit(100, 150, minibatch=150, settings="text"),
    "program": lambda: Kjit(100, 150, minibatch=150, settings="program"),
    "message": lambda: Kjit(100, 150, minibatch=150, target="message"),
    "shared": lambda: Kjit(100, 150, minibatch=150, share=True),
    "nearest": lambda: JustInTime(Nearest(), minibatch=20, threshold=-2.0),
}


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("to", ["z", "out"])
def test_asked_twice_about_the_same_plate_it_asks_nobody_the_second_time(name, to):
    operator, rng = OPERATORS[name](), np.random.default_rng(0)
    ask, again = Ask(), Ask()
    for seed in range(2):
        operator.send(rng, to, plate(seed), ask)
    reply = operator.send(rng, to, plate(1), again)
    assert ask.rows >= 20
    if name in ("text", "message") and again.rows:
        # these targets can predict numbers that are no belief, which are asked however certain they are
        assert (reply.log_variance[reply.asked] < -8.5).all()
    elif name == "program" and again.rows:
        # improper messages of the oracle are not learned, so they are asked for again
        exact = GridOracle().ask(None, None, plate(1)).beliefs[to] / plate(1)[to]
        assert not exact.proper[reply.asked].any()
    else:
        assert again.rows == 0
    assert not reply.failed.any()


def test_the_first_rows_are_all_asked_and_the_minibatch_ends_in_the_middle_of_a_plate():
    operator, ask = Kjit(100, 150, minibatch=120), Ask()
    reply = operator.send(np.random.default_rng(0), "z", plate(0, 200), ask)
    assert reply.asked[:120].all()
    assert not reply.asked[120:].all()
    assert np.isnan(reply.log_variance[:120]).all() and np.isfinite(reply.log_variance[120:]).all()
    assert reply.n_asked == ask.rows == reply.asked.sum()


def test_rows_that_come_one_at_a_time_wait_until_the_minibatch_is_full():
    operator, ask, rng = Kjit(50, 60, minibatch=5), Ask(), np.random.default_rng(0)
    rows = plate(0, 8)
    replies = [operator.send(rng, "z", rows_of(rows, slice(i, i + 1)), ask) for i in range(8)]
    assert [r.log_variance is None for r in replies] == [True] * 5 + [False] * 3
    (direction,) = operator.directions.values()
    assert direction.n_learned == direction.n_asked == ask.rows >= 5


def test_what_was_asked_is_sent_as_the_oracle_gave_it():
    operator, rng = Kjit(100, 150, minibatch=100), np.random.default_rng(0)
    for seed in range(2):
        rows = plate(seed)
        reply = operator.send(rng, "z", rows, Ask())
        exact = GridOracle().ask(None, None, rows).beliefs["z"] / rows["z"]
        assert reply.asked.any()
        for a, b in zip(reply.message.naturals, exact.naturals, strict=True):
            np.testing.assert_array_equal(a[reply.asked], b[reply.asked])
            assert (a[~reply.asked] != b[~reply.asked]).all()


def test_it_asks_exactly_where_some_output_reaches_its_threshold():
    operator, rng = Kjit(100, 150, minibatch=200, block=None, features="per output"), np.random.default_rng(0)
    operator.send(rng, "z", plate(0), Ask())
    rows, (direction,) = plate(1), operator.directions.values()
    mean, variance = direction.learner.predict(rows)
    assert variance.shape == mean.shape == (200, 2)
    operator.threshold = (np.quantile(np.log(variance[:, 0]), 0.9), np.quantile(np.log(variance[:, 1]), 0.9))
    wanted = (np.log(variance) >= operator.threshold).any(axis=1)
    one, other = (np.log(variance) >= operator.threshold).T
    assert (one & ~other).any() and (other & ~one).any()
    np.testing.assert_array_equal(operator.send(rng, "z", rows, Ask()).asked, wanted)


def test_numbers_that_are_no_belief_are_asked_however_certain():
    class Sure(Nearest):
        def predict(self, incoming):
            mean, _ = super().predict(incoming)
            mean = mean.copy()
            mean[::2, 1] = mean[::2, 0] ** 2 - 1.0  # a second moment below the squared mean
            return mean, np.full((len(mean), 1), 1e-9)

    operator, rng = JustInTime(Sure(), minibatch=20, target="statistics"), np.random.default_rng(0)
    operator.send(rng, "z", plate(0, 20), Ask())
    reply = operator.send(rng, "z", plate(1, 30), Ask())
    np.testing.assert_array_equal(reply.asked, np.arange(30) % 2 == 0)
    assert (reply.message * plate(1, 30)["z"]).proper.all()


def test_asking_in_blocks_spares_most_of_what_asking_all_at_once_pays():
    asks = {}
    for block in (None, 8):
        operator, ask, rng = Kjit(100, 150, minibatch=50, block=block), Ask(), np.random.default_rng(0)
        operator.send(rng, "z", plate(0, 50), ask)
        operator.send(rng, "z", plate(1, 400), ask)
        asks[block] = ask.rows
    assert asks[8] < 0.6 * asks[None]


@pytest.mark.parametrize("settings", ["text", "program"])
def test_in_turn_a_plate_is_what_its_rows_are_one_after_another(settings):
    whole, single = (Kjit(80, 120, minibatch=60, settings=settings) for _ in range(2))
    plates = [plate(0, 60), plate(1, 150), plate(2, 40)]
    ask, rng = Ask(), np.random.default_rng(0)
    replies = [whole.send(rng, "z", some, ask) for some in plates]
    again, rng = Ask(), np.random.default_rng(0)
    single.send(rng, "z", plates[0], again)  # the minibatch, with the same random features
    for some, reply in zip(plates[1:], replies[1:], strict=True):
        rows = [single.send(rng, "z", rows_of(some, np.array([k])), again) for k in range(len(some["z"]))]
        np.testing.assert_array_equal([r.asked[0] for r in rows], reply.asked)
        assert 0 < reply.asked.sum() < len(reply.asked)
        for ours, theirs in zip(
            zip(*(r.message.naturals for r in rows), strict=True), reply.message.naturals, strict=True
        ):
            np.testing.assert_allclose(np.concatenate(ours), theirs, rtol=1e-6)  # matrix products of other shapes
        doubt = np.concatenate([r.log_variance for r in rows])
        np.testing.assert_allclose(doubt, reply.log_variance, atol=1e-8)
    assert (ask.rows, ask.calls) == (again.rows, 1 + ask.rows - 60)  # each asked alone


def test_worst_first_asks_in_another_order_even_one_at_a_time():
    asked = {}
    for name, more in {"in turn": {"order": "in turn"}, "worst first": {"block": 1}}.items():
        operator, rng, seen = Kjit(80, 120, minibatch=60, **more), np.random.default_rng(0), []

        def ask(incoming, seen=seen):
            seen += incoming["z"].mean.tolist()
            return GridOracle().ask(None, None, incoming)

        operator.send(rng, "z", plate(0, 60), ask)
        operator.send(rng, "z", plate(1, 150), ask)
        asked[name] = seen[60:]
    order = {m: k for k, m in enumerate(plate(1, 150)["z"].mean.tolist())}
    places = {name: [order[m] for m in means] for name, means in asked.items()}
    assert places["in turn"] == sorted(places["in turn"]) and places["worst first"] != sorted(places["worst first"])


@pytest.mark.parametrize("features", ["one", "per output"])
def test_a_number_of_thresholds_that_is_not_the_number_of_outputs_is_refused_before_much_is_asked(features):
    ask = Ask()
    with pytest.raises(
        ModelError, match=r"messages to 'z' have 2 outputs .* but 3 thresholds .* give one number .* or 2"
    ):
        Kjit(50, 60, minibatch=30, features=features, threshold=(-8.0, -8.5, -9.0)).send(
            np.random.default_rng(0), "z", plate(0, 40), ask
        )
    assert ask.calls == 1
    two = Kjit(50, 60, minibatch=30, features=features, threshold=(-8.0, -8.5))
    assert two.send(np.random.default_rng(0), "z", plate(0, 40), Ask()).asked[:30].all()


def test_with_share_one_oracle_run_teaches_every_direction():
    shared, alone = Kjit(100, 150, minibatch=150, share=True), Kjit(100, 150, minibatch=150)
    for operator in (shared, alone):
        rng, first, second = np.random.default_rng(0), Ask(), Ask()
        operator.send(rng, "z", plate(0), first)
        operator.send(rng, "z", plate(0), first)
        reply = operator.send(rng, "out", plate(0), second)
        # what was certain about z at rows never asked about may still be uncertain about out
        assert second.rows <= 15 if operator is shared else second.rows >= 150
        exact = GridOracle().ask(None, None, plate(0)).beliefs["out"]
        assert np.median(exact.kl(reply.message * plate(0)["out"])) < 1e-3


def test_the_same_seed_gives_the_same_bits():
    def run():
        operator, rng = Kjit(100, 150, minibatch=150), np.random.default_rng(3)
        return [operator.send(rng, "z", plate(seed), Ask()).message for seed in range(3)]

    for a, b in zip(run(), run(), strict=True):
        for x, y in zip(a.naturals, b.naturals, strict=True):
            np.testing.assert_array_equal(x, y)


def test_a_plate_at_once_and_its_rows_one_by_one_agree_when_nothing_is_asked():
    operator, rng = Kjit(100, 150, minibatch=200, precision="float64"), np.random.default_rng(0)
    operator.send(rng, "z", plate(0), Ask())
    rows = plate(0, 200)
    whole = operator.send(rng, "z", rows, Ask()).message
    for i in (0, 77, 199):
        one = operator.send(rng, "z", rows_of(rows, slice(i, i + 1)), Ask()).message
        # the same sums in another order
        np.testing.assert_allclose(one.naturals[1][0], whole.naturals[1][i], rtol=1e-6, atol=1e-9)


def test_improper_incoming_messages_are_always_asked_and_never_learned():
    operator, ask, rng = Kjit(50, 60, minibatch=40), Ask(), np.random.default_rng(0)
    rows = plate(0, 60)
    operator.send(rng, "z", rows, ask)
    (direction,) = operator.directions.values()
    learned = direction.n_learned
    bad = Beta.from_naturals((np.array([-1.5]), np.array([3.0])))
    improper = {"z": Gaussian([0.0], 1.0), "out": bad}
    for _ in range(2):
        assert operator.send(rng, "z", improper, ask).asked.all()
    assert direction.n_learned == learned


def test_failed_answers_are_flagged_and_not_learned():
    class Failing(Ask):
        def __call__(self, incoming):
            answer = super().__call__(incoming)
            failed = incoming["z"].mean > 0
            answer.failed[:] = failed
            return answer

    operator = Kjit(50, 60, minibatch=500)
    rows = plate(0, 100)
    reply = operator.send(np.random.default_rng(0), "z", rows, Failing())
    np.testing.assert_array_equal(reply.failed, rows["z"].mean > 0)
    (direction,) = operator.directions.values()
    assert direction.n_waiting == (~reply.failed).sum()


def test_the_programs_policy_sends_a_broad_message_for_an_improper_one_and_learns_nothing_from_it():
    # Beta(3, 3) on p pulls z to 0; with a belief wider than the cavity the message is improper
    class Wide:
        def __call__(self, incoming):
            answer = GridOracle().ask(None, None, incoming)
            wide = Gaussian(incoming["z"].mean, 2 * incoming["z"].variance)
            return answer._replace(beliefs={**answer.beliefs, "z": wide})

    rows = plate(0, 5)
    reply = Kjit(minibatch=500, settings="program").send(np.random.default_rng(0), "z", rows, Wide())
    np.testing.assert_allclose(reply.message.variance, 1e5)
    np.testing.assert_array_equal(reply.message.mean, 0.0)
    for settings, kept in (("program", 0), ("house", 5)):
        operator = Kjit(minibatch=500, settings=settings)
        operator.send(np.random.default_rng(0), "z", rows, Wide())
        (direction,) = operator.directions.values()
        assert direction.n_waiting == kept


def test_other_families_at_the_ports_are_other_directions():
    operator, rng = Kjit(50, 60, minibatch=30), np.random.default_rng(0)
    operator.send(rng, "z", plate(0, 40), Ask())
    assert list(operator.directions) == ["z | z Gaussian, out Beta"]
    operator.direction("z", {"z": Gaussian([0.0], 1.0), "out": Gaussian([0.0], 1.0)})
    assert len(operator.directions) == 2


def test_an_interruption_loses_nothing_that_was_answered():
    class Interrupted:
        def __call__(self, incoming):
            error = KeyboardInterrupt()
            done = np.arange(7)
            error.answered = (done, GridOracle().ask(None, None, rows_of(incoming, done)))
            raise error

    operator = Kjit(minibatch=100)
    with pytest.raises(KeyboardInterrupt):
        operator.send(np.random.default_rng(0), "z", plate(0, 20), Interrupted())
    (direction,) = operator.directions.values()
    assert direction.n_waiting == direction.n_asked == 7


def test_rows_wait_when_learning_itself_is_interrupted():
    class Slow(Nearest):
        def update(self, incoming, y):
            if not getattr(self, "tried", False):
                self.tried = True
                raise KeyboardInterrupt
            super().update(incoming, y)

    operator, rng = JustInTime(Slow(), minibatch=5, threshold=-20.0), np.random.default_rng(0)
    operator.send(rng, "z", plate(0, 5), Ask())
    with pytest.raises(KeyboardInterrupt):
        operator.send(rng, "z", plate(1, 5), Ask())
    (direction,) = operator.directions.values()
    assert direction.n_waiting == 5
    assert not operator.send(rng, "z", plate(1, 5), Ask()).asked.any()
    assert direction.n_waiting == 0 and direction.n_learned == 10


@pytest.mark.parametrize("name", OPERATORS)
def test_a_restored_operator_predicts_the_same_bits_and_goes_on_learning(name):
    operator, rng = OPERATORS[name](), np.random.default_rng(0)
    operator.send(rng, "z", plate(0), Ask())
    operator.send(rng, "out", rows_of(plate(1), slice(10)), Ask())  # leaves rows waiting
    other = OPERATORS[name]()
    other.restore(*operator.state())
    for seed in (0, 5):
        for to in ("z", "out"):
            a = operator.send(np.random.default_rng(1), to, plate(seed), Ask())
            b = other.send(np.random.default_rng(1), to, plate(seed), Ask())
            np.testing.assert_array_equal(a.asked, b.asked)
            for x, y in zip(a.message.naturals, b.message.naturals, strict=True):
                np.testing.assert_array_equal(x, y)


def test_a_fresh_operator_knows_nothing_and_shares_nothing():
    operator, rng = Kjit(50, 60, minibatch=30), np.random.default_rng(0)
    operator.send(rng, "z", plate(0, 40), Ask())
    other = operator.fresh()
    assert other.empty and not operator.empty and other.key == operator.key == "kjit(D_in=50, D_out=60, minibatch=30)"
    assert other.send(rng, "z", plate(0, 30), Ask()).asked.all()


def test_an_empty_plate_gets_an_empty_reply():
    reply = Kjit(minibatch=5).send(np.random.default_rng(0), "z", plate(0, 0), Ask())
    assert isinstance(reply, Reply) and len(reply.message) == 0


def test_wrong_settings_are_refused_with_what_is_right():
    with pytest.raises(ModelError, match="settings must be one of"):
        Kjit(settings="paper")
    with pytest.raises(ModelError, match="features must be 'one' or 'per output'"):
        Kjit(features="two")
    with pytest.raises(ModelError, match="improper must be"):
        Kjit(improper="skip")
    with pytest.raises(ModelError, match="order must be"):
        Kjit(order="random")
    with pytest.raises(ModelError, match="minibatch and block"):
        Kjit(minibatch=0)


def test_a_factor_uses_a_new_learner_like_any_other():
    logistic = logistic_factor()
    from heliograph.factors.black_box import RunOptions

    conduct = RunOptions(
        np.random.default_rng(0), operator=JustInTime(Nearest(), minibatch=20, threshold=-3.0), oracle=GridOracle()
    )
    asked = [logistic.send("z", plate(seed), conduct).n_asked for seed in (0, 1, 2, 0)]
    assert asked[0] > asked[1] > 0 and asked[3] == 0
