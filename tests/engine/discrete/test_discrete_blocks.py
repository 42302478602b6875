"""Chains, trees and small loops of categories against enumeration of every configuration."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

import heliograph as hg
from heliograph.errors import AccuracyWarning, ContradictionError, ModelError, UnsupportedError


def by_enumeration(sizes, weight):
    """Probabilities of every variable, and the log of the sum of weights of all configurations."""
    found = [np.zeros(k) for k in sizes]
    total = 0.0
    for configuration in itertools.product(*(range(k) for k in sizes)):
        w = weight(configuration)
        total += w
        for p, k in zip(found, configuration, strict=True):
            p[k] += w
    return [p / total for p in found], np.log(total)


def probability_of(belief):
    return belief.p if isinstance(belief, hg.Categorical) else np.stack([1 - belief.p, belief.p], axis=-1)


def random_net(rng, n):
    """A model of n variables with up to three parents each, some observed, and its weight function."""
    model, made, sizes, tables, parents, seen = hg.Model(), [], [], [], [], {}
    for k in range(n):
        size = int(rng.integers(2, 4))
        above = sorted(rng.permutation(k)[: int(rng.integers(0, 4))])
        table = rng.dirichlet(np.full(size, 0.5), tuple(sizes[j] for j in above))
        observed = float(rng.integers(size)) if rng.random() < 0.25 else None
        given = [made[j] for j in above] or None
        if size == 2 and rng.random() < 0.5:
            x = model.bernoulli(f"x{k}", table[..., 1], given=given, observed=observed)
        else:
            x = model.categorical(f"x{k}", table, given=given, observed=observed)
        made.append(x)
        sizes.append(size)
        tables.append(table)
        parents.append(above)
        if observed is not None:
            seen[k] = observed

    def weight(c):
        if any(c[k] != v for k, v in seen.items()):
            return 0.0
        return np.prod([tables[k][(*(c[j] for j in parents[k]), c[k])] for k in range(n)])

    return model, made, sizes, weight


@pytest.mark.parametrize("seed", range(40))
def test_random_bayes_nets_with_loops_are_exact(seed):
    rng = np.random.default_rng(seed)
    model, made, sizes, weight = random_net(rng, int(rng.integers(2, 8)))
    expected, log_evidence = by_enumeration(sizes, weight)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        posterior = model.infer()
    assert posterior.converged and posterior.n_sweeps == 0
    assert posterior.log_evidence == pytest.approx(log_evidence, abs=1e-10)
    for x, p in zip(made, expected, strict=True):
        np.testing.assert_allclose(probability_of(posterior[x]), p, atol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3, 9])
@pytest.mark.parametrize("shuffled", [False, True])
def test_a_hidden_chain_with_gaussian_data_is_exact_in_one_pass(n, shuffled):
    rng = np.random.default_rng(n)
    k, means = 3, np.array([-1.0, 0.5, 2.0])
    start, step = rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(k), k)
    y = rng.normal(0.5, 1.5, n)
    order = rng.permutation(n) if shuffled else np.arange(n)
    model = hg.Model()
    x = model.chain("x", n, hg.Categorical(start), lambda before: model.categorical("x", step, given=before))
    centres = model.gaussian("means", means, variance=1e-12)
    model.mixture("y", x[order], centres, variance=1.0, observed=y[order])

    def weight(c):
        w = start[c[0]] * np.prod([step[a, b] for a, b in itertools.pairwise(c)])
        return w * np.prod(np.exp(-0.5 * (y - means[list(c)]) ** 2) / np.sqrt(2 * np.pi))

    expected, log_evidence = by_enumeration([k] * n, weight)
    posterior = model.infer()
    np.testing.assert_allclose(posterior[x].p, expected, atol=1e-6)  # the means have a variance of 1e-12
    assert posterior.log_evidence == pytest.approx(log_evidence, abs=1e-6)
    assert n == 1 or posterior.structure["x"] == "joint"


def test_labels_in_a_chain_beside_unknown_skills_keep_their_evidence():
    """A block whose sites are far: two coins behind probits, joined by a table, against a sum over the coins."""
    model = hg.Model()
    a = model.bernoulli("a", 0.3)
    b = model.bernoulli("b", [0.9, 0.2], given=a)
    p = model.beta("p", 2.0, 3.0)
    heads = model.bernoulli("heads", p)  # an unobserved coin
    model.constrain((a & heads) | b)
    expected, log_evidence = by_enumeration(
        [2, 2, 2],
        lambda c: (
            (0.3 if c[0] else 0.7)
            * (([0.9, 0.2][c[0]]) if c[1] else 1 - [0.9, 0.2][c[0]])
            * (0.4 if c[2] else 0.6)
            * ((c[0] and c[2]) or c[1])
        ),
    )
    posterior = model.infer()
    for x, q in zip((a, b, heads), expected, strict=True):
        assert posterior[x].p == pytest.approx(q[1], abs=1e-10)
    assert posterior.log_evidence == pytest.approx(log_evidence, abs=1e-10)
    # E p = sum over heads of P(heads) E[p | heads]
    assert posterior[p].mean == pytest.approx(expected[2][1] * 3 / 6 + expected[2][0] * 2 / 6, abs=5e-3)


def test_a_probability_that_a_site_makes_tiny_still_answers_to_the_chain():
    """One site says 0 by 800 nats, the rest of the chain says 1 by 900: the sum is in logarithms."""
    model = hg.Model()
    a = model.categorical("a", [0.5, 0.5])
    b = model.categorical("b", np.eye(2), given=a)
    model.attach(a, hg.Categorical.from_log_p([0.0, -800.0]))
    model.attach(b, hg.Categorical.from_log_p([-900.0, 0.0]))
    posterior = model.infer()
    assert posterior[a].log_p[0] == pytest.approx(-100.0, rel=1e-12)
    assert posterior.log_evidence == pytest.approx(-800.0 + np.log(0.5), rel=1e-12)


def test_missing_entries_of_an_observed_chain_are_filled_in():
    rng = np.random.default_rng(3)
    step = rng.dirichlet(np.ones(3), 3)
    seen = np.array([0.0, np.nan, np.nan, 2.0, np.nan])
    model = hg.Model()
    x = model.chain(
        "x", 5, hg.Categorical([0.2, 0.3, 0.5]), lambda b: model.categorical("x", step, given=b), observed=seen
    )

    def weight(c):
        if c[0] != 0 or c[3] != 2:
            return 0.0
        return 0.2 * np.prod([step[a, b] for a, b in itertools.pairwise(c)])

    expected, log_evidence = by_enumeration([3] * 5, weight)
    posterior = model.infer()
    np.testing.assert_allclose(posterior[x].p, expected, atol=1e-12)
    assert posterior.log_evidence == pytest.approx(log_evidence, abs=1e-12)


def test_factorised_messages_remain_and_agree_on_a_tree():
    rng = np.random.default_rng(1)
    table = rng.dirichlet(np.ones(3), 3)
    model = hg.Model()
    x = model.categorical("x", [0.2, 0.3, 0.5])
    y = model.categorical("y", table, given=x)
    model.categorical("z", table, given=y, observed=1)
    joint, factorised = model.infer(), model.infer(structure="factorised")
    np.testing.assert_allclose(joint[x].p, factorised[x].p, atol=1e-12)
    assert joint.log_evidence == pytest.approx(factorised.log_evidence, abs=1e-12)


def test_a_dense_net_that_is_too_large_falls_back_and_says_so():
    rng = np.random.default_rng(0)
    model = hg.Model()
    x = model.bernoulli("x", 0.5, size=40)
    i, j = np.triu_indices(40, 1)
    model.bernoulli("y", rng.uniform(0.4, 0.6, (len(i), 2, 2)), given=(x[i], x[j]), observed=np.ones(len(i)))
    with pytest.warns(AccuracyWarning, match="'x'.*loopy belief propagation"):
        model.infer()
    with pytest.raises(UnsupportedError, match="structure='auto'"):
        model.infer(structure="joint")


def test_tables_that_leave_nothing_possible_are_named():
    model = hg.Model()
    a = model.bernoulli("a", 0.5)
    b = model.bernoulli("b", 0.5)
    model.constrain(a & b)
    model.constrain(~(a | b))
    with pytest.raises(ContradictionError, match="'a', 'b'"):
        model.infer()


# ---- the language -------------------------------------------------------------------------------------------------
def test_operations_on_labels_and_categories_are_their_truth_tables():
    p, q = np.array([0.2, 0.3, 0.5]), np.array([0.1, 0.6, 0.3])
    model = hg.Model()
    a, b = model.bernoulli("a", 0.3), model.bernoulli("b", 0.6)
    c, d = model.categorical("c", p), model.categorical("d", q)
    made = {
        "and": (a & b, 0.18), "or": (a | b, 0.72), "xor": (a ^ b, 0.54), "not": (~a, 0.7), "same": (c == d, p @ q),
        "differ": (c != d, 1 - p @ q), "two": (c == 2, 0.5), "rest": (c != [0, 1, 2], 1 - p), "label": (b == 0, 0.4),
        "alike": (a == b, 0.3 * 0.6 + 0.7 * 0.4), "known": (True & a, 0.3),
    }  # fmt: skip
    posterior = model.infer()
    for x, expected in made.values():
        np.testing.assert_allclose(posterior[x].p, expected, atol=1e-12)


def test_two_coins():
    model = hg.Model()
    first, second = model.bernoulli("first", 0.5), model.bernoulli("second", 0.5)
    model.observe(first & second, 0)
    posterior = model.infer()
    assert posterior[first].p == pytest.approx(1 / 3, abs=1e-12)
    assert np.exp(posterior.log_evidence) == pytest.approx(3 / 4, abs=1e-12)


def test_what_is_no_label_or_category_is_refused_in_a_sentence():
    model = hg.Model()
    a, c, g = model.bernoulli("a", 0.3), model.categorical("c", [0.5, 0.5]), model.gaussian("g", 0.0, variance=1.0)
    with pytest.raises(UnsupportedError, match="'c' is Categorical"):
        a & c
    with pytest.raises(UnsupportedError, match=r"model\.equal"):
        g == 3.0  # noqa: B015
    with pytest.raises(ModelError, match="from 0 to 1"):
        c == 2  # noqa: B015
    with pytest.raises(ModelError, match="last axes are"):
        model.bernoulli("b", [0.1, 0.2, 0.3], given=a)
    with pytest.raises(ModelError, match="'a', 'c'"):
        model.categorical("d", np.ones((2, 3, 2)) / 2, given=(a, c))
    with pytest.raises(ModelError, match="nothing else"):
        model.bernoulli("b", logit=g, given=a)
    assert (g == None) is False  # noqa: E711


@pytest.mark.parametrize("tables", ["known", "unknown"])
def test_a_model_with_a_block_predicts_and_takes_new_data(tables):
    rng = np.random.default_rng(0)
    table = np.array([[0.9, 0.1], [0.2, 0.8]])
    model = hg.Model()
    rows = table if tables == "known" else model.dirichlet("rows", np.full((2, 2), 2.0))
    z = model.chain(
        "z",
        6,
        lambda: model.categorical("z", [0.5, 0.5]),
        lambda before: model.categorical("z", table, given=before),
    )
    model.categorical("y", rows, given=z, observed=rng.integers(2, size=6).astype(float))
    model.infer()
    model.observe(y=[1.0, 1.0, 1.0, np.nan, 0.0, 0.0])
    posterior = model.infer()
    assert posterior[z].p.shape == (6, 2)  # by the variable itself: the posterior is of the data that the model has now
    drawn = posterior.predict("y", draws=20_000).mean
    sent = table if tables == "known" else posterior["rows"].mean
    np.testing.assert_allclose(drawn, posterior[z].p @ sent, atol=0.03)  # 4 standard errors; rows and z apart add .01
