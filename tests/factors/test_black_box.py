"""Black boxes as factors: called like functions, asked through oracles, exact about what they cost and what goes wrong."""

from __future__ import annotations

import pickle
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import norm

from heliograph.errors import FactorError, ModelError, UnsupportedError
from heliograph.factors.black_box import BlackBox, RunOptions, factor, oracle_named
from heliograph.factors.black_box.oracle_calls import same_plates
from heliograph.families import Beta, Gamma, Gaussian, MultivariateGaussian
from heliograph.graph.shared import Shared
from heliograph.operators import Kjit, LogNormalisers, Reply
from heliograph.operators.learned.decide import RARE
from heliograph.oracles import AutomaticOracle, ImportanceOracle

QUICK = ImportanceOracle(2048)


@factor(output=Beta)
def logistic(z):
    """The sigmoid."""
    return 1 / (1 + np.exp(-z))


@factor(output=Gaussian)
def product(a, b):
    return a * b


def incoming(n=6, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    return {"z": Gaussian(rng.normal(0, 2, n), rng.uniform(0.5, 4, n)), "out": Beta(1.0 + y, 2.0 - y)}


@pytest.fixture(autouse=True)
def forgetful():
    logistic.forget()
    product.forget()


def exact_z(z, out):
    """Moments of z by scipy's quadrature, one tuple at a time."""
    w = lambda x: norm.pdf(x, z.mean, np.sqrt(z.variance)) * expit(x) ** (out.a - 1) * expit(-x) ** (out.b - 1)  # noqa: E731
    low, high = z.mean - 12 * np.sqrt(z.variance), z.mean + 12 * np.sqrt(z.variance)
    moments = [quad(lambda x, k=k: w(x) * x**k, low, high, epsabs=1e-13, limit=200)[0] for k in range(3)]
    return Gaussian(moments[1] / moments[0], moments[2] / moments[0] - (moments[1] / moments[0]) ** 2), np.log(
        moments[0]
    )


# ---- as a function ---------------------------------------------------------------------------------------------------
def test_on_arrays_it_is_the_function_it_was():
    np.testing.assert_array_equal(logistic(np.zeros(3)), 0.5)
    assert logistic.__doc__ == "The sigmoid." and logistic.__name__ == "logistic"
    assert logistic.ports == ("z", "out") and logistic.child == "out" and logistic.learns


def test_on_variables_it_becomes_part_of_their_model():
    class Model:
        def _black_box(self, which, arguments):
            return which, arguments

    class Variable:
        shape = (3,)
        model = Model()

    x = Variable()
    assert logistic(x) == (logistic, {"z": x})
    which, arguments = product(b=2.0, a=x)
    assert which is product and arguments == {"a": x, "b": 2.0}


def test_defaults_are_data_and_the_engines_arguments_are_refused():
    class Variable:
        shape = (3,)
        model = type("M", (), {"_black_box": lambda self, f, arguments: arguments})()

    @factor(output=Gaussian)
    def noisy(x, scale=2.0, *, rng):
        return x * scale + rng.standard_normal(len(x))

    x = Variable()
    assert noisy(x) == {"x": x, "scale": 2.0}
    assert noisy.ports == ("x", "scale", "out")
    with pytest.raises(ModelError, match="given by the engine"):
        noisy(x, rng=np.random.default_rng(0))
    with pytest.raises(ModelError, match=r"takes \['x', 'scale'\]"):
        noisy(x, 1.0, 2.0)


def test_vector_data_beside_a_plate_is_one_vector_a_message():
    class Variable:
        shape = (5,)
        model = type("M", (), {"_black_box": lambda self, f, arguments: arguments})()

    def make(**more):
        @factor(output=Gaussian, **more)
        def range_to(position, anchor):
            return np.hypot(*(position - anchor).T)

        return range_to

    one = make()
    one(Variable(), np.zeros((5, 2)))
    assert one.data_ranks == {"anchor": 1}
    with pytest.raises(ModelError, match=r"data_ranks=\{'anchor': 1\}"):
        make()(Variable(), np.zeros((2, 5)))
    make(data_ranks={"anchor": 1})(Variable(), np.zeros(2))
    with pytest.raises(ModelError, match=r"has no inputs \['where'\]"):
        make(data_ranks={"where": 1})


def test_the_decorator_says_what_it_misses():
    with pytest.raises(ModelError, match="needs the family of the function's result"):
        factor(lambda z: z)
    with pytest.raises(ModelError, match="needs the family"):
        factor(output=3)
    with pytest.raises(ModelError, match="cannot be ports"):
        factor(output=Gaussian)(lambda *z: z)
    assert isinstance(factor(lambda z: z, output=Gaussian, name="same"), BlackBox)


def test_calling_it_on_messages_points_to_message():
    with pytest.raises(ModelError, match=r"\.message\(to, incoming\)"):
        logistic(Gaussian(0.0, 1.0))


# ---- messages outside a graph ----------------------------------------------------------------------------------------
def test_belief_and_log_z_agree_with_scipys_quadrature():
    rows = incoming()
    belief = logistic.belief("z", rows)
    log_z = logistic.log_z(rows)
    message = logistic.message("z", rows)
    for i in range(6):
        exact, log_mass = exact_z(rows["z"][i], rows["out"][i])
        # the default oracle's 16,384 quasi-random draws are good to about 1e-4 of a standard deviation
        assert exact.kl(belief[i]) < 1e-5
        density = -np.log(np.exp(rows["out"][i].log_normaliser()))
        assert abs(log_z[i] - log_mass - density) < 1e-3
        np.testing.assert_allclose((message[i] * rows["z"][i]).mean, belief[i].mean)


def test_the_seed_decides_every_bit():
    rows = incoming()
    a, b, c = (logistic.belief("z", rows, oracle=QUICK, seed=s).mean for s in (1, 1, 2))
    np.testing.assert_array_equal(a, b)
    assert (a != c).all()


def test_ports_powers_and_missing_messages_are_refused_with_a_sentence():
    with pytest.raises(UnsupportedError, match="sends no message to 'w'"):
        logistic.message("w", incoming())
    with pytest.raises(UnsupportedError, match=r"no power 0\.5"):
        logistic.message("z", incoming(), 0.5)
    with pytest.raises(ModelError, match=r"\['out'\] have none"):
        logistic.belief("z", {"z": Gaussian([0.0], 1.0)})


def test_an_oracle_that_cannot_answer_is_an_error_and_not_a_number():
    @factor(output=Gaussian)
    def constant(x):
        return np.full(len(x), 7.0)

    rows = {"x": Gaussian([0.0], 1.0), "out": Gaussian([7.0 + 1e9], 1e-6)}
    with pytest.raises(FactorError, match="could not answer 1 of 1"):
        constant.belief("x", rows, oracle=QUICK)


def test_oracles_are_chosen_by_name_or_given_as_objects():
    assert isinstance(oracle_named(None), AutomaticOracle) and oracle_named(QUICK) is QUICK
    with pytest.raises(ModelError, match="there is no oracle 'exact'"):
        oracle_named("exact")
    with pytest.raises(ModelError, match="needs a method `ask`"):
        oracle_named(3)


# ---- messages in a run -----------------------------------------------------------------------------------------------
def test_what_it_learns_is_its_own_and_shared_by_every_run():
    rows = incoming(80)
    first = logistic.send("z", rows, RunOptions(np.random.default_rng(0), Kjit(60, 80, minibatch=60), QUICK))
    second = logistic.send("z", rows, RunOptions(np.random.default_rng(9), Kjit(60, 80, minibatch=60), QUICK))
    assert first.n_asked >= 60 and second.n_asked == 0
    assert logistic.n_asked == first.n_asked and logistic.n_messages == 160
    assert logistic.n_evaluations == first.n_evaluations > 60 * 2048
    logistic.forget()
    third = logistic.send("z", rows, RunOptions(np.random.default_rng(0), Kjit(60, 80, minibatch=60), QUICK))
    assert third.n_asked == first.n_asked == logistic.n_asked


def test_operators_of_other_settings_are_kept_apart():
    assert logistic.operator("kjit") is logistic.operator("kjit") is logistic.operator(Kjit())
    assert logistic.operator(Kjit(threshold=-9.0)) is not logistic.operator("kjit")
    assert product.operator(Kjit()) is not logistic.operator(Kjit())


def test_one_run_of_the_oracle_answers_every_direction_about_the_same_messages():
    rows = incoming(10)
    options = RunOptions(np.random.default_rng(0), "ask", QUICK)
    to_z = logistic.send("z", rows, options)
    to_out = logistic.send("out", dict(rows), options)
    assert (to_z.n_asked, to_out.n_asked) == (10, 0) and to_out.asked.all()
    assert logistic.send("out", rows, options).n_asked == 10, "the same direction again wants draws of its own"
    assert logistic.send("z", incoming(10, seed=1), options).n_asked == 10
    other = {"z": rows["z"], "out": Beta.point_mass(np.full(10, np.nan))}
    assert logistic.send("z", other, options).n_asked == 10


def test_messages_are_the_same_only_if_every_number_and_point_is():
    here, there, nowhere = Gaussian.point_mass([1.0]), Gaussian.point_mass([2.0]), Gaussian.uniform((1,))
    data = np.array([3.0])
    assert same_plates({"x": here, "t": data}, {"x": Gaussian.point_mass([1.0]), "t": data.copy()})
    for other in (there, nowhere, Gaussian([1.0], 1.0)):
        assert not same_plates({"x": here}, {"x": other}) and not same_plates({"x": other}, {"x": here})
    assert not same_plates({"t": data}, {"t": data + 1})


def test_time_and_calls_are_accounted_for():
    reply = logistic.send("z", incoming(40), RunOptions(np.random.default_rng(0), "ask", QUICK))
    assert reply.n_asked == 40 and reply.seconds_oracle > 0 and reply.n_evaluations >= 40 * 2048
    assert reply.asked.all() and reply.log_variance is None


@pytest.mark.parametrize("n_workers", [1, 2, 3])
def test_the_number_of_workers_changes_no_bit(n_workers):
    rows = incoming(100)
    alone = logistic.send("z", rows, RunOptions(np.random.default_rng(3), "ask", QUICK))
    with ThreadPoolExecutor(n_workers) as executor:
        shared = logistic.send("z", rows, RunOptions(np.random.default_rng(3), "ask", QUICK, executor=executor))
    np.testing.assert_array_equal(alone.message.naturals[0], shared.message.naturals[0])
    np.testing.assert_array_equal(alone.message.naturals[1], shared.message.naturals[1])
    assert alone.n_evaluations == shared.n_evaluations and shared.n_asked == 100


def test_other_processes_find_the_factor_by_its_name():
    assert pickle.loads(pickle.dumps(logistic)) is logistic
    with ProcessPoolExecutor(1) as executor:
        rows = incoming(40)
        shared = logistic.send("z", rows, RunOptions(np.random.default_rng(3), "ask", QUICK, executor=executor))
        alone = logistic.send("z", rows, RunOptions(np.random.default_rng(3), "ask", QUICK))
        np.testing.assert_array_equal(alone.message.naturals[1], shared.message.naturals[1])

        @factor(output=Beta)
        def local(z):
            return expit(z)

        with pytest.raises(ModelError, match="cannot be sent to another process"):
            local.send("z", rows, RunOptions(np.random.default_rng(3), "ask", QUICK, executor=executor))


def test_a_function_that_raises_is_an_error_that_names_it_and_what_was_answered_is_kept():
    calls = []

    @factor(output=Beta)
    def fragile(z):
        calls.append(len(z))
        if (z > 50).any():
            raise ValueError("too large")
        return expit(z)

    rows = incoming(64)
    mean = rows["z"].mean.copy()
    mean[40] = 100.0  # in the second part of 32 rows
    rows["z"] = Gaussian(mean, 1.0)
    with pytest.raises(FactorError, match=r"factor 'fragile' raised ValueError: too large"):
        fragile.send("z", rows, RunOptions(np.random.default_rng(0), "kjit", QUICK))
    (direction,) = fragile.operators["kjit"].directions.values()
    assert direction.n_waiting == 32 == fragile.n_asked
    with ThreadPoolExecutor(2) as executor, pytest.raises(FactorError, match="too large"):
        fragile.send("out", rows, RunOptions(np.random.default_rng(0), "kjit", QUICK, executor=executor))
    assert fragile.operators["kjit"].directions["out | z Gaussian, out Beta"].n_waiting == 32


def test_an_interruption_in_the_middle_keeps_the_parts_that_were_paid_for():
    seen = []

    @factor(output=Beta)
    def interrupted(z):
        seen.append(len(z))
        if len(seen) > 40:
            raise KeyboardInterrupt
        return expit(z)

    with pytest.raises(KeyboardInterrupt):
        interrupted.send("z", incoming(300), RunOptions(np.random.default_rng(0), "kjit", QUICK))
    (direction,) = interrupted.operators["kjit"].directions.values()
    assert direction.n_waiting == interrupted.n_asked > 0
    assert direction.n_waiting % 32 == 0


def test_an_expensive_factor_is_asked_row_by_row_so_that_workers_can_share_a_few():
    parts = []

    class Oracle:
        def ask(self, rng, sampler, rows):
            parts.append(len(rows["z"]))
            return QUICK.ask(rng, sampler, rows)

    dear = factor(lambda z: expit(z), output=Beta, expensive=True, name="dear")
    dear.send("z", incoming(5), RunOptions(np.random.default_rng(0), "ask", Oracle()))
    assert parts == [1] * 5


def said(options, to, asked, nats, failed=()):
    """Note a reply in which some rows were asked about, with what they may be wrong by; the messages say all there is."""
    asked, n = np.array(asked), len(asked)
    message = Gaussian(np.zeros(n), 1.0)
    reply = Reply(message, np.isin(np.arange(n), failed), asked, expected_kl=None if nats is None else np.array(nats))
    options.note(logistic, to, {to: message.as_uniform()}, reply, options.setting(logistic))


def test_the_run_adds_up_how_wrong_its_messages_may_be():
    options = RunOptions(np.random.default_rng(0))
    said(options, "z", [False, False], [0.1, 0.2])
    said(options, "z", [False], [0.3])
    said(options, "out", [True], [1.0])
    # each row has an unknown of its own: errors add, an oracle's own beside them
    assert options.error_estimate() == pytest.approx(RARE * (0.1 + 0.2 + 0.3 + 1.0))
    said(options, "z", [False] * 3, [0.05] * 3)  # a new sweep replaces what it sends again
    assert options.error_estimate() == pytest.approx(RARE * (3 * 0.05 + 1.0))


def test_errors_of_rows_that_share_an_unknown_pull_together():
    options = RunOptions(np.random.default_rng(0), shared={id(logistic): Shared(100, 5, 100)})
    said(options, "z", [False] * 100, [1e-6] * 100)
    assert options.error_estimate() == pytest.approx(RARE * 100**2 * 1e-6 / 5)


def test_a_row_that_failed_makes_the_estimate_infinite_until_it_is_answered():
    options = RunOptions(np.random.default_rng(0))
    said(options, "z", [True, True], [0.0, np.inf], failed=[1])
    said(options, "out", [False], None)  # unknown, but not the worst
    assert options.error_estimate() == np.inf
    said(options, "z", [True, True], [0.0, 0.0])
    said(options, "out", [True], [0.0])
    assert options.error_estimate() == 0.0


def test_a_prediction_that_nobody_vouches_for_makes_the_estimate_unknown_and_not_zero():
    options = RunOptions(np.random.default_rng(0))
    said(options, "z", [True, True], None)
    assert options.error_estimate() == 0.0
    said(options, "z", [True, False], None)
    assert np.isnan(options.error_estimate())


def test_log_z_of_a_run_is_what_its_operator_learned_or_its_oracle_says():
    rows = incoming()
    options = RunOptions(np.random.default_rng(0), "ask", QUICK)
    np.testing.assert_array_equal(logistic.log_z(rows, options=options), logistic.log_z(rows, oracle=QUICK))

    class Knows:
        def send(self, rng, to, incoming, ask, setting):
            raise AssertionError

        def log_z(self, rng, incoming, ask, setting):
            return LogNormalisers(ask(incoming).log_z + 1.0, n_evaluations=0)

    knows = RunOptions(np.random.default_rng(0), Knows(), QUICK)
    np.testing.assert_allclose(logistic.log_z(rows, options=knows), logistic.log_z(rows) + 1.0, atol=0.02)


# ---- several inputs, data, vectors, chance ---------------------------------------------------------------------------
def test_two_inputs_are_answered_together_in_every_direction():
    rng = np.random.default_rng(0)
    rows = {
        "a": Gaussian(rng.uniform(2, 3, 5), 0.2),
        "b": Gaussian(rng.uniform(2, 3, 5), 0.2),
        "out": Gaussian(rng.uniform(4, 9, 5), 1.0),
    }
    answer = product.ask(rows)
    for i in range(5):
        ma, mb, mo = (float(rows[p].mean[i]) for p in ("a", "b", "out"))
        a, b = np.meshgrid(np.linspace(ma - 4, ma + 4, 801), np.linspace(mb - 4, mb + 4, 801))
        w = np.exp(-0.5 * ((a - ma) ** 2 + (b - mb) ** 2) / 0.2 - 0.5 * (a * b - mo) ** 2)
        w /= w.sum()
        for port, x in (("a", a), ("b", b), ("out", a * b)):
            mean = (w * x).sum()
            exact = Gaussian(mean, (w * (x - mean) ** 2).sum())
            assert exact.kl(answer.beliefs[port][i]) < 1e-4


def test_data_stochastic_functions_and_plain_python_work_alike():
    @factor(output=Gaussian)
    def vector(x, shift):
        return x + shift

    @factor(output=Gaussian, vectorized=False)
    def each(x, shift):
        return x + shift if shift > 0 else x - abs(shift)

    @factor(output=Gaussian)
    def noisy(x, shift, rng):
        return x + shift + 1e-9 * rng.standard_normal(len(x))

    rows = {"x": Gaussian([0.0, 1.0], 1.0), "shift": np.array([2.0, -1.0]), "out": Gaussian([1.0, 1.0], 1.0)}
    exact = Gaussian([-0.5, 1.5], 0.5)  # x + shift + noise of variance 1 observed at 1
    for f in (vector, each, noisy):
        belief = f.belief("x", rows, oracle=ImportanceOracle(4096))
        assert np.max(exact.kl(belief)) < 1e-4, f.name


def test_vector_inputs_are_learned_in_their_own_coordinates():
    @factor(output=Gaussian)
    def total(x):
        return x.sum(axis=1)

    rng = np.random.default_rng(0)
    n = 150
    root = rng.normal(size=(n, 3, 3)) * 0.3
    x = MultivariateGaussian(rng.normal(size=(n, 3)), root @ np.swapaxes(root, 1, 2) + 0.5 * np.eye(3))
    rows = {"x": x, "out": Gaussian(rng.normal(size=n), 1.0)}
    one = np.ones(3)
    precision = x.naturals[1] + np.outer(one, one)
    exact = MultivariateGaussian.from_naturals((x.naturals[0] + rows["out"].mean[:, None] * one, precision))
    options = RunOptions(np.random.default_rng(0), Kjit(100, 200, minibatch=100, threshold=-4.0), QUICK)
    reply = total.send("x", rows, options)
    kl = exact.kl(reply.message * x)
    # 2,048 draws for nine numbers: about 2e-3 nats, and the largest of a hundred is ten times that
    assert np.max(kl[reply.asked]) < 2e-2 and (~reply.asked).sum() > 0
    assert np.median(kl[~reply.asked]) < 0.2


def test_a_gamma_output_goes_through_as_well():
    @factor(output=Gamma)
    def rate(x):
        return np.exp(x)

    rows = {"x": Gaussian(np.linspace(-1, 1, 30), 0.5), "out": Gamma(np.full(30, 3.0), 2.0)}
    options = RunOptions(np.random.default_rng(0), Kjit(60, 80, minibatch=25), QUICK)
    reply = rate.send("out", rows, options)
    assert reply.asked[:25].all() and not reply.failed.any()
    assert (reply.message * rows["out"]).proper.all()
