"""Recycled draws, observations matched within a tolerance, and oracles by name."""

import numpy as np
import pytest
from black_boxes import logistic

from heliograph.errors import ModelError
from heliograph.families import Bernoulli, Beta, Gaussian, MultivariateGaussian
from heliograph.oracles import AbcOracle, ImportanceOracle, Pool, QuadratureOracle, make_oracle, sampler_of

LOGISTIC = sampler_of(logistic, Beta)


def ask(oracle, sampler, incoming, seed=0):
    return oracle.ask(np.random.default_rng(seed), sampler, incoming)


# ---- recycling ------------------------------------------------------------------------------------------------------
def plate(shift=0.0):
    return {"z": Gaussian([0.0 + shift, 2.0 + shift], [2.0, 1.0]), "out": Beta([2.0, 1.0], [1.0, 2.0])}


@pytest.mark.parametrize("draws", ["random", "sobol"])
def test_later_messages_near_by_cost_no_evaluations_and_are_right(draws):
    oracle = ImportanceOracle(8192, draws=draws, pool=Pool())
    assert ask(oracle, LOGISTIC, plate()).n_evaluations > 0
    again, exact = ask(oracle, LOGISTIC, plate(0.2)), ask(QuadratureOracle(), LOGISTIC, plate(0.2))
    assert again.n_evaluations == 0
    assert (again.ess >= 500).all()
    for port in ("z", "out"):
        kl = exact.beliefs[port].kl(again.beliefs[port])
        assert (kl < 1e-3).all()
        assert (kl < 12 * again.expected_kl[port]).all()


def test_z_scores_of_recycled_draws_have_unit_spread():
    rng = np.random.default_rng(0)
    exact = ask(QuadratureOracle(), LOGISTIC, plate(0.3))
    scores = []
    for _ in range(60):
        oracle = ImportanceOracle(2000, draws="random", adapt=False, pool=Pool())
        oracle.ask(rng, LOGISTIC, plate())
        answer = oracle.ask(rng, LOGISTIC, plate(0.3))
        assert answer.n_evaluations == 0
        scores.append((answer.beliefs["z"].mean - exact.beliefs["z"].mean) / answer.standard_errors["z"][0])
    assert 0.8 < np.std(scores) < 1.25


def test_messages_far_away_are_drawn_anew():
    pool = Pool()
    oracle = ImportanceOracle(2048, pool=pool)
    ask(oracle, LOGISTIC, plate())
    n = len(pool)
    far = ask(oracle, LOGISTIC, plate(30.0))
    assert far.n_evaluations > 0
    assert len(pool) > n


def test_draws_at_other_data_or_of_another_factor_are_not_used():
    def scaled(x, k):
        return k * x

    pool = Pool()
    oracle = ImportanceOracle(4096, pool=pool)
    x, out = Gaussian([0.0], [1.0]), Gaussian([1.0], [1.0])
    sampler = sampler_of(scaled, Gaussian)
    first = ask(oracle, sampler, {"x": x, "k": np.array([1.0]), "out": out})
    other = ask(oracle, sampler, {"x": x, "k": np.array([2.0]), "out": out})
    assert other.n_evaluations > 0
    np.testing.assert_allclose(other.beliefs["x"].mean, 2 / 5, atol=1e-3)
    assert ask(oracle, sampler, {"x": x, "k": np.array([1.0]), "out": out}).n_evaluations == 0
    np.testing.assert_allclose(first.beliefs["x"].mean, 1 / 2, atol=1e-3)
    negated = sampler_of(lambda x, k: -k * x, Gaussian)
    assert ask(oracle, negated, {"x": x, "k": np.array([1.0]), "out": out}).n_evaluations > 0


def test_a_pool_forgets_the_oldest_draws_first():
    pool = Pool(max_draws=5000)
    oracle = ImportanceOracle(2048, pool=pool, adapt=False)
    for shift in (0.0, 50.0, 100.0, 150.0):
        ask(oracle, LOGISTIC, {k: m[:1] for k, m in plate(shift).items()})
    assert pool.n_draws <= 5000
    assert len(pool) == 2


# ---- EP-ABC ---------------------------------------------------------------------------------------------------------
def noisy(x, rng):
    return x + 0.5 * rng.standard_normal(x.shape)


