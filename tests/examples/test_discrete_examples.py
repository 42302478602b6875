"""The examples with chains and categories against sums over all configurations, dense algebra and importance sampling."""

from __future__ import annotations

import itertools
import runpy
from pathlib import Path

import numpy as np
import pytest
from scipy.special import gammaln, log_ndtr

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = ["two_coins", "sprinkler", "hidden_chain", "kalman_tracker", "autoregression", "skills_through_time"]
NAMES += ["naive_bayes", "topics"]


def example(name):
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))


@pytest.mark.parametrize("name", NAMES)
def test_an_example_has_at_most_40_lines(name):
    assert len((EXAMPLES / f"{name}.py").read_text().splitlines()) <= 40


def test_two_coins_are_three_cases():
    posterior = example("two_coins")["posterior"]
    assert posterior["first"].p == pytest.approx(1 / 3, abs=1e-12)
    assert posterior.log_evidence == pytest.approx(np.log(3 / 4), abs=1e-12)


def test_the_sprinkler_is_the_sum_over_its_sixteen_cases():
    posterior = example("sprinkler")["posterior"]
    total, found = 0.0, np.zeros(3)
    for c, s, r in itertools.product((0, 1), repeat=3):
        on, rains, wet = [0.5, 0.1][c], [0.2, 0.8][c], [[0.0, 0.9], [0.9, 0.99]][s][r]
        w = 0.5 * (on if s else 1 - on) * (rains if r else 1 - rains) * wet
        total, found = total + w, found + w * np.array([c, s, r])
    for name, p in zip(("cloudy", "sprinkler", "rain"), found / total, strict=True):
        assert posterior[name].p == pytest.approx(p, abs=1e-12)
    assert posterior.log_evidence == pytest.approx(np.log(total), abs=1e-12)


def log_draws(count, a):
    return float((gammaln(a.sum(-1)) - gammaln((a + count).sum(-1)) + (gammaln(a + count) - gammaln(a)).sum(-1)).sum())


def test_the_hidden_chain_is_as_close_to_all_paths_as_it_says():
    world = example("hidden_chain")
    seen, a, b, posterior = world["seen"], world["steps"], world["outputs"], world["posterior"]
    n, total, p, steps = len(seen), 0.0, np.zeros((len(seen), 2)), np.zeros((2, 2))
    outputs = np.zeros(b.shape)
    for c in itertools.product((0, 1), repeat=n):
        ca, cb = np.zeros(a.shape), np.zeros(b.shape)
        np.add.at(ca, (c[:-1], c[1:]), 1)
        np.add.at(cb, (list(c), seen), 1)
        w = 0.5 * np.exp(log_draws(ca, a) + log_draws(cb, b))
        total += w
        p[np.arange(n), list(c)] += w
        steps += w * (a + ca) / (a + ca).sum(1, keepdims=True)
        outputs += w * (b + cb) / (b + cb).sum(1, keepdims=True)
    np.testing.assert_allclose(posterior["state"].p, p / total, atol=0.06)
    np.testing.assert_allclose(posterior["step"].mean, steps / total, atol=0.02)
    np.testing.assert_allclose(posterior["output"].mean, outputs / total, atol=0.02)


def test_the_tracker_is_a_dense_gaussian():
    world = example("kalman_tracker")
    n, posterior = world["n"], world["posterior"]
    sums = np.tril(np.ones((n, n)))
    noise_v, noise_x = np.r_[1.0, np.full(n - 1, 0.01)], np.r_[1.0, np.full(n - 1, 1e-4)]
    v = sums  # v = sums @ its steps
    x = sums @ np.vstack([np.zeros(n), sums[1:]])  # x0 has a prior of its own, then velocities add up
    cov_x = x @ np.diag(noise_v) @ x.T + sums @ np.diag(noise_x) @ sums.T
    cov_vx = v @ np.diag(noise_v) @ x.T
    gain = np.linalg.solve(cov_x + np.eye(n), np.c_[world["seen"], cov_x, cov_vx.T])
    np.testing.assert_allclose(posterior["x"].mean, cov_x @ gain[:, 0], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(posterior["v"].mean, cov_vx @ gain[:, 0], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(posterior["x"].variance, np.diag(cov_x - cov_x @ gain[:, 1 : n + 1]), rtol=1e-5)


def test_the_autoregression_is_a_dense_gaussian():
    world = example("autoregression")
    n, seen, posterior = world["n"], world["seen"], world["posterior"]
    a = np.eye(n) - 1.6 * np.eye(n, k=-1) + 0.8 * np.eye(n, k=-2)
    a[1, 0] = 0.0
    known = ~np.isnan(seen)
    covariance = np.linalg.inv(a.T @ a + np.diag(known * 1.0))
    np.testing.assert_allclose(posterior["x"].mean, covariance @ np.where(known, seen, 0.0), atol=1e-8)
    np.testing.assert_allclose(posterior["x"].variance, np.diag(covariance), rtol=1e-8)


def test_skills_through_time_are_those_of_importance_sampling():
    world = example("skills_through_time")
    rng, n = np.random.default_rng(0), 400_000
    first = np.sqrt(2.0) * rng.standard_normal((n, 1, 3))
    skill = np.concatenate([first, np.sqrt(0.5) * rng.standard_normal((n, 3, 3))], axis=1).cumsum(axis=1)
    gap = skill[:, world["year"], world["winner"]] - skill[:, world["year"], world["loser"]]
    log_w = log_ndtr(gap).sum(axis=1)
    w = np.exp(log_w - log_w.max())
    log_z = np.log(w.mean()) + log_w.max()
    w /= w.sum()
    mean = np.einsum("n,nij->ij", w, skill)
    sd = np.sqrt(np.einsum("n,nij->ij", w, (skill - mean) ** 2))
    posterior = world["posterior"]
    assert np.abs((posterior["skill"].mean - mean) / sd).max() < 0.05
    np.testing.assert_allclose(np.sqrt(posterior["skill"].variance), sd, rtol=0.03)
    assert posterior.log_evidence == pytest.approx(log_z, abs=0.05)


def test_naive_bayes_is_the_sum_over_the_missing_labels():
    world = example("naive_bayes")
    posterior, label = world["posterior"], world["label"]
    missing = np.flatnonzero(np.isnan(label))
    total, p = 0.0, np.zeros(len(missing))
    for c in itertools.product((0, 1), repeat=len(missing)):
        kind = label.copy()
        kind[missing] = c
        kind = kind.astype(int)
        shares, sizes, colours = np.zeros((1, 2)), np.zeros((2, 3)), np.zeros((2, 2))
        np.add.at(shares, (0, kind), 1)
        np.add.at(sizes, (kind, world["size"]), 1)
        np.add.at(colours, (kind, world["colour"]), 1)
        w = np.exp(sum(log_draws(k, np.ones(k.shape)) for k in (shares, sizes, colours)))
        total, p = total + w, p + w * np.array(c)
    np.testing.assert_allclose(posterior["kind"].p[missing, 1], p / total, atol=0.005)
    assert posterior.log_evidence == pytest.approx(np.log(total), abs=0.01)


def test_topics_explain_the_words_as_well_as_the_true_ones():
    world = example("topics")
    posterior, document, word = world["posterior"], world["document"], world["word"]
    assert posterior.converged
    found = (posterior["shares"].mean @ posterior["topics"].mean)[document, word]
    best = (world["true_shares"] @ world["true_topics"])[document, word]
    assert np.log(found).mean() > np.log(best).mean() - 0.02
