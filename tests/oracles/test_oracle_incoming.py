"""Importance sampling with every kind of incoming message: improper, known, discrete, vague, on the edge."""

import numpy as np
import pytest
from black_boxes import BLACK_BOXES, logistic, product
from scipy.special import expit, ndtr

from heliograph.errors import ModelError, UnsupportedError
from heliograph.families import Bernoulli, Beta, Categorical, Dirichlet, Gamma, Gaussian
from heliograph.oracles import ImportanceOracle, QuadratureOracle, sampler_of

LOGISTIC = sampler_of(logistic, Beta)
PAPER = ImportanceOracle(20_000, proposal=Gaussian(0.0, 200.0), draws="random", adapt=False)


def ask(oracle, sampler, incoming, seed=0):
    return oracle.ask(np.random.default_rng(seed), sampler, incoming)


# ---- incoming messages of every kind --------------------------------------------------------------------------------
def test_uniform_and_improper_inputs_are_found_by_a_fitted_proposal():
    sampler = sampler_of(lambda a, b: a + b, Gaussian, name="sum")
    v = np.array([0.01, 0.01])
    flat = Gaussian.from_naturals((np.zeros(2), np.array([0.0, -2.0])))  # uniform; precision -2
    incoming = {"a": flat, "b": Gaussian([2.0, 2.0], v), "out": Gaussian([46.0, 46.0], v)}
    answer = ask(ImportanceOracle(), sampler, incoming)
    precision = 1 / (v + v) + np.array([0.0, -2.0])
    assert not answer.failed.any()
    assert (Gaussian(44 / (2 * v) / precision, 1 / precision).kl(answer.beliefs["a"]) < 1e-3).all()
    np.testing.assert_allclose(answer.log_z[0], 0.0, atol=0.02)  # a uniform message is the constant 1


def test_a_fixed_proposal_is_used_for_uniform_inputs_too():
    incoming = {"z": Gaussian.uniform((1,)), "out": Beta([3.0], [4.0])}
    answer, exact = ask(PAPER, LOGISTIC, incoming), ask(QuadratureOracle(), LOGISTIC, incoming)
    assert exact.beliefs["z"].kl(answer.beliefs["z"])[0] < 1e-2
    with pytest.raises(ModelError, match="proposal for port 'z' must be a Gaussian"):
        ask(ImportanceOracle(proposal=Gamma(1.0, 1.0)), LOGISTIC, incoming)
    with pytest.raises(ModelError, match="must be proper"):
        ask(ImportanceOracle(proposal=Gaussian.uniform()), LOGISTIC, incoming)


def test_point_mass_inputs_are_data_and_keep_their_belief():
    sampler = sampler_of(product, Gaussian)
    a = Gaussian([2.0, 1.0, -3.0], [0.0, 0.5, 0.0])
    incoming = {
        "a": a,
        "b": Gaussian([1.0, 1.0, 1.0], [1.0, 1.0, 1.0]),
        "out": Gaussian([3.0, 2.0, 1.0], [1.0, 1.0, 1.0]),
    }
    answer = ask(ImportanceOracle(), sampler, incoming)
    np.testing.assert_array_equal(answer.beliefs["a"].is_point, [True, False, True])
    np.testing.assert_array_equal(answer.beliefs["a"].mean[[0, 2]], [2.0, -3.0])
    for i, k in ((0, 2.0), (2, -3.0)):  # out = k b is a conjugate update
        precision = 1 + k**2
        exact = Gaussian((1 + k * incoming["out"].mean[i]) / precision, 1 / precision)
        assert exact.kl(answer.beliefs["b"][i]) < 1e-5
    assert answer.standard_errors["a"][0][0] == 0.0
    # the same as data in a plain array
    as_data = ask(ImportanceOracle(), sampler, {**incoming, "a": np.array([2.0, 1.0, -3.0])})
    assert "a" not in as_data.beliefs
    assert Gaussian(answer.beliefs["b"].mean[0], answer.beliefs["b"].variance[0]).kl(as_data.beliefs["b"][0]) < 1e-4


def test_a_deterministic_function_of_known_inputs_is_a_point_mass():
    sampler = sampler_of(product, Gaussian)
    answer = ask(
        ImportanceOracle(),
        sampler,
        {"a": np.array([2.0]), "b": Gaussian.point_mass([3.0]), "out": Gaussian([5.0], [4.0])},
    )
    assert answer.beliefs["out"].is_point.all() and answer.beliefs["out"].mean == 6.0
    np.testing.assert_allclose(answer.log_z, Gaussian([5.0], [4.0]).log_density(6.0))
    assert answer.n_evaluations == 1


def test_an_observed_continuous_output_is_refused_with_the_remedies():
    for sampler in (LOGISTIC, sampler_of(lambda z, rng: expit(z + rng.standard_normal(z.shape)), Beta, name="noisy")):
        for oracle in (ImportanceOracle(), QuadratureOracle()):
            if sampler.stochastic and isinstance(oracle, QuadratureOracle):
                continue
            with pytest.raises(UnsupportedError, match=r"observed exactly.*noise.*oracle='abc'"):
                ask(oracle, sampler, {"z": Gaussian([0.0], [1.0]), "out": Beta.point_mass([0.3])})