@pytest.mark.parametrize("kernel", ["uniform", "gaussian"])
def test_an_observation_of_a_stochastic_factor_is_matched_within_a_tolerance(kernel):
    x = Gaussian([0.0, 1.0], [1.0, 2.0])
    y = np.array([0.7, -0.5])
    answer = ask(
        AbcOracle(epsilon=0.1, kernel=kernel), sampler_of(noisy, Gaussian), {"x": x, "out": Gaussian.point_mass(y)}
    )
    gain = x.variance / (x.variance + 0.25)
    exact = Gaussian(x.mean + gain * (y - x.mean), (1 - gain) * x.variance)
    assert not answer.failed.any()
    assert (exact.kl(answer.beliefs["x"]) < 1e-2).all()
    assert answer.beliefs["out"].is_point.all()
    # log of the density of y; a kernel of width 0.1 blurs it by less than a hundredth
    log_z = Gaussian(x.mean, x.variance + 0.25).log_density(y)
    assert (np.abs(answer.log_z - log_z) < 0.01 + 4 * answer.log_z_error).all()


def test_the_bias_of_abc_falls_with_its_tolerance():
    incoming = {"x": Gaussian([0.0], [1.0]), "out": Gaussian.point_mass([1.0])}
    exact = Gaussian([1 / 1.25], [0.2])
    wide, narrow = (
        exact.kl(ask(AbcOracle(epsilon=e), sampler_of(noisy, Gaussian), incoming).beliefs["x"])[0] for e in (2.0, 0.1)
    )
    assert narrow < 0.01 * wide


def test_vectors_are_matched_by_their_norm_and_labels_exactly():
    def pair(x, rng):
        return np.stack([x, -x], axis=-1) + 0.5 * rng.standard_normal((len(x), 2))

    out = MultivariateGaussian.point_mass(np.array([[1.0, -0.6]]))
    answer = ask(
        AbcOracle(epsilon=0.2), sampler_of(pair, MultivariateGaussian), {"x": Gaussian([0.0], [1.0]), "out": out}
    )
    precision = 1 + 2 / 0.25
    assert Gaussian([(1.6 / 0.25) / precision], [1 / precision]).kl(answer.beliefs["x"])[0] < 2e-2
    label = sampler_of(lambda x, rng: x + rng.standard_normal(x.shape) > 0, Bernoulli, name="label")
    incoming = {"x": Gaussian([0.0], [1.0]), "out": Bernoulli.point_mass([1.0])}
    np.testing.assert_allclose(np.exp(ask(AbcOracle(), label, incoming).log_z), 0.5, atol=0.02)


def test_an_observation_no_draw_comes_near_fails():
    incoming = {"x": Gaussian([0.0], [1.0]), "out": Gaussian.point_mass([50.0])}
    assert ask(AbcOracle(), sampler_of(noisy, Gaussian), incoming).failed.all()


def test_abc_options_are_checked():
    incoming = {"x": Gaussian([0.0], [1.0]), "out": Gaussian.point_mass([1.0])}
    for oracle in (AbcOracle(kernel="square"), AbcOracle(epsilon=0.0)):
        with pytest.raises(ModelError, match=r"kernel|epsilon"):
            ask(oracle, sampler_of(noisy, Gaussian), incoming)


# ---- by name --------------------------------------------------------------------------------------------------------
def test_oracles_are_made_by_name():
    assert make_oracle("importance", n_samples=7).n_samples == 7
    assert isinstance(make_oracle("quadrature"), QuadratureOracle)
    assert make_oracle("abc", epsilon=0.3).epsilon == 0.3
    mine = ImportanceOracle()
    assert make_oracle(mine) is mine
    with pytest.raises(ModelError, match="no oracle 'magic'"):
        make_oracle("magic")
    with pytest.raises(ModelError, match="needs a method `ask`"):
        make_oracle(3)
    with pytest.raises(ModelError, match="go with an oracle's name"):
        make_oracle(mine, n_samples=3)
    with pytest.raises(ModelError, match="'random' or 'sobol'"):
        ask(make_oracle("importance", draws="halton"), LOGISTIC, plate())
    with pytest.raises(ModelError, match="a proposal is"):
        ask(make_oracle("importance", proposal="prior"), LOGISTIC, plate())
