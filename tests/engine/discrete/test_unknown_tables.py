"""Tables with Dirichlet rows against sums over every configuration, in which the rows are integrated out."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.special import gammaln

import heliograph as hg
from heliograph.engine.discrete import counts as counts_module
from heliograph.errors import AccuracyWarning, ModelError, UnsupportedError
from heliograph.factors import ChosenProbability


def log_marginal(count, a):
    """``log`` of the probability of draws with these counts from Dirichlet rows."""
    draws = gammaln(a.sum(-1)) - gammaln((a + count).sum(-1)) + (gammaln(a + count) - gammaln(a)).sum(-1)
    return float(draws.sum())


class Sums:
    """Weighted sums over configurations: probabilities of states, means of rows."""

    def __init__(self, n, k, *priors):
        self.total, self.p, self.priors = 0.0, np.zeros((n, k)), priors
        self.means = [np.zeros(a.shape) for a in priors]

    def add(self, states, log_weight, *counts):
        w = np.exp(log_weight + sum(map(log_marginal, counts, self.priors)))
        self.total += w
        self.p[np.arange(len(states)), list(states)] += w
        for mean, count, a in zip(self.means, counts, self.priors, strict=True):
            mean += w * (a + count) / (a + count).sum(-1, keepdims=True)


def hidden_chain(seed, n=7, k=2, v=3):
    """A chain of n states with unknown steps and emissions; the model, and its exact answer."""
    rng = np.random.default_rng(seed)
    a, b, seen = rng.uniform(0.5, 4.0, (k, k)), rng.uniform(0.5, 4.0, (k, v)), rng.integers(0, v, n)
    first = rng.dirichlet(np.ones(k))
    model = hg.Model()
    step, out = model.dirichlet("step", a), model.dirichlet("out", b)
    x = model.chain("x", n, hg.Categorical(first), lambda before: model.categorical("x", step, given=before))
    model.categorical("y", out, given=x, observed=seen)
    sums = Sums(n, k, a, b)
    for c in itertools.product(range(k), repeat=n):
        steps, outs = np.zeros((k, k)), np.zeros((k, v))
        np.add.at(steps, (c[:-1], c[1:]), 1)
        np.add.at(outs, (list(c), seen), 1)
        sums.add(c, np.log(first[c[0]]), steps, outs)
    return model, (x, step, out), sums


def test_learned_hidden_chains_are_close_to_enumeration_and_converge():
    errors = []
    for seed in range(12):
        model, (x, step, out), sums = hidden_chain(seed)
        posterior = model.infer()
        assert posterior.converged, seed
        errors.append(
            [
                np.abs(posterior[x].p - sums.p / sums.total).max(),
                np.abs(posterior[step].mean - sums.means[0] / sums.total).max(),
                np.abs(posterior[out].mean - sums.means[1] / sums.total).max(),
                abs(posterior.log_evidence - np.log(sums.total)),
            ]
        )
    # EP factorises rows and states: these are its own errors, about one and a half times as large as they were seen
    assert (np.median(errors, axis=0) < [0.05, 0.02, 0.01, 0.12]).all(), np.median(errors, axis=0)
    assert (np.max(errors, axis=0) < [0.15, 0.06, 0.06, 0.4]).all(), np.max(errors, axis=0)


def test_one_observation_of_an_unknown_table_is_exact():
    """A tree: the category's probabilities, the evidence, and the rows' E log p, which is what EP keeps."""
    a = np.array([[2.0, 1.0, 0.5], [0.7, 3.0, 1.0]])
    model = hg.Model()
    rows = model.dirichlet("rows", a)
    parent = model.bernoulli("parent", 0.3)
    model.categorical("child", rows, given=parent, observed=2)
    posterior = model.infer()
    mean = a[:, 2] / a.sum(1)
    weight = np.array([0.7, 0.3]) * mean
    assert posterior.log_evidence == pytest.approx(np.log(weight.sum()), abs=1e-10)
    w = weight / weight.sum()
    assert posterior[parent].p == pytest.approx(w[1], abs=1e-10)
    from scipy.special import digamma

    def mean_log(c):
        return digamma(c) - digamma(c.sum())

    for k in range(2):
        expected = (1 - w[k]) * mean_log(a[k]) + w[k] * mean_log(a[k] + np.array([0, 0, 1.0]))
        np.testing.assert_allclose(posterior[rows].expected_statistics()[0][k], expected, atol=1e-9)


def test_rows_that_are_nearly_known_give_what_a_table_gives():
    rng = np.random.default_rng(0)
    table = rng.dirichlet(np.ones(3), (2, 3))
    seen = np.array([0.0, np.nan, 2.0, 1.0])
    found = []
    for make in (lambda m: m.dirichlet("t", 1e9 * table), lambda m: table):
        model = hg.Model()
        a, b = model.bernoulli("a", 0.4, size=4), model.categorical("b", [0.2, 0.3, 0.5], size=4)
        c = model.categorical("c", make(model), given=(a, b), observed=seen)
        posterior = model.infer()
        found.append([posterior[a].p, *posterior[b].p.T, *posterior[c].p.T, np.full(4, posterior.log_evidence)])
    np.testing.assert_allclose(found[0], found[1], atol=1e-6)


def test_rows_that_begin_alike_are_told_apart_by_the_seed():
    rng = np.random.default_rng(2)
    n, truth = 400, np.array([[0.9, 0.1, 0.0], [0.05, 0.15, 0.8]])
    states = [0]
    for _ in range(n - 1):
        states.append(states[-1] ^ int(rng.random() < 0.1))
    seen = np.array([rng.choice(3, p=truth[k]) for k in states])
    found = []
    for _ in range(2):
        model = hg.Model()
        step, out = model.dirichlet("step", np.ones((2, 2))), model.dirichlet("out", np.ones((2, 3)))
        x = model.chain("x", n, hg.Categorical([0.5, 0.5]), lambda b, m=model, s=step: m.categorical("x", s, given=b))
        model.categorical("y", out, given=x, observed=seen)
        posterior = model.infer(seed=3)
        assert posterior.converged
        found.append(posterior[out].mean)
    np.testing.assert_array_equal(found[0], found[1])
    order = np.argsort(-found[0][:, 0])
    np.testing.assert_allclose(found[0][order], truth, atol=0.08)


# ---- counts -------------------------------------------------------------------------------------------------------
def test_a_share_of_one_count_keeps_the_mean_of_the_tilted_distribution():
    q = hg.Beta(np.array([2.0, 0.3, 40.0]), np.array([3.0, 5.0, 2.0]))
    other = hg.Beta(np.array([1.0, 1.0, 1.0]), np.array([4.0, 4.0, 4.0]))
    parent = hg.Categorical(np.tile([0.3, 0.7], (3, 1)))
    belief = ChosenProbability().belief("q0", {"q0": q, "q1": other, "parent": parent})
    w = 0.3 * q.mean / (0.3 * q.mean + 0.7 * other.mean)
    np.testing.assert_allclose(belief.mean, (1 - w) * q.mean + w * (q.a + 1) / (q.a + q.b + 1), rtol=1e-12)


def test_counts_agree_with_enumeration_as_projections_do(monkeypatch):
    """A tiny topic model both ways: messages of counts are about as near the truth as projections are."""
    rng = np.random.default_rng(5)
    n, k, v = 8, 2, 3
    a, b = rng.uniform(0.5, 3.0, (k, v)), rng.uniform(1.0, 3.0, k)
    words = rng.integers(0, v, n)
    sums = Sums(n, k, a, b[None])
    for c in itertools.product(range(k), repeat=n):
        outs, shares = np.zeros((k, v)), np.zeros((1, k))
        np.add.at(outs, (list(c), words), 1)
        np.add.at(shares, (0, list(c)), 1)
        sums.add(c, 0.0, outs, shares)

    def run():
        model = hg.Model()
        topics, shares = model.dirichlet("topics", a), model.dirichlet("shares", b)
        z = model.categorical("z", shares, size=n)
        model.categorical("word", topics, given=z, observed=words)
        posterior = model.infer()
        assert posterior.converged
        return (
            (
                np.abs(posterior[z].p - sums.p / sums.total).max(),
                np.abs(posterior[topics].mean - sums.means[0] / sums.total).max(),
            ),
            posterior,
            np.log(sums.total),
        )

    projected, posterior, log_evidence = run()
    assert np.max(projected) < 0.05, projected
    assert posterior.log_evidence == pytest.approx(log_evidence, abs=0.12)
    monkeypatch.setattr(counts_module, "_MANY", 0)
    counted, posterior, log_evidence = run()
    assert np.max(counted) < 0.05, counted
    with pytest.warns(AccuracyWarning, match="hundredths of a nat per observation"):
        assert abs(posterior.log_evidence - log_evidence) / n < 0.08


def test_topics_of_many_words_converge_and_predict():
    rng = np.random.default_rng(1)
    n_documents, length, v, k = 30, 60, 50, 3
    topics, shares = rng.dirichlet(np.full(v, 0.1), k), rng.dirichlet(np.full(k, 0.3), n_documents)
    document = np.repeat(np.arange(n_documents), length)
    z = np.array([rng.choice(k, p=shares[d]) for d in document])
    words = np.array([rng.choice(v, p=topics[j]) for j in z])
    model = hg.Model()
    t, s = model.dirichlet("topics", np.full((k, v), 0.1)), model.dirichlet("shares", np.full((n_documents, k), 0.3))
    choice = model.categorical("choice", s[document])
    model.categorical("word", t, given=choice, observed=words)
    posterior = model.infer()
    assert posterior.converged
    found = (posterior[s].mean[document] * posterior[t].mean[:, words].T).sum(1)
    best = (shares[document] * topics[:, words].T).sum(1)
    assert np.mean(np.log(found)) > np.mean(np.log(best)) - 0.05


def small_topics(n_documents=12, length=40, v=9, k=2):
    """A topic model in which words are repeated within documents."""
    rng = np.random.default_rng(4)
    document = np.repeat(np.arange(n_documents), length)
    words = rng.integers(0, v, len(document)) // (1 + document % 2)
    model = hg.Model()
    t, s = model.dirichlet("topics", np.full((k, v), 0.3)), model.dirichlet("shares", np.full((n_documents, k), 0.5))
    choice = model.categorical("choice", s[document])
    model.categorical("word", t, given=choice, observed=words)
    return model, (t, s, choice)


@pytest.mark.filterwarnings("ignore::heliograph.errors.ConvergenceWarning")
@pytest.mark.parametrize("schedule", ["parallel", "sequential"])
def test_alike_words_taken_together_give_the_beliefs_of_words_one_by_one(monkeypatch, schedule):
    """Sweep by sweep in parallel; one after the other, alike words are visited at once, and the fixed point is the same."""
    monkeypatch.setattr(counts_module, "_MANY", 0)
    found = []
    for together in (counts_module._taken_together, lambda graph, tables: (graph, tables)):
        monkeypatch.setattr(counts_module, "_taken_together", together)
        model, variables = small_topics()
        if schedule == "parallel":
            posterior = model.infer(seed=1, max_sweeps=7)
        else:
            posterior = model.infer(seed=1, schedule=schedule, tolerance=1e-9, max_sweeps=600)
            assert posterior.converged
        with pytest.warns(AccuracyWarning):
            log_evidence = posterior.log_evidence
        found.append([*(posterior[x].mean for x in variables), np.array(log_evidence)])
    assert len(found[0][2]) == 480
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9 if schedule == "parallel" else 1e-4)


def test_a_topic_model_has_one_element_for_alike_words(monkeypatch):
    monkeypatch.setattr(counts_module, "_MANY", 0)
    model, (_, _, choice) = small_topics()
    posterior = model.infer(seed=1)
    assert max(p.size for p in posterior.graph.plates if p.times is not None) < 480 / 4
    assert sum(p.times.sum() for p in posterior.graph.plates if isinstance(p.factor, ChosenProbability)) == 480
    assert posterior[choice].p.shape == (480, 2)
    assert list(posterior) == ["topics", "shares", "choice"]


@pytest.mark.filterwarnings("ignore::heliograph.errors.ConvergenceWarning")
def test_documents_of_different_words_begin_with_topics_of_their_own(monkeypatch):
    """Three kinds of documents without a word in common: one sweep from clusters has every topic in one kind."""
    monkeypatch.setattr(counts_module, "_MANY", 0)
    rng = np.random.default_rng(0)
    document = np.repeat(np.arange(18), 30)
    words = rng.integers(0, 5, len(document)) + 5 * (document % 3)
    for seed in range(5):
        model = hg.Model()
        t, s = model.dirichlet("topics", np.full((3, 15), 0.2)), model.dirichlet("shares", np.full((18, 3), 0.3))
        choice = model.categorical("choice", s[document])
        model.categorical("word", t, given=choice, observed=words)
        posterior = model.infer(seed=seed, max_sweeps=2)
        mass = posterior[t].mean.reshape(3, 3, 5).sum(axis=2)
        assert sorted(mass.argmax(axis=1).tolist()) == [0, 1, 2]
        assert mass.max(axis=1).min() > 0.9


def test_a_table_of_the_wrong_shape_or_family_is_refused_in_a_sentence():
    model = hg.Model()
    rows, other = model.dirichlet("rows", np.ones((3, 4))), model.beta("other", 1.0, 1.0, size=2)
    parent = model.bernoulli("parent", 0.5)
    with pytest.raises(ModelError, match="'rows' has shape"):
        model.categorical("x", rows, given=parent)
    with pytest.raises(UnsupportedError, match="must be a Dirichlet variable"):
        model.categorical("x", other, given=parent)
