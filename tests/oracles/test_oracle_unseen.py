"""Outcomes too rare to be drawn: a run of a stochastic function says what it may have missed, and no more than that."""

import sys
from pathlib import Path

import numpy as np
import pytest
from audit_factors import STOCHASTIC, truth

from heliograph.families import Bernoulli, Categorical, Gaussian, concatenate
from heliograph.oracles import ImportanceOracle, sampler_of

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
from bench_oracle_audit import judge, silent

COPIES = 64
LABELS = np.array([1.5e-3, 1.2e-3, 1.2e-2, 0.3, 0.47, 0.12, 0.095, 4.7e-5])
ROWS = {
    # z near 0.9 five deviations out, or a negative z whose noise turns its sign: most of the mass, and no draw shows it
    "factor of noise": (Gaussian([-3.5493], [0.8618]), Gaussian([0.9474], [0.0045])),
    # z near the output, or 6 deviations below with its sign changed: a few draws or none
    "switch": (Gaussian([2.8246], [1.227]), Gaussian([4.5067], [0.0169])),
    # the label that is wanted comes out in one of 40,000 cases
    "noisy threshold": (Gaussian([4.3432], [0.1407]), Bernoulli([0.0006])),
    # counts of three and more are wanted hundreds of times as much as those that come out
    "counts": (Gaussian([-4.3412], [0.7002]), Categorical(LABELS[None] / LABELS.sum())),
}


def copies(name):
    z, out = ROWS[name]
    return {"z": concatenate([z] * COPIES), "out": concatenate([out] * COPIES)}


@pytest.mark.parametrize("name", ROWS)
def test_an_outcome_too_rare_to_be_drawn_is_in_the_stated_error(name):
    factor = STOCHASTIC[name]
    z, out = ROWS[name]
    exact = [truth(factor, {"z": z, "out": out})] * COPIES
    answer = ImportanceOracle().ask(np.random.default_rng(0), factor.sampler, copies(name))
    assert not [v for v in judge(answer, exact, ["rare"] * COPIES) if silent(v)]


@pytest.mark.parametrize("noise", [0.03, 0.1, 0.5])
def test_noise_that_cannot_explain_an_output_adds_nothing(noise):
    # z + noise seen to 1e-3: z is as narrow as its noise, all else in the cavity lies far off, and no noise reaches from there
    sampler = sampler_of(lambda z, rng: z + noise * rng.standard_normal(z.shape), Gaussian, name="added")
    cavity, seen = Gaussian([0.0], [1.0]), Gaussian([0.7], [1e-6])
    incoming = {"z": concatenate([cavity] * COPIES), "out": concatenate([seen] * COPIES)}
    answer = ImportanceOracle(65_536).ask(np.random.default_rng(1), sampler, incoming)
    tau = 1 + 1 / (noise**2 + 1e-6)
    exact = Gaussian([0.7 / (noise**2 + 1e-6) / tau], [1 / tau])
    realised = np.array([exact.kl(answer.beliefs["z"][i : i + 1])[0] for i in range(COPIES)])
    # a mean of 64 KLs of two degrees of freedom is known to 12 %; taking tails for heavier than they are costs the rest
    assert 0.4 < np.median(answer.expected_kl["z"]) / realised.mean() < 5.0


def test_a_value_that_was_not_drawn_has_half_a_draw_of_what_its_message_says_of_it():
    # 16,384 draws give no 1 at all; a message that wants a 1 a thousand times more may well be right
    sampler = sampler_of(lambda z, rng: (rng.random(z.shape) < 1e-12) & (z > -99), Bernoulli, name="never")
    for odds in (1.0, 1e3):
        incoming = {"z": Gaussian([0.0], [1.0]), "out": Bernoulli([odds / (1 + odds)])}
        answer = ImportanceOracle().ask(np.random.default_rng(2), sampler, incoming)
        share = answer.beliefs["out"].p[0]
        np.testing.assert_allclose(share / (1 - share), odds / 16_384, rtol=0.01)
        np.testing.assert_allclose(answer.standard_errors["out"][0][0], share, rtol=0.2)


def test_a_noisy_function_of_a_partial_domain_and_one_without_inputs_are_answered():
    root = sampler_of(lambda z, rng: np.sqrt(z) + 0.1 * rng.standard_normal(z.shape), Gaussian, name="root")
    with np.errstate(invalid="ignore"):
        answer = ImportanceOracle(2**17).ask(
            np.random.default_rng(3), root, {"z": Gaussian([9.0], [2.25]), "out": Gaussian([2.5], [0.01])}
        )
    z = np.linspace(1e-9, 25, 200_001)
    w = np.exp(-((z - 9) ** 2) / 4.5 - (2.5 - np.sqrt(z)) ** 2 / 0.04)
    w /= w.sum()
    exact = Gaussian([w @ z], [w @ (z - w @ z) ** 2])
    assert exact.kl(answer.beliefs["z"])[0] < 20 * answer.expected_kl["z"][0] < 0.05
    coin = sampler_of(lambda x, rng: rng.random(x.shape) < x, Bernoulli, name="coin")
    answer = ImportanceOracle().ask(np.random.default_rng(4), coin, {"x": np.array([0.3]), "out": Bernoulli([0.9])})
    assert abs(answer.beliefs["out"].p[0] - 0.27 / 0.34) < 5 * answer.standard_errors["out"][0][0] < 0.05