def test_an_observed_label_of_a_stochastic_factor_is_matched_exactly():
    incoming = {"x": Gaussian([0.5, -1.0], [2.0, 3.0]), "out": Bernoulli.point_mass([1.0, 0.0])}
    answer = ask(ImportanceOracle(precision=0.02), BLACK_BOXES["noisy sign"].sampler, incoming)
    scale = np.sqrt(1 + incoming["x"].variance)
    np.testing.assert_allclose(np.exp(answer.log_z), ndtr(np.array([0.5, 1.0]) / scale), rtol=0.01)
    assert answer.beliefs["out"].is_point.all()
    soft = BLACK_BOXES["noisy sign"].reference({"x": incoming["x"], "out": Bernoulli([1 - 1e-12, 1e-12])})
    assert (soft["x"].kl(answer.beliefs["x"]) < 1e-3).all()


def test_a_categorical_output_and_a_discrete_input():
    def band(x, shift):
        return np.digitize(x + shift, [-1.0, 1.0])

    sampler = sampler_of(band, Categorical)
    p = np.array([[0.2, 0.5, 0.3], [1 / 3, 1 / 3, 1 / 3]])
    incoming = {"x": Gaussian([0.3, -2.0], [1.0, 2.0]), "shift": Bernoulli([0.7, 0.2]), "out": Categorical(p)}
    answer, exact = ask(ImportanceOracle(65_536), sampler, incoming), ask(QuadratureOracle(), sampler, incoming)
    for port in incoming:
        assert (exact.beliefs[port].kl(answer.beliefs[port]) < 1e-4).all(), port
    np.testing.assert_allclose(answer.log_z, exact.log_z, atol=1e-3)
    observed = {**incoming, "out": Categorical.point_mass([2, 0], 3)}
    answer, exact = ask(ImportanceOracle(65_536), sampler, observed), ask(QuadratureOracle(), sampler, observed)
    assert (exact.beliefs["x"].kl(answer.beliefs["x"]) < 1e-3).all()


def test_a_value_no_draw_showed_is_not_held_impossible():
    sampler = sampler_of(lambda x, rng: (x > 0) * 1, Bernoulli, name="sign")
    answer = ask(ImportanceOracle(4096), sampler, {"x": Gaussian([40.0], [1.0]), "out": Bernoulli([0.5])})
    assert not answer.beliefs["out"].is_point.any()
    assert 0.999 < answer.beliefs["out"].p[0] < 1.0
    assert answer.standard_errors["out"][0][0] > 1e-5  # half a draw in four thousand


def test_a_simplex_input_and_output():
    sampler = sampler_of(lambda w: w[:, ::-1], Dirichlet, name="mirror")
    c, k = np.array([[2.0, 1.0, 4.0]]), np.array([[3.0, 2.0, 1.5]])
    answer = ask(ImportanceOracle(), sampler, {"w": Dirichlet(c), "out": Dirichlet(k)})
    exact = Dirichlet(c + k[:, ::-1] - 1)
    assert exact.kl(answer.beliefs["w"])[0] < 1e-4
    assert Dirichlet(exact.concentration[:, ::-1]).kl(answer.beliefs["out"])[0] < 1e-4


# ---- samples are projected on their own statistics ------------------------------------------------------------------
def test_output_samples_are_projected_by_the_statistics_of_their_family():
    sampler = sampler_of(lambda x: np.exp(x), Gamma, name="exp")
    x = Gaussian([0.3], [0.8])
    answer = ask(ImportanceOracle(65_536), sampler, {"x": x, "out": Gamma.uniform((1,))})
    # E x and E log x of a log-normal; matching mean and variance instead would give shape 1 / (e^0.8 - 1)
    exact = Gamma.from_statistics(np.exp(x.mean + 0.4), x.mean)
    assert exact.kl(answer.beliefs["out"])[0] < 1e-6


def test_a_probability_that_rounds_to_one_costs_digits_not_nan():
    incoming = {"z": Gaussian([34.0, 38.0, 500.0], [9.0, 9.0, 9.0]), "out": Beta(np.full(3, 2.0), np.ones(3))}
    answer = ask(ImportanceOracle(), LOGISTIC, incoming)
    assert not answer.failed.any()
    np.testing.assert_allclose(answer.beliefs["z"].mean, incoming["z"].mean, rtol=1e-4)
    np.testing.assert_allclose(answer.beliefs["z"].variance, 9.0, rtol=1e-3)
    # what lies beyond the last double below 1 is not known, and the stated error says so: E log(1 - p) is -34, -38, -500
    error = answer.standard_errors["out"][1]
    got = answer.beliefs["out"].expected_statistics()[1]
    assert 1 < error[0] < 20
    assert abs(got[0] + 34) < error[0]
    # where most of the output is beyond it, nothing is known of it at all
    np.testing.assert_array_equal(np.isinf(error), [False, True, True])
    np.testing.assert_array_equal(answer.beliefs["out"].a[1:], 2.0)
    assert np.isfinite(answer.label_noise).all()


