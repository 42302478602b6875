"""A Bernoulli that chooses between two Gaussians, and a category that chooses a component of a mixture."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

from heliograph.factors import GaussianPrecision, Mixture, Select
from heliograph.families import Bernoulli, Categorical, Gamma, Gaussian


def given(p=0.3):
    return {"a": Gaussian(0.0, 1.0), "b": Gaussian(3.0, 2.0), "s": Bernoulli(p), "out": Gaussian(1.0, 1.5)}


def test_the_weights_are_the_overlaps():
    w = np.array([0.3 * norm.pdf(1.0, 0.0, np.sqrt(2.5)), 0.7 * norm.pdf(1.0, 3.0, np.sqrt(3.5))])
    np.testing.assert_allclose(Select().log_z(given()), np.log(w.sum()), rtol=1e-14)
    np.testing.assert_allclose(Select().belief("s", given()).p, w[0] / w.sum(), rtol=1e-14)
    a = Gaussian(0.0, 1.0) * Gaussian(1.0, 1.5)
    p = w / w.sum()
    mean = p[0] * a.mean
    variance = p[0] * (a.variance + (a.mean - mean) ** 2) + p[1] * (1.0 + mean**2)
    belief = Select().belief("a", given())
    np.testing.assert_allclose([belief.mean, belief.variance], [mean, variance], rtol=1e-13)
    b = Gaussian(3.0, 2.0) * Gaussian(1.0, 1.5)
    mean = p @ [a.mean, b.mean]
    belief = Select().belief("out", given())
    np.testing.assert_allclose(belief.mean, mean, rtol=1e-13)
    np.testing.assert_allclose(
        belief.variance, p @ [a.variance + (a.mean - mean) ** 2, b.variance + (b.mean - mean) ** 2], rtol=1e-13
    )


@pytest.mark.parametrize("value", [0, 1])
def test_a_known_choice_is_an_equality(value):
    incoming = {**given(), "s": Bernoulli.point_mass(value)}
    chosen, other = ("a", "b") if value else ("b", "a")
    assert np.array_equal(Select().message("out", incoming).naturals, incoming[chosen].naturals)
    assert np.array_equal(Select().message(chosen, incoming).naturals, incoming["out"].naturals)
    assert Select().message(other, incoming).is_uniform
    near = {**incoming, "s": Bernoulli.from_log_odds(600.0 if value else -600.0)}
    np.testing.assert_allclose(Select().log_z(near), Select().log_z(incoming), rtol=1e-12)


def test_a_uniform_out_leaves_the_choice_alone_and_mixes_forwards():
    incoming = {**given(0.25), "a": Gaussian(1.0, 0.2), "b": Gaussian(-1.0, 2.0), "out": Gaussian.uniform()}
    assert Select().message("s", incoming).is_uniform
    assert Select().message("a", incoming).is_uniform
    sent = Select().message("out", incoming)
    np.testing.assert_allclose([sent.mean, sent.variance], [-0.5, 2.3], rtol=1e-14)
    assert Select().log_z(incoming) == pytest.approx(0.0, abs=1e-15)


def test_an_impossible_branch_is_certain_of_the_other():
    incoming = {**given(), "a": Gaussian.point_mass(2.0), "out": Gaussian.point_mass(1.0)}
    assert Select().message("s", incoming).point == 0
    assert Select().message("b", incoming).point == 1.0
    atom = {**incoming, "a": Gaussian.point_mass(1.0)}
    assert Select().message("s", atom).point == 1  # a mass at 1 beside a density


def test_thirty_deviations_away_nothing_underflows():
    incoming = {**given(), "out": Gaussian(300.0, 1.0)}
    assert np.isfinite(Select().log_z(incoming))
    assert Select().belief("s", incoming).log_odds < -1000
    assert Select().message("a", incoming).is_uniform or abs(Select().message("a", incoming).precision) < 1e-12


def test_an_unknown_side_gives_uniform_messages():
    incoming = {**given(), "b": Gaussian.uniform()}
    for to in ("a", "s", "out"):
        assert Select().message(to, incoming).is_uniform


# ---- mixtures ----------------------------------------------------------------------------------------------------
def components(s, x=None):
    x = Gaussian(1.0, 0.5) if x is None else x
    return {
        "s": s,
        "mean0": Gaussian(0.0, 1.0),
        "precision0": Gamma(3.0, 2.0),
        "mean1": Gaussian(2.0, 0.3),
        "precision1": Gamma(5.0, 1.0),
        "x": x,
    }


def one(incoming, k):
    return {"x": incoming["x"], "mean": incoming[f"mean{k}"], "precision": incoming[f"precision{k}"]}


def test_a_mixture_weighs_its_components_by_their_evidence():
    incoming = components(Categorical([0.3, 0.7]))
    log_z = [float(GaussianPrecision().log_z(one(incoming, k))) for k in range(2)]
    log_w = np.log([0.3, 0.7]) + log_z
    np.testing.assert_allclose(Mixture().log_z(incoming), logsumexp(log_w), rtol=1e-12)
    p = np.exp(log_w - logsumexp(log_w))
    np.testing.assert_allclose(Mixture().belief("s", incoming).p, p, rtol=1e-12)
    alone = [GaussianPrecision().belief("x", one(incoming, k)) for k in range(2)]
    mean = p @ [b.mean for b in alone]
    variance = p @ [b.variance + (b.mean - mean) ** 2 for b in alone]
    belief = Mixture().belief("x", incoming)
    np.testing.assert_allclose([belief.mean, belief.variance], [mean, variance], rtol=1e-11)
    # component 1's mean hears of x with probability p[1], of nothing otherwise
    heard, quiet = GaussianPrecision().belief("mean", one(incoming, 1)), incoming["mean1"]
    mean = p @ [quiet.mean, heard.mean]
    variance = p @ [quiet.variance + (quiet.mean - mean) ** 2, heard.variance + (heard.mean - mean) ** 2]
    belief = Mixture().belief("mean1", incoming)
    np.testing.assert_allclose([belief.mean, belief.variance], [mean, variance], rtol=1e-11)
    heard, quiet = GaussianPrecision().belief("precision", one(incoming, 0)), incoming["precision0"]
    expected = [p @ [h, q] for h, q in zip(heard.expected_statistics(), quiet.expected_statistics(), strict=True)]
    belief = Mixture().belief("precision0", incoming)
    np.testing.assert_allclose(belief.expected_statistics(), expected, rtol=1e-10)


def test_a_bernoulli_chooses_component_one():
    soft, same = components(Bernoulli(0.7)), components(Categorical([0.3, 0.7]))
    for to in ("mean0", "precision1", "x"):
        one, other = Mixture().message(to, soft).naturals, Mixture().message(to, same).naturals
        np.testing.assert_allclose(one, other, rtol=1e-13)
    log_p = Mixture().message("s", same).naturals[0]
    np.testing.assert_allclose(Mixture().message("s", soft).log_odds, log_p[1] - log_p[0], rtol=1e-12)


def test_a_known_component_is_the_gaussian_itself():
    incoming = components(Categorical.point_mass(1, 2))
    f = GaussianPrecision()
    for to, plain in (("mean1", "mean"), ("precision1", "precision"), ("x", "x")):
        np.testing.assert_allclose(
            Mixture().message(to, incoming).naturals, f.message(plain, one(incoming, 1)).naturals, rtol=1e-9
        )
    for to in ("mean0", "precision0"):
        assert Mixture().message(to, incoming).is_uniform
    np.testing.assert_allclose(Mixture().log_z(incoming), f.log_z(one(incoming, 1)), rtol=1e-12)


def test_fixed_precisions_and_observed_x_are_the_textbook_responsibilities():
    n = 5
    x = np.linspace(-2, 6, n)
    incoming = {
        "s": Categorical(np.full((n, 3), 1 / 3)),
        "x": Gaussian.point_mass(x),
        **{f"mean{k}": Gaussian(np.full(n, 2.0 * k), np.full(n, 0.5)) for k in range(3)},
        **{f"precision{k}": Gamma.point_mass(np.full(n, 4.0)) for k in range(3)},
    }
    sent = Mixture(3).message("s", incoming)
    log_w = np.stack([norm.logpdf(x, 2.0 * k, np.sqrt(0.75)) for k in range(3)], axis=-1)
    np.testing.assert_allclose(sent.p, np.exp(log_w - logsumexp(log_w, axis=-1, keepdims=True)), rtol=1e-12)
    for k in range(3):
        assert Mixture(3).message(f"precision{k}", incoming).is_uniform.all()


def test_a_uniform_x_takes_the_mixture_forwards():
    incoming = components(Categorical([0.3, 0.7]), Gaussian.uniform())
    sent = Mixture().message("x", incoming)
    v = np.array([1.0 + 2.0 / 2.0, 0.3 + 1.0 / 4.0])  # variance of the mean and E 1 / precision
    mean = 0.7 * 2.0
    np.testing.assert_allclose(sent.mean, mean, rtol=1e-11)
    np.testing.assert_allclose(sent.variance, [0.3, 0.7] @ (v + (np.array([0.0, 2.0]) - mean) ** 2), rtol=1e-11)
    for to in ("s", "mean0", "precision1"):
        assert np.allclose(Mixture().message(to, incoming).naturals, 0.0, atol=1e-12)


def incoming_of_a_mixture(rng, n=20):
    """Messages to a mixture of three components, whose second precision is known."""
    incoming = {"s": Categorical(rng.dirichlet(np.ones(3), n)), "x": Gaussian.point_mass(rng.normal(0, 3, n))}
    for k in range(3):
        incoming[f"mean{k}"] = Gaussian.from_naturals((rng.standard_normal(n), rng.gamma(2.0, size=n)))
        incoming[f"precision{k}"] = Gamma(2.0 + rng.random(n), 1.0 + rng.random(n))
    incoming["precision1"] = Gamma.point_mass(rng.gamma(2.0, size=n))
    return incoming


def same_bits(a, b):
    return all(np.array_equal(p, q) for p, q in zip(a.naturals, b.naturals, strict=True))


def test_a_mixture_that_kept_its_tilts_answers_as_a_new_one_to_the_last_bit():
    """Also where an array was changed in place."""
    rng = np.random.default_rng(2)
    used = Mixture(3)
    incoming = incoming_of_a_mixture(rng)
    ports = [p for p in used.ports if p not in ("x", "precision1")]
    for change in (None, "mean0", "precision2", "mean1", None):
        if change is not None:
            incoming[change].naturals[1][:] *= 1.5
        for port in ports:
            assert same_bits(used.message(port, incoming), Mixture(3).message(port, incoming))


def test_a_mixture_computes_each_tilt_once_while_its_messages_stay(monkeypatch):
    from heliograph.factors import mixture

    calls = []
    compute = mixture.tilt_of_precision
    monkeypatch.setattr(mixture, "tilt_of_precision", lambda *a: calls.append(a) or compute(*a))
    factor, incoming = Mixture(3), incoming_of_a_mixture(np.random.default_rng(0))
    for port in ("s", "mean0", "precision0", "mean1", "mean2", "precision2"):
        factor.message(port, incoming)
    assert len(calls) == 3
