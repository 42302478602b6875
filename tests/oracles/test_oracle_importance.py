"""Importance sampling against quadrature, by its own stated errors; and everything that must not go wrong in silence."""

import tracemalloc

import numpy as np
import pytest
from black_boxes import BLACK_BOXES, compound_gamma, logistic, product

from heliograph.errors import FactorError, ModelError, UnsupportedError
from heliograph.families import Bernoulli, Beta, Gamma, Gaussian, MultivariateGaussian
from heliograph.oracles import ImportanceOracle, QuadratureOracle, sampler_of

LOGISTIC = sampler_of(logistic, Beta)
PAPER = ImportanceOracle(20_000, proposal=Gaussian(0.0, 200.0), draws="random", adapt=False)


def ask(oracle, sampler, incoming, seed=0):
    return oracle.ask(np.random.default_rng(seed), sampler, incoming)


def logistic_plate(n, seed=1):
    return BLACK_BOXES["logistic"].incoming(np.random.default_rng(seed), n)


def z_scores(answer, exact):
    """Errors over stated errors: chart mean and log chart variance of both ports, plain statistics, and log Z."""
    scores = {}
    for port, belief in answer.beliefs.items():
        (m, v), (m0, v0) = belief.chart_moments(), exact.beliefs[port].chart_moments()
        error = np.sqrt(np.diagonal(answer.chart_covariances[port], axis1=1, axis2=2))
        scores[port, "chart mean"] = (m - m0) / error[:, 0]
        scores[port, "log chart variance"] = np.log(v / v0) / error[:, 1]
        pairs = zip(belief.expected_statistics(), exact.beliefs[port].expected_statistics(), strict=True)
        for k, (got, want) in enumerate(pairs):
            scores[port, k] = (got - want) / answer.standard_errors[port][k]
    scores["log Z"] = (answer.log_z - exact.log_z) / answer.log_z_error
    return scores


# ---- the stated errors are honest -----------------------------------------------------------------------------------
@pytest.mark.parametrize("oracle", [ImportanceOracle(4000, draws="random"), PAPER], ids=["defensive", "paper"])
def test_z_scores_of_plain_draws_have_unit_spread(oracle):
    incoming = logistic_plate(200)
    answer, exact = ask(oracle, LOGISTIC, incoming), ask(QuadratureOracle(), LOGISTIC, incoming)
    assert not answer.failed.any()
    for name, z in z_scores(answer, exact).items():
        assert 0.8 < z.std() < 1.2, name
        assert abs(z.mean()) < 4 / np.sqrt(200), name


def test_z_scores_of_sobol_draws_do_not_claim_too_much():
    incoming = logistic_plate(200)
    answer, exact = ask(ImportanceOracle(4096), LOGISTIC, incoming), ask(QuadratureOracle(), LOGISTIC, incoming)
    for name, z in z_scores(answer, exact).items():
        # a spread of 16 replicates is itself uncertain: a t variable with 15 degrees of freedom, and heavier where the
        # replicates are not Gaussian; too small errors would show as a spread far above 1
        assert np.median(np.abs(z)) < 0.85, name
        assert np.quantile(np.abs(z), 0.95) < 3.0, name
        assert 0.6 < z.std() < 1.5, name


def test_z_scores_of_gammas_have_unit_spread():
    rng = np.random.default_rng(3)
    n = 200
    sampler = sampler_of(lambda x: x**1.5, Gamma, name="power")
    incoming = {
        "x": Gamma(rng.uniform(2, 9, n), rng.uniform(0.5, 3, n)),
        "out": Gamma(rng.uniform(1, 5, n), rng.uniform(0.1, 3, n)),
    }
    exact, answer = (
        ask(QuadratureOracle(), sampler, incoming),
        ask(ImportanceOracle(4000, draws="random"), sampler, incoming),
    )
    assert not answer.failed.any()
    for name, z in z_scores(answer, exact).items():
        assert 0.8 < z.std() < 1.2, name


