"""Counts that were not seen say nothing: the model is the one without them."""

import numpy as np
import pytest

import heliograph as hg


def posterior(counts, entries):
    model = hg.Model()
    rate = model.gamma("rate", 2.0, 1.0, size=4)
    model.poisson("k", rate[entries], observed=counts)
    return model.infer(progress=False)[rate]


def test_a_missing_count_leaves_its_rate_at_the_prior():
    found = posterior(np.array([3.0, np.nan, 0.0, np.nan]), np.arange(4))
    # Gamma(2, 1) and a Poisson count: one more in the rate for each count seen
    np.testing.assert_allclose(found.shape_parameter, [5.0, 2.0, 2.0, 2.0])
    np.testing.assert_allclose(found.rate, [2.0, 1.0, 2.0, 1.0])


def test_counts_missing_among_repeated_entries_are_left_out_where_they_stand():
    with_gaps = posterior(np.array([3.0, np.nan, 5.0]), np.array([2, 0, 2]))
    without = posterior(np.array([3.0, 5.0]), np.array([2, 2]))
    np.testing.assert_allclose(with_gaps.shape_parameter, without.shape_parameter)
    np.testing.assert_allclose(with_gaps.rate, without.rate)


_X = np.random.default_rng(3).standard_normal((8, 2))
_GONE = np.arange(8) % 3 == 0
_COUNTS = np.array([0.0, 2.0, 1.0, 4.0, 0.0, 3.0, 1.0, 2.0])
_WORDS = {
    "poisson": lambda m, z, **seen: m.poisson("y", log_rate=z, **seen),
    "binomial": lambda m, z, **seen: m.binomial("y", 5, logit=z, **seen),
    "negative_binomial": lambda m, z, **seen: m.negative_binomial("y", log_mean=z, dispersion=2.0, **seen),
    "weibull": lambda m, z, **seen: m.weibull("y", 1.5, log_scale=z, **_later(seen)),
    "exponential": lambda m, z, **seen: m.exponential("y", log_rate=z, **_later(seen)),
    "rate": lambda m, z, **seen: m.exponential("y", m.exp(z), **_later(seen)),
    "censored": lambda m, z, **seen: m.exponential("y", m.exp(z), censored="right", **_later(seen)),
    "truncated": lambda m, z, **seen: m.truncated_gaussian("y", z, sd=1.0, lower=-0.5, **seen),
}


def _later(seen):
    return {**seen, "observed": np.asarray(seen["observed"]) + 1.0}


def _answer(word, x, **seen):
    model = hg.Model()
    w = model.gaussian("w", np.zeros(2), covariance=np.eye(2))
    _WORDS[word](model, x @ w, **seen)
    posterior = model.infer()
    return [*posterior[w].mean, *posterior[w].sd, posterior.log_evidence]


@pytest.mark.parametrize("word", _WORDS)
def test_a_mask_leaves_out_what_nan_leaves_out(word):
    rows = _answer(word, _X[~_GONE], observed=_COUNTS[~_GONE])
    assert _answer(word, _X, observed=_COUNTS, missing=_GONE) == pytest.approx(rows, rel=1e-9)
    assert _answer(word, _X, observed=np.where(_GONE, -7.5, _COUNTS), missing=_GONE) == pytest.approx(rows, rel=1e-9)
    assert _answer(word, _X, observed=np.where(_GONE, np.nan, _COUNTS)) == pytest.approx(rows, rel=1e-9)


@pytest.mark.parametrize("word", _WORDS)
def test_a_column_of_observations_is_not_taken_for_a_square_of_them(word):
    with pytest.raises(hg.ModelError, match=r"\(8, 1\).*y\[:, 0\]"):
        _answer(word, _X, observed=_COUNTS[:, None])


def test_a_mask_of_multinomial_rows_and_of_the_counts_of_a_mixture():
    model = hg.Model()
    p = model.dirichlet("p", [1.0, 1.0])
    model.multinomial("votes", p, observed=[[3, 1], [9, 9]], missing=[False, True])
    assert model.infer()[p].mean == pytest.approx([4 / 6, 2 / 6])
    model = hg.Model()
    rate = model.gamma("rate", 1.0, 1.0, size=2)
    which = model.categorical("which", [0.5, 0.5], size=3)
    model.observe(which, [0, 0, 1])
    model.mixture("y", which, lambda k: model.poisson("y", rate[k]), observed=[3, 50, 1], missing=[False, True, False])
    assert model.infer()[rate].mean == pytest.approx([4 / 2, 2 / 2])