def test_the_errors_of_a_lopsided_beta_are_honest():
    # p is so near 1 that its Beta has a of 1e8: the errors must survive the cancellation in its Fisher matrix
    n = 200
    incoming = {"z": Gaussian(np.full(n, 20.0), np.full(n, 1.5)), "out": Beta(np.full(n, 2.0), np.full(n, 1.0))}
    answer = ask(ImportanceOracle(2000, draws="random"), LOGISTIC, incoming)
    exact = ask(QuadratureOracle(), LOGISTIC, {k: m[:1] for k, m in incoming.items()})
    (m, v), (m0, v0) = answer.beliefs["out"].chart_moments(), exact.beliefs["out"].chart_moments()
    error = np.sqrt(np.diagonal(answer.chart_covariances["out"], axis1=1, axis2=2))
    assert 0.85 < ((m - m0) / error[:, 0]).std() < 1.15
    assert 0.85 < (np.log(v / v0) / error[:, 1]).std() < 1.15
    kl = exact.beliefs["out"].broadcast_to((n,)).kl(answer.beliefs["out"])
    assert 0.7 < kl.mean() / answer.expected_kl["out"].mean() < 1.4


def test_outputs_on_an_edge_where_the_message_is_steep_fail():
    # (1 - p)^2 at p = 1.0 says nothing of how small the weight is: all draws lie beyond the last double
    incoming = {"z": Gaussian([60.0, 60.0], [4.0, 4.0]), "out": Beta([2.0, 2.0], [3.0, 1.0])}
    np.testing.assert_array_equal(ask(ImportanceOracle(4096), LOGISTIC, incoming).failed, [True, False])
    np.testing.assert_array_equal(ask(QuadratureOracle(), LOGISTIC, incoming).failed, [True, False])


def test_what_happens_near_zero_is_seen_behind_a_very_broad_message():
    # the draws of N(4, 2e7) all sit where tanh is -1 or 1, with equal weights: 270,000 nats from the truth and content
    sampler = sampler_of(lambda x: np.tanh(x), Gaussian, name="tanh")
    incoming = {"x": Gaussian([4.0], [2e7]), "out": Gaussian([0.2], [1e-6])}
    answer, exact = ask(ImportanceOracle(4096), sampler, incoming), ask(QuadratureOracle(), sampler, incoming)
    assert not answer.failed.any()
    assert exact.beliefs["x"].kl(answer.beliefs["x"])[0] < 1e-2


def test_an_expectation_that_rests_on_few_draws_has_a_large_stated_error():
    # weights of 1 throughout, but E exp(x) of N(0, 36) rests on draws six standard deviations out
    sampler = sampler_of(lambda x: np.exp(x), Gamma, name="exp")
    incoming = {"x": Gaussian(np.zeros(20), np.full(20, 36.0)), "out": Gamma.uniform((20,))}
    answer = ask(ImportanceOracle(4096, draws="random", adapt=False), sampler, incoming)
    mean, error = answer.beliefs["out"].mean, answer.standard_errors["out"][0]
    assert not answer.failed.any()
    # e^18 is the truth, and most find a third of it; the tail of weight times statistic says that this is not all
    assert np.median(mean) < 0.6 * np.exp(18)
    assert (np.abs(mean - np.exp(18)) < 3 * error).mean() > 0.9
    assert (answer.expected_kl["x"] < 1e-3).all()  # the input's own belief is none the worse


def test_draws_go_where_an_expectation_rests_on_few_of_them():
    # the same, looked at first: the pieces six deviations out hold next to no mass and nearly all of E exp(x)
    sampler = sampler_of(lambda x: np.exp(x), Gamma, name="exp")
    incoming = {"x": Gaussian(np.zeros(20), np.full(20, 36.0)), "out": Gamma.uniform((20,))}
    answer = ask(ImportanceOracle(4096), sampler, incoming)
    exact = Gamma.from_statistics(np.full(20, np.exp(18.0)), np.zeros(20))  # E x = exp(36 / 2), E log x = 0
    assert exact.kl(answer.beliefs["out"]).max() < 1e-3


@pytest.mark.parametrize("seed", range(3))
def test_both_roots_of_a_square_are_kept_while_adapting(seed):
    # two modes a thousand times narrower than their distance; fitting the best draws lost one of them and said nothing
    sampler = sampler_of(lambda x: x**2, Gaussian, name="square")
    incoming = {"x": Gaussian([0.1, -3.7], [1.0, 8e6]), "out": Gaussian([2.0, 1.4], [1e-6, 2.5e-9])}
    answer, exact = ask(ImportanceOracle(4096), sampler, incoming, seed), ask(QuadratureOracle(), sampler, incoming)
    assert not answer.failed.any()
    assert (exact.beliefs["x"].kl(answer.beliefs["x"]) < 1e-3).all()