def test_z_scores_of_two_inputs_have_unit_spread():
    box = BLACK_BOXES["product"]
    incoming = box.incoming(np.random.default_rng(4), 200)
    answer, exact = ask(ImportanceOracle(8000, draws="random"), box.sampler, incoming), box.reference(incoming)
    assert not answer.failed.any()
    for port, belief in exact.items():
        error = np.sqrt(np.diagonal(answer.chart_covariances[port], axis1=1, axis2=2))
        assert 0.8 < ((answer.beliefs[port].mean - belief.mean) / error[:, 0]).std() < 1.2, port
        assert 0.8 < (np.log(answer.beliefs[port].variance / belief.variance) / error[:, 1]).std() < 1.25, port


def test_the_covariances_of_a_vector_belief_are_honest():
    mean, covariance = np.array([1.0, -0.5, 0.3]), np.diag([0.5, 1.0, 2.0]) + 0.2
    slope, v_out = np.array([1.0, 0.5, -0.7]), 0.8
    sampler = sampler_of(lambda x: x @ slope, Gaussian, name="dot")
    n = 150
    incoming = {
        "x": MultivariateGaussian(np.tile(mean, (n, 1)), np.tile(covariance, (n, 1, 1))),
        "out": Gaussian(np.full(n, 2.0), np.full(n, v_out)),
    }
    answer = ask(ImportanceOracle(4000, draws="random"), sampler, incoming)
    gain = covariance @ slope / (slope @ covariance @ slope + v_out)  # Kalman's, exact
    exact = MultivariateGaussian(mean + gain * (2.0 - slope @ mean), covariance - np.outer(gain, slope @ covariance))
    errors = answer.standard_errors["x"]
    for got, want, error in zip(
        answer.beliefs["x"].expected_statistics(), exact.expected_statistics(), errors, strict=True
    ):
        z = ((got - want) / error).reshape(n, -1)
        assert (np.abs(z.std(axis=0) - 1) < 0.25).all()
    chart = answer.chart_covariances["x"]
    d_cov = (answer.beliefs["x"].covariance - exact.covariance).reshape(n, 9)
    z = d_cov / np.sqrt(np.diagonal(chart, axis1=1, axis2=2))[:, 3:]
    assert (np.abs(z.std(axis=0) - 1) < 0.25).all()
    # the expected KL is what the KL is on average
    kl = exact.broadcast_to((n,)).kl(answer.beliefs["x"])
    assert 0.8 < kl.mean() / answer.expected_kl["x"].mean() < 1.25


def test_four_dimensional_vectors_and_sobol_draws():
    slope = np.array([1.0, 0.5, -0.7, 0.2])
    sampler = sampler_of(lambda x: x @ slope, Gaussian, name="dot")
    covariance = np.diag([0.5, 1.0, 2.0, 0.1]) + 0.05
    incoming = {
        "x": MultivariateGaussian(np.zeros((2, 4)), np.tile(covariance, (2, 1, 1))),
        "out": Gaussian([1.0, 9.0], [0.1, 0.1]),
    }
    answer = ask(ImportanceOracle(), sampler, incoming)
    gain = covariance @ slope / (slope @ covariance @ slope + 0.1)
    exact = MultivariateGaussian(
        np.outer([1.0, 9.0], gain), np.tile(covariance - np.outer(gain, slope @ covariance), (2, 1, 1))
    )
    assert not answer.failed.any()
    assert (exact.kl(answer.beliefs["x"]) < 5e-3).all()


def test_expected_kl_is_the_mean_of_the_kl():
    incoming = logistic_plate(200)
    answer, exact = (
        ask(ImportanceOracle(2000, draws="random"), LOGISTIC, incoming),
        ask(QuadratureOracle(), LOGISTIC, incoming),
    )
    for port in ("z", "out"):
        ratio = exact.beliefs[port].kl(answer.beliefs[port]) / answer.expected_kl[port]
        assert 0.8 < ratio.mean() < 1.25  # 200 draws of about chi-squared with 2 degrees of freedom, halved


