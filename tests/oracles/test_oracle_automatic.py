"""The oracle that serves where none is named: which way each row goes, what is remembered, and what is refused."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.special import ndtr

import heliograph as hg
from heliograph.errors import FactorError
from heliograph.families import concatenate
from heliograph.oracles import AutomaticOracle, ImportanceOracle, QuadratureOracle, sampler_of

SQUARE = sampler_of(lambda z: z * z, hg.Gaussian, name="square")
PRODUCT = sampler_of(lambda a, b: a * b, hg.Gaussian, name="product")
TWO = {
    "a": hg.Gaussian([2.0, -1.0, 0.3], [0.5, 0.2, 1.0]),
    "b": hg.Gaussian([1.0, 0.5, -2.0], [0.3, 0.8, 0.1]),
    "out": hg.Gaussian([1.5, -0.2, 0.4], [0.2, 0.1, 0.5]),
}


def by_sums(f, mean, variance, out_mean, out_variance):
    """Mean and variance of N(z; m, v) N(f(z); mo, vo), on two hundred thousand even nodes."""
    z = np.linspace(mean - 12 * np.sqrt(variance), mean + 12 * np.sqrt(variance), 200_001)
    log_w = -0.5 * (z - mean) ** 2 / variance - 0.5 * (f(z) - out_mean) ** 2 / out_variance
    w = np.exp(log_w - log_w.max())
    w /= w.sum()
    return w @ z, w @ (z - w @ z) ** 2


def test_one_unknown_number_has_exact_labels_even_with_two_modes():
    incoming = {"z": hg.Gaussian([1.15, 0.1], [0.5, 2.0]), "out": hg.Gaussian([3.17, 1.0], [0.01, 1e-4])}
    answer = AutomaticOracle(precision=1e-3).ask(np.random.default_rng(0), SQUARE, incoming)
    for k, case in enumerate([(1.15, 0.5, 3.17, 0.01), (0.1, 2.0, 1.0, 1e-4)]):
        mean, variance = by_sums(np.square, *case)
        assert answer.beliefs["z"].mean[k] == pytest.approx(mean, abs=1e-9)
        assert answer.beliefs["z"].variance[k] == pytest.approx(variance, rel=1e-8)
    assert answer.label_noise.max() < 1e-4  # stated, and far above what is realised


def test_a_function_that_rounds_is_not_sampled_besides():
    """Near 1 a probit link is a staircase of rounding steps: quadrature ends at 1e-4 there, and draws would end no lower."""
    link = sampler_of(lambda z: np.clip(ndtr(z), 1e-300, 1 - 1e-16), hg.Beta, name="link")
    incoming = {"z": hg.Gaussian([8.4512], 0.0114), "out": hg.Beta([2.0], 1.0)}
    answer = AutomaticOracle(precision=4e-6).ask(np.random.default_rng(0), link, incoming)
    assert answer.n_evaluations < 50_000 and answer.label_noise.max() < 3e-4
    assert answer.beliefs["z"].mean == pytest.approx(incoming["z"].mean, rel=1e-12)  # the likelihood is 1 there


def test_noise_and_three_unknown_numbers_are_sampled():
    noisy = sampler_of(lambda z, rng: z + rng.standard_normal(z.shape), hg.Gaussian, name="noisy")
    incoming = {"z": hg.Gaussian([0.5], 1.0), "out": hg.Gaussian([1.0], 0.5)}
    answer = AutomaticOracle().ask(np.random.default_rng(0), noisy, incoming)
    # z ~ N(.5, 1), out = z + e, out ~ N(1, .5): the message to z is N(1, 1.5)
    assert answer.beliefs["z"].mean[0] == pytest.approx((0.5 + 1 / 1.5) / (1 + 1 / 1.5), abs=0.05)
    assert np.isfinite(answer.ess).all()
    three = sampler_of(lambda a, b, c: a + b + c, hg.Gaussian, name="sum")
    incoming = {p: hg.Gaussian([0.5], 1.0) for p in "abc"} | {"out": hg.Gaussian([3.0], 1.0)}
    answer = AutomaticOracle().ask(np.random.default_rng(0), three, incoming)
    assert answer.beliefs["a"].mean[0] == pytest.approx(0.5 + 1.5 / 4, abs=0.01)
    assert np.isfinite(answer.ess).all()


def test_two_unknown_numbers_are_measured_once_and_then_remembered():
    oracle = AutomaticOracle(precision=1e-3)
    first = oracle.ask(np.random.default_rng(0), PRODUCT, TWO)
    again = oracle.ask(np.random.default_rng(0), PRODUCT, TWO)
    assert first.n_evaluations > again.n_evaluations and list(oracle.measured.values()) == [True]
    exact = QuadratureOracle().ask(np.random.default_rng(0), PRODUCT, TWO)
    for port in ("a", "b", "out"):
        assert exact.beliefs[port].kl(again.beliefs[port]).max() < 1e-9


def test_a_function_of_one_sample_at_a_time_with_two_unknown_numbers_is_sampled():
    slow = PRODUCT._replace(function=lambda a, b: a * b, vectorized=False)
    oracle = AutomaticOracle(importance=ImportanceOracle(256))
    answer = oracle.ask(np.random.default_rng(0), slow, {p: m[:1] for p, m in TWO.items()})
    assert list(oracle.measured.values()) == [False] and np.isfinite(answer.ess).all()


def test_rows_of_different_difficulty_in_one_plate_are_each_what_they_are_alone():
    oracle = AutomaticOracle(precision=1e-2)
    sure, unsure = hg.Gaussian.point_mass([2.0]), hg.Gaussian([2.0], 0.5)
    plate = {
        "a": concatenate([sure, unsure, sure]),
        "b": TWO["b"],
        "out": TWO["out"],
    }
    answer = oracle.ask(np.random.default_rng(0), PRODUCT, plate)
    for k, mean in ((0, 1.0), (2, -2.0)):  # out = 2 b: conjugate
        v, mo, vo = TWO["b"].variance[k], TWO["out"].mean[k], TWO["out"].variance[k]
        variance = 1 / (1 / v + 4 / vo)
        assert answer.beliefs["b"].variance[k] == pytest.approx(variance, rel=1e-8)
        assert answer.beliefs["b"].mean[k] == pytest.approx(variance * (mean / v + 2 * mo / vo), abs=1e-8)
    alone = oracle.ask(np.random.default_rng(0), PRODUCT, {p: m[1:2] for p, m in plate.items()})
    assert alone.beliefs["a"].mean[0] == answer.beliefs["a"].mean[1]


def test_categories_beside_a_number_are_integrated_like_a_sum_over_them():
    shifted = sampler_of(lambda z, k: z + 2.0 * k, hg.Gaussian, name="shifted")
    p = np.array([0.2, 0.5, 0.3])
    incoming = {"z": hg.Gaussian([0.1], 0.7), "k": hg.Categorical(p[None]), "out": hg.Gaussian([2.2], 0.3)}
    answer = AutomaticOracle(precision=1e-3).ask(np.random.default_rng(0), shifted, incoming)
    w = p * np.exp(-0.5 * (2.2 - 0.1 - 2 * np.arange(3)) ** 2 / 1.0)
    assert answer.beliefs["k"].mean[0] == pytest.approx(w / w.sum(), abs=1e-9)


def test_the_choice_and_every_answer_are_the_same_with_any_number_of_workers():
    def posterior(executor):
        @hg.factor(output=hg.Gaussian)
        def product(a, b):
            return a * b

        model = hg.Model()
        a = model.gaussian("a", 1.0, variance=1.0)
        b = model.gaussian("b", np.linspace(0.5, 2.0, 40), variance=0.5)
        model.gaussian("y", product(a, b), variance=0.3, observed=np.linspace(0.2, 3.0, 40))
        p = model.infer(operator="ask", stop=hg.after(2), seed=3, executor=executor, progress=False)
        return p["a"].mean, product.n_evaluations

    with ThreadPoolExecutor(3) as pool, pytest.warns(UserWarning):
        assert posterior(None) == posterior(pool)


def test_a_function_that_draws_without_saying_so_is_told_to_take_an_rng():
    generator = np.random.default_rng(0)

    @hg.factor(output=hg.Gaussian)
    def hidden(z):
        return z + generator.standard_normal(z.shape)

    with pytest.raises(FactorError, match="parameter named rng"):
        hidden.belief("z", {"z": hg.Gaussian([0.0], 1.0), "out": hg.Gaussian([0.0], 1.0)})
    model = hg.Model()
    z = model.gaussian("z", 0.0, variance=1.0)
    model.gaussian("y", hidden(z), variance=1.0, observed=0.3)
    with pytest.raises(FactorError, match="parameter named rng"):
        model.infer(progress=False)


def test_a_busy_machine_does_not_make_a_fast_function_slow(monkeypatch):
    ticks = iter(np.arange(0.0, 1e6, 1.0))
    clear = AutomaticOracle(precision=1e-3)
    clear.ask(np.random.default_rng(0), PRODUCT, TWO)
    monkeypatch.setattr(
        "heliograph.oracles.automatic.time.perf_counter", lambda: next(ticks)
    )  # a second between two looks
    busy = AutomaticOracle(precision=1e-3)
    busy.ask(np.random.default_rng(0), PRODUCT, TWO)
    assert busy.measured == clear.measured == {"2 unknown, 1 choices, precision -3": True}