# ---- the log domain -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("log_scale", [200 * np.log(10), -200 * np.log(10), 5000.0, -5000.0])
@pytest.mark.parametrize("draws", ["random", "sobol"])
def test_scaling_all_weights_changes_nothing_but_log_z(log_scale, draws):
    incoming = logistic_plate(6)
    oracle = ImportanceOracle(2000, draws=draws)

    def scaled(output, v):
        return output.axis.log_message(output.message, v) + log_scale

    plain = ask(oracle, LOGISTIC, incoming)
    other = oracle.ask(np.random.default_rng(0), LOGISTIC, incoming, scaled)
    np.testing.assert_allclose(other.log_z, plain.log_z + log_scale, rtol=1e-10)
    # 1e-9: a log weight near 5000 has three digits less than one near 1
    np.testing.assert_allclose(other.ess, plain.ess, rtol=1e-9)
    np.testing.assert_allclose(other.beliefs["z"].mean, plain.beliefs["z"].mean, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(other.beliefs["out"].a, plain.beliefs["out"].a, rtol=1e-9)
    np.testing.assert_array_equal(other.failed, plain.failed)


def test_messages_a_thousand_nats_apart_are_met_by_adapting():
    sampler = sampler_of(lambda a, b: a + b, Gaussian, name="sum")
    incoming = {"a": Gaussian([-3.0], [0.1]), "b": Gaussian([2.0], [0.2]), "out": Gaussian([30.0], [1.0])}
    answer = ask(ImportanceOracle(), sampler, incoming)
    total = 0.1 + 0.2 + 1.0
    assert not answer.failed.any()
    log_z = -0.5 * np.log(2 * np.pi * total) - 0.5 * 31.0**2 / total  # about -370
    assert abs(answer.log_z[0] - log_z) < 0.05
    exact = Gaussian([-3.0 + 0.1 / total * 31.0], [0.1 - 0.1**2 / total])
    assert exact.kl(answer.beliefs["a"])[0] < 1e-2


def test_a_narrow_belief_far_from_zero_keeps_its_digits():
    sampler = sampler_of(lambda x: x - 1e6, Gaussian, name="shift")
    answer = ask(ImportanceOracle(), sampler, {"x": Gaussian([1e6], [1e-4]), "out": Gaussian([0.01], [1e-4])})
    assert Gaussian([1e6 + 0.005], [0.5e-4]).kl(answer.beliefs["x"])[0] < 1e-5
    assert Gaussian([0.005], [0.5e-4]).kl(answer.beliefs["out"])[0] < 1e-5


# ---- never a number pretending --------------------------------------------------------------------------------------
def check_failed(answer, incoming):
    assert answer.failed.all()
    assert (answer.log_z == -np.inf).all()
    assert np.isposinf(answer.log_z_error).all()
    for port, belief in answer.beliefs.items():
        for got, given in zip(belief.naturals, incoming[port].naturals, strict=True):
            np.testing.assert_array_equal(got, given)
        assert np.isposinf(answer.expected_kl[port]).all()
        assert all(np.isposinf(e).all() for e in answer.standard_errors[port])


def test_all_weights_zero_is_a_failed_answer():
    sampler = sampler_of(lambda x: (x > 0) * 1, Bernoulli, name="positive")
    incoming = {"x": Gaussian([-50.0], [1.0]), "out": Bernoulli.point_mass([1.0])}
    check_failed(ask(ImportanceOracle(2000), sampler, incoming), incoming)


def test_weights_that_are_infinite_or_nan_are_a_failed_answer():
    incoming = logistic_plate(2)
    oracle = ImportanceOracle(2000)
    for value in (np.nan, np.inf):

        def broken(output, v, value=value):
            log_w = output.axis.log_message(output.message, v).copy()
            log_w[:, ::97] = value
            return log_w

        check_failed(oracle.ask(np.random.default_rng(0), LOGISTIC, incoming, broken), incoming)


def test_without_adapting_a_far_message_fails_and_the_rest_of_the_plate_does_not():
    incoming = {"z": Gaussian([0.0, 0.0, 0.0], [1.0, 1.0, 1.0]), "out": Beta([2.0, 1.0, 1.0], [1.0, 1e7, 2.0])}
    answer = ask(ImportanceOracle(4096, adapt=False), LOGISTIC, incoming)
    np.testing.assert_array_equal(answer.failed, [False, True, False])
    alone = ask(ImportanceOracle(4096, adapt=True), LOGISTIC, incoming)
    exact = ask(QuadratureOracle(), LOGISTIC, incoming)
    assert not alone.failed.any()
    assert (exact.beliefs["z"].kl(alone.beliefs["z"]) < 1e-3).all()


def test_a_belief_that_cannot_be_normalised_fails():
    oracle = ImportanceOracle(2048)
    answer = ask(oracle, LOGISTIC, {"z": Gaussian.uniform((1,)), "out": Beta([2.0], [1.0])})
    assert answer.failed.all()
    improper = Gaussian.from_naturals((np.array([0.0]), np.array([-1.0])))
    assert ask(oracle, LOGISTIC, {"z": improper, "out": Beta([2.0], [3.0])}).failed.all()


def test_too_few_effective_draws_fail():
    incoming = {"z": Gaussian([0.0], [1.0]), "out": Beta([400.0], [100.0])}
    assert ask(ImportanceOracle(64, adapt=False, draws="random"), LOGISTIC, incoming).failed.all()


# ---- bookkeeping ----------------------------------------------------------------------------------------------------
def test_the_same_seed_gives_the_same_bits():
    incoming = BLACK_BOXES["product"].incoming(np.random.default_rng(8), 20)
    for draws in ("random", "sobol"):
        first, second = (
            ask(ImportanceOracle(2048, draws=draws), sampler_of(product, Gaussian), incoming, seed=3) for _ in range(2)
        )
        np.testing.assert_array_equal(first.beliefs["a"].naturals, second.beliefs["a"].naturals)
        np.testing.assert_array_equal(first.log_z, second.log_z)
        third = ask(ImportanceOracle(2048, draws=draws), sampler_of(product, Gaussian), incoming, seed=4)
        assert (first.log_z != third.log_z).all()


def test_every_call_is_randomised_anew_and_rows_do_not_share_their_errors():
    rng = np.random.default_rng(0)
    incoming = {"z": Gaussian(np.zeros(60), np.full(60, 4.0)), "out": Beta(np.full(60, 2.0), np.ones(60))}
    exact = ask(QuadratureOracle(), LOGISTIC, {k: m[:1] for k, m in incoming.items()}).beliefs["z"].mean
    runs = np.stack(
        [ImportanceOracle(1024, adapt=False).ask(rng, LOGISTIC, incoming).beliefs["z"].mean for _ in range(2)]
    )
    errors = runs - exact
    assert abs(np.corrcoef(errors)[0, 1]) < 0.5
    assert abs(errors.mean()) < 0.5 * errors.std()  # 120 errors; one shared by all rows would be its own mean


def test_precision_doubles_the_draws_of_the_rows_that_need_it():
    incoming = logistic_plate(8)
    oracle = ImportanceOracle(256, draws="random", precision=0.01, budget=200_000)
    answer = ask(oracle, LOGISTIC, incoming)
    assert (answer.label_noise <= 0.01).all()
    exact = ask(QuadratureOracle(), LOGISTIC, incoming)
    for port in incoming:
        assert (exact.beliefs[port].kl(answer.beliefs[port]) < 10 * answer.expected_kl[port]).all()
    assert ask(ImportanceOracle(256, draws="random"), LOGISTIC, incoming).label_noise.max() > 0.03
    short = ask(ImportanceOracle(256, draws="random", adapt=False, precision=1e-6, budget=1024), LOGISTIC, incoming)
    assert short.n_evaluations == 8 * 1024  # said to stop there, and the errors say that it was not enough
    assert (short.label_noise > 1e-6).all()


def test_the_evaluations_counted_are_the_evaluations_made():
    calls = []

    def counted(a, b):
        calls.append(len(a))
        return a * b

    sampler = sampler_of(counted, Gaussian)
    incoming = BLACK_BOXES["product"].incoming(np.random.default_rng(11), 12)
    for oracle in (ImportanceOracle(1024), ImportanceOracle(512, precision=0.02), QuadratureOracle(1e-4)):
        calls.clear()
        answer = ask(oracle, sampler, incoming)
        assert answer.n_evaluations == sum(calls), oracle


def test_memory_does_not_grow_with_the_number_of_draws():
    incoming = logistic_plate(100)

    def peak(n_samples):
        tracemalloc.start()
        ask(ImportanceOracle(n_samples, proposal=Gaussian(0.0, 200.0), draws="random", adapt=False), LOGISTIC, incoming)
        top = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return top

    few, many = peak(3_000), peak(30_000)
    assert many < 3 * few  # the tail of the weights grows as the square root of the draws
    assert many < 60e6  # a single array of all draws would have 24 MB, and twenty are needed


def test_a_broken_factor_is_named():
    sampler = sampler_of(lambda z: np.log(z), Gaussian, name="unsafe")
    with pytest.raises(FactorError, match=r"factor 'unsafe' returned nan at z=-"):
        ask(ImportanceOracle(), sampler, {"z": Gaussian([0.0], [1.0]), "out": Gaussian([0.0], [1.0])})


def test_wrong_incoming_messages_are_named():
    with pytest.raises(ModelError, match=r"'logistic' needs a message at every port; \['out'\]"):
        ask(ImportanceOracle(), LOGISTIC, {"z": Gaussian([0.0], [1.0])})
    with pytest.raises(UnsupportedError, match="gives a Beta, but the message at port 'out' is a Gaussian"):
        ask(ImportanceOracle(), LOGISTIC, {"z": Gaussian([0.0], [1.0]), "out": Gaussian([0.0], [1.0])})
    with pytest.raises(ModelError, match="one plate shape"):
        ask(ImportanceOracle(), LOGISTIC, {"z": Gaussian([0.0], [1.0]), "out": Beta([1.0, 1.0], [1.0, 1.0])})
    sampler = sampler_of(lambda x, t: x + t, Gaussian, name="add")
    with pytest.raises(ModelError, match="data at port 't' of factor 'add' has 3 rows for 1 messages"):
        ask(ImportanceOracle(), sampler, {"x": Gaussian([0.0], [1.0]), "t": np.zeros(3), "out": Gaussian([0.0], [1.0])})
    spread = sampler_of(lambda x: np.zeros((len(x), 3)), MultivariateGaussian, name="spread")
    out = MultivariateGaussian(np.zeros((1, 2)), np.eye(2)[None])
    with pytest.raises(FactorError, match="vectors of length 3, but the message at port 'out' has dimension 2"):
        ask(ImportanceOracle(), spread, {"x": Gaussian([0.0], [1.0]), "out": out})


def test_a_factor_of_pure_noise_needs_no_random_input():
    answer = ask(ImportanceOracle(65_536), sampler_of(compound_gamma, Gamma), {"out": Gamma([6.0], [5.0])})
    exact = BLACK_BOXES["compound gamma"].reference({"out": Gamma([6.0], [5.0])})["out"]
    assert exact.kl(answer.beliefs["out"])[0] < 1e-3
