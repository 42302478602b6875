"""Models with gates against truth that knows no gates: conjugate formulas, dense algebra, SciPy, and branches written alone."""

import numpy as np
import pytest
from scipy.special import betaln, gammaln, logsumexp
from scipy.stats import multivariate_normal, norm

import heliograph as hg

TIGHT = 1e-8


def two_gaussians(y, prior=0.3):
    model = hg.Model()
    s = model.bernoulli("s", prior)
    common = model.gaussian("common", 0.5, variance=1.0)
    with model.when(s == 0):
        model.gaussian("y", common, variance=1.0, observed=y)
    with model.when(s == 1):
        own = model.gaussian("own", common, variance=4.0)
        model.gaussian("y", own, variance=2.0, observed=y)
    return model, s, common, own


def gaussian_branches(y, prior=0.3):
    n = len(y)
    zero = multivariate_normal.logpdf(y, np.full(n, 0.5), np.eye(n) + 1.0)
    one = multivariate_normal.logpdf(y, np.full(n, 0.5), 2.0 * np.eye(n) + 5.0)
    return np.array([np.log1p(-prior) + zero, np.log(prior) + one])


@pytest.mark.parametrize("n", [1, 2, 7, 60])
def test_two_gaussian_models_have_the_evidence_of_dense_algebra(n):
    y = np.random.default_rng(n).normal(1.5, 1.7, n)
    model, s, common, own = two_gaussians(y)
    posterior, truth = model.infer(), gaussian_branches(y)
    assert posterior.log_evidence == pytest.approx(logsumexp(truth), abs=TIGHT)
    weights = np.exp(truth - logsumexp(truth))
    assert posterior[s].p == pytest.approx(weights[1], abs=TIGHT)
    assert posterior.probability(own) == pytest.approx(weights[1], abs=TIGHT)
    assert posterior.probability(common) == pytest.approx(1.0)
    # common and y are jointly Gaussian in each branch
    moments = []
    for noise, between in ((1.0, 0.0), (2.0, 4.0)):
        precision = 1.0 + 1.0 / (between + noise / n)
        mean = (0.5 + y.mean() / (between + noise / n)) / precision
        moments.append((mean, 1.0 / precision))
    mean = sum(w * m for w, (m, _) in zip(weights, moments, strict=True))
    variance = sum(w * (v + (m - mean) ** 2) for w, (m, v) in zip(weights, moments, strict=True))
    assert posterior[common].mean == pytest.approx(mean, abs=TIGHT)
    assert posterior[common].variance == pytest.approx(variance, abs=TIGHT)
    assert posterior[common + 1.0].mean == pytest.approx(mean + 1.0, abs=TIGHT)
    assert posterior.converged


def test_draws_come_from_the_branches_in_their_proportions():
    y = np.array([0.5, 1.2, 2.0])
    model, s, common, own = two_gaussians(y)
    posterior = model.infer()
    draws = posterior.sample(20_000, seed=3)
    assert draws["s"].mean() == pytest.approx(float(posterior[s].p), abs=0.015)
    assert draws["common"].mean() == pytest.approx(float(posterior[common].mean), abs=0.03)
    assert (np.isnan(draws["own"]) == (draws["s"] == 0)).all()
    assert np.nanmean(draws["own"]) == pytest.approx(float(posterior[own].mean), abs=0.06)
    again = posterior.sample(20_000, seed=3)
    assert all(np.array_equal(draws[k], again[k], equal_nan=True) for k in draws)


def test_a_clinical_trial_has_the_evidence_of_beta_binomials():
    n, k = np.array([40, 38]), np.array([21, 9])
    model = hg.Model()
    effect = model.bernoulli("effect", 0.5)
    with model.when(~effect):
        shared = model.beta("shared", 1.0, 2.0)
        model.binomial("cured", n, shared, observed=k)
    with model.when(effect):
        rates = model.beta("rates", 1.0, 2.0, size=2)
        model.binomial("cured", n, rates, observed=k)
    posterior = model.infer()
    choose = (gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)).sum()
    same = choose + betaln(1 + k.sum(), 2 + (n - k).sum()) - betaln(1, 2)
    apart = choose + (betaln(1 + k, 2 + n - k) - betaln(1, 2)).sum()
    assert posterior.log_evidence == pytest.approx(np.log(0.5) + np.logaddexp(same, apart), abs=TIGHT)
    assert posterior[effect].p == pytest.approx(1.0 / (1.0 + np.exp(same - apart)), abs=TIGHT)
    assert posterior[rates].mean == pytest.approx((1 + k) / (3 + n), abs=TIGHT)
    assert posterior[shared].mean == pytest.approx((1 + k.sum()) / (3 + n.sum()), abs=TIGHT)


def log_gamma_poisson(y, a, b):
    total, n = y.sum(), len(y)
    return a * np.log(b) - gammaln(a) + gammaln(a + total) - (a + total) * np.log(b + n) - gammaln(y + 1).sum()


def test_a_change_point_has_the_evidence_and_the_positions_of_enumeration():
    y = np.array([4, 5, 3, 6, 4, 1, 0, 2, 1, 1, 0, 1])
    positions = range(1, len(y))
    prior = np.full(len(positions), 1.0 / len(positions))
    model = hg.Model()
    change = model.categorical("change", prior)
    before, after = model.gamma("before", 2.0, 1.0), model.gamma("after", 2.0, 1.0)
    for k, at in enumerate(positions):
        with model.when(change == k):
            model.poisson("first", before, observed=y[:at])
            model.poisson("second", after, observed=y[at:])
    posterior = model.infer()
    each = np.array([log_gamma_poisson(y[:t], 2.0, 1.0) + log_gamma_poisson(y[t:], 2.0, 1.0) for t in positions])
    truth = each + np.log(prior)
    weights = np.exp(truth - logsumexp(truth))
    assert posterior.log_evidence == pytest.approx(logsumexp(truth), abs=TIGHT)
    assert posterior[change].p == pytest.approx(weights, abs=TIGHT)
    means = np.array([(2.0 + y[:t].sum()) / (1.0 + t) for t in positions])
    assert posterior[before].mean == pytest.approx(weights @ means, abs=TIGHT)


def logistic(x, y, covariate):
    model = hg.Model()
    a = model.gaussian("a", 0.0, variance=4.0)
    b = model.gaussian("b", 0.0, variance=4.0)
    model.bernoulli("y", logit=a + b * x if covariate else a + 0.0 * x, observed=y)
    return model.infer(tolerance=1e-10)


def test_a_covariate_under_a_gate_has_the_evidence_of_the_two_logistic_models():
    rng = np.random.default_rng(0)
    x = rng.normal(size=30)
    y = (rng.random(30) < 1 / (1 + np.exp(-1.5 * x))).astype(float)
    model = hg.Model()
    used = model.bernoulli("used", 0.2)
    a = model.gaussian("a", 0.0, variance=4.0)
    b = model.gaussian("b", 0.0, variance=4.0)
    with model.when(used):
        model.bernoulli("y", logit=a + b * x, observed=y)
    with model.when(~used):
        model.bernoulli("y", logit=a + 0.0 * x, observed=y)
    posterior = model.infer(tolerance=1e-10)
    with_it, without = logistic(x, y, True), logistic(x, y, False)
    terms = np.log(0.2) + with_it.log_evidence, np.log(0.8) + without.log_evidence
    assert posterior.log_evidence == pytest.approx(np.logaddexp(*terms), abs=TIGHT)
    weight = np.exp(terms[0] - np.logaddexp(*terms))
    assert posterior[b].mean == pytest.approx(weight * with_it["b"].mean, abs=1e-7)


def test_two_switches_one_inside_the_gate_of_the_other_have_three_branches():
    y = np.array([1.0, 2.5, 3.0, 2.2])
    model = hg.Model()
    shifted = model.bernoulli("shifted", 0.6)
    with model.when(~shifted):
        model.gaussian("y", 0.0, variance=1.0, observed=y)
    with model.when(shifted):
        far = model.categorical("far", [0.25, 0.75])
        with model.when(far == 0):
            model.gaussian("y", 1.0, variance=1.0, observed=y)
        with model.when(far != 0):
            model.gaussian("y", 2.0, variance=1.0, observed=y)
    posterior = model.infer()
    truth = np.log([0.4, 0.15, 0.45]) + [norm.logpdf(y, m, 1.0).sum() for m in (0.0, 1.0, 2.0)]
    assert posterior.log_evidence == pytest.approx(logsumexp(truth), abs=TIGHT)
    assert sorted(b.log_evidence for b in posterior.branches) == pytest.approx(sorted(truth), abs=TIGHT)
    p = np.exp(truth - logsumexp(truth))
    assert posterior[far].p == pytest.approx(p[1:] / p[1:].sum(), abs=TIGHT)  # given that there is a shift
    assert posterior.probability(far) == pytest.approx(p[1:].sum(), abs=TIGHT)


def test_two_switches_side_by_side_have_all_combinations_and_may_be_joined():
    y = np.array([0.4, 1.9])
    model = hg.Model()
    a, b = model.bernoulli("a", 0.3), model.bernoulli("b", 0.8)
    shift = {(i, j): 1.0 * i - 2.0 * j for i in (0, 1) for j in (0, 1)}
    for i in (0, 1):
        for j in (0, 1):
            with model.when((a == i) & (b == j)):
                model.gaussian("y", shift[i, j], variance=1.0, observed=y)
    posterior = model.infer()
    prior = {(i, j): (0.3 if i else 0.7) * (0.8 if j else 0.2) for i, j in shift}
    truth = {k: np.log(prior[k]) + norm.logpdf(y, shift[k], 1.0).sum() for k in shift}
    assert posterior.log_evidence == pytest.approx(logsumexp(list(truth.values())), abs=TIGHT)
    for branch in posterior.branches:
        assert branch.log_evidence == pytest.approx(truth[branch.values["a"], branch.values["b"]], abs=TIGHT)


def test_a_switch_with_an_unknown_probability_has_its_evidence_from_the_prior_of_that():
    model = hg.Model()
    p = model.beta("p", 2.0, 3.0)
    s = model.bernoulli("s", p)
    with model.when(s):
        model.gaussian("y", 2.0, variance=1.0, observed=1.5)
    with model.when(~s):
        model.gaussian("y", 0.0, variance=1.0, observed=1.5)
    posterior = model.infer()
    one, zero = np.log(0.4) + norm.logpdf(1.5, 2.0, 1.0), np.log(0.6) + norm.logpdf(1.5, 0.0, 1.0)
    assert posterior.log_evidence == pytest.approx(np.logaddexp(one, zero), abs=TIGHT)
    w = np.exp(one - np.logaddexp(one, zero))
    assert posterior[p].mean == pytest.approx(w * 3 / 6 + (1 - w) * 2 / 6, abs=TIGHT)


@pytest.mark.parametrize("vector", [True, False])
def test_the_same_product_in_two_gates_is_written_in_both(vector):
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(6, 2)), rng.normal(size=6)
    model = hg.Model()
    s = model.bernoulli("s", 0.5)
    w = model.gaussian("w", np.zeros(2), covariance=np.eye(2)) if vector else model.gaussian("w", np.zeros(2), sd=1.0)
    for k, variance in ((0, 1.0), (1, 3.0)):
        with model.when(s == k):
            model.gaussian("y", x @ (w if vector else model.stack(w)), variance=variance, observed=y)
    truth = [multivariate_normal.logpdf(y, np.zeros(6), x @ x.T + v * np.eye(6)) for v in (1.0, 3.0)]
    assert model.infer().log_evidence == pytest.approx(np.log(0.5) + np.logaddexp(*truth), abs=TIGHT)


def test_statements_that_contradict_each_other_stand_in_different_gates():
    model = hg.Model()
    s = model.bernoulli("s", 0.3)
    x = model.gaussian("x", 1.0, variance=1.0)
    with model.when(s):
        model.constrain(x > 0.0)
    with model.when(~s):
        model.constrain(x < 0.0)
    posterior = model.infer()
    assert posterior.log_evidence == pytest.approx(np.log(0.3 * norm.sf(0.0, 1.0) + 0.7 * norm.cdf(0.0, 1.0)), abs=1e-7)


@pytest.mark.parametrize("value", [0, 1])
def test_an_observed_switch_leaves_one_branch(value):
    y = np.array([0.5, 1.2])
    model, s, _, _ = two_gaussians(y)
    model.observe(s, value)
    posterior = model.infer()
    assert posterior.log_evidence == pytest.approx(gaussian_branches(y)[value], abs=TIGHT)
    assert posterior[s].mean == value


def test_a_branch_that_cannot_be_has_probability_zero():
    y = np.array([0.5, 1.2])
    model, s, _, own = two_gaussians(y, prior=0.0)
    posterior = model.infer()
    assert posterior.log_evidence == pytest.approx(gaussian_branches(y, 1e-300)[0], abs=TIGHT)
    assert posterior[s].mean == 0.0
    with pytest.raises(hg.ModelError, match="no branch with a positive probability"):
        posterior[own]


def test_a_gated_model_is_compared_with_others_of_the_same_data():
    y = np.array([0.5, 1.2, 2.0])
    model, *_ = two_gaussians(y)
    plain = hg.Model()
    plain.gaussian("y", 0.0, variance=1.0, observed=y)
    other = plain.infer()
    truth = logsumexp(gaussian_branches(y)) - norm.logpdf(y).sum()
    assert model.infer().compare(other) == pytest.approx(truth, abs=TIGHT)


def test_a_gated_posterior_is_saved_and_shown(tmp_path):
    model, *_ = two_gaussians(np.array([0.5, 1.2]))
    posterior = model.infer()
    posterior.save(tmp_path / "p.hg")
    read = hg.load_posterior(tmp_path / "p.hg")
    assert read.log_evidence == posterior.log_evidence
    assert read["common"].mean == pytest.approx(posterior["common"].mean)
    assert "s = 1" in posterior.summary()
    assert "when (s == 1): own, y" in model.summary()


def test_covariances_are_those_inside_the_branches_and_between_them():
    model = hg.Model()
    s = model.bernoulli("s", 0.5)
    a, b = model.gaussian("a", 0.0, variance=1.0), model.gaussian("b", 1.0, variance=2.0)
    for k, noise in enumerate((1.0, 9.0)):
        with model.when(s == k):
            model.gaussian("y", a + b, variance=noise, observed=4.0)
    posterior = model.infer()
    densities = np.array([norm.pdf(4.0, 1.0, np.sqrt(3.0 + v)) for v in (1.0, 9.0)])
    w = densities / densities.sum()
    pull = np.array([3.0 / (3.0 + v) for v in (1.0, 9.0)])  # of the mean: variance times this
    inside = np.array([-2.0 / (3.0 + v) for v in (1.0, 9.0)])
    between = w @ (pull - w @ pull) ** 2 * 1.0 * 2.0
    assert posterior.covariance(a, b) == pytest.approx(w @ inside + between, abs=TIGHT)
    assert posterior[a + b].variance == pytest.approx(
        posterior[a].variance + posterior[b].variance + 2.0 * posterior.covariance(a, b), abs=TIGHT
    )


def test_chains_and_named_data_may_stand_in_a_gate():
    y = np.array([0.3, 1.0, 0.2, -0.5])
    model = hg.Model()
    s = model.bernoulli("s", 0.5)
    t = model.data("t", np.arange(4.0))
    with model.when(s):
        x = model.chain(
            "x",
            4,
            start=lambda: model.gaussian("x", 0.0, variance=1.0),
            step=lambda previous: model.gaussian("x", previous, variance=0.5),
        )
        model.gaussian("y", x, variance=1.0, observed=y)
    with model.when(~s):
        slope = model.gaussian("slope", 0.0, variance=1.0)
        model.gaussian("y", slope * t, variance=1.0, observed=y)
    walk = 1.0 + 0.5 * np.minimum.outer(np.arange(4), np.arange(4)) + np.eye(4)
    line = np.outer(np.arange(4), np.arange(4)) + np.eye(4)
    truth = [multivariate_normal.logpdf(y, np.zeros(4), c) for c in (walk, line)]
    assert model.infer().log_evidence == pytest.approx(np.log(0.5) + np.logaddexp(*truth), abs=TIGHT)


# ---- what is refused ---------------------------------------------------------------------------------------------
def test_a_variable_of_a_gate_is_refused_outside_it_and_in_another():
    model, s, _, own = two_gaussians(np.array([0.5, 1.2]))
    with pytest.raises(hg.ModelError, match=r"'own' was made under the gate \(s == 1\)"):
        own + 1.0
    with pytest.raises(hg.ModelError, match="'own' was made under"), model.when(s == 0):
        model.gaussian("z", own, variance=1.0)


def test_a_gate_that_fails_leaves_nothing_behind():
    y = np.array([0.5, 1.2])
    model, s, common, _ = two_gaussians(y)
    with pytest.raises(ZeroDivisionError), model.when(s == 0):
        model.gaussian("z", common, variance=1.0, observed=100.0)
        raise ZeroDivisionError
    assert model.infer().log_evidence == pytest.approx(logsumexp(gaussian_branches(y)), abs=TIGHT)


def test_wrong_switches_are_refused_with_a_remedy():
    model = hg.Model()
    many, c = model.bernoulli("many", 0.5, size=3), model.categorical("c", [0.5, 0.5])
    x = model.gaussian("x", 0.0, variance=1.0)
    for wrong, words in (
        (many, r"model\.mixture"),
        (many[0], r"model\.select"),
        (c, r"c == 0"),
        (x, "is Gaussian"),
        (True, "takes a condition"),
        (hg.Model().bernoulli("b", 0.5), "another model"),
    ):
        with pytest.raises(hg.HeliographError, match=words), model.when(wrong):
            pass


def test_gates_that_hold_together_and_clash_are_named():
    model = hg.Model()
    a, b = model.bernoulli("a", 0.5), model.bernoulli("b", 0.5)
    with model.when(a):
        model.gaussian("y", 0.0, variance=1.0, observed=1.0)
    with model.when(b):
        model.gaussian("y", 1.0, variance=1.0, observed=1.0)
    with pytest.raises(hg.ModelError, match="where a = 1 and b = 1: a variable called 'y' exists already"):
        model.infer()


def test_too_many_branches_are_refused():
    model = hg.Model()
    for k in range(7):
        with model.when(model.bernoulli(f"s{k}", 0.5)):
            model.gaussian(f"y{k}", 0.0, variance=1.0, observed=1.0)
    with pytest.raises(hg.UnsupportedError, match="more than 64 branches"):
        model.infer()


def test_what_has_one_run_only_is_refused_for_gates():
    model, s, common, _ = two_gaussians(np.array([0.5, 1.2]))
    posterior = model.infer()
    with pytest.raises(hg.ModelError, match="use infer"):
        hg.steps(model)
    with pytest.raises(hg.ModelError, match="for every branch"):
        model.infer(start=posterior.best.posterior)
    with pytest.raises(hg.ModelError, match="model with gates"):
        model.observe(y=[1.0])
    with pytest.raises(hg.ModelError, match="no hyper-parameters"), model.when(s):
        model.half_normal("scale", 1.0)
    with pytest.raises(hg.ModelError, match="NaN"):
        posterior.predict("y", x=[1.0])
    model.gaussian("z", common, sd=model.half_normal("scale", 1.0), observed=1.0)
    with pytest.raises(hg.ModelError, match="no hyper-parameters"):
        model.infer()


@pytest.mark.parametrize("n", [1, 3, 20])
def test_predictions_and_likelihoods_are_averages_over_the_branches(n):
    """A coin that is fair or not: the next toss, and each of the old ones, have the average of both branches' probabilities."""
    y = (np.random.default_rng(n).random(n) < 0.8).astype(float)
    heads = y.sum()
    model = hg.Model()
    biased = model.bernoulli("biased", 0.5)
    with model.when(biased):
        p = model.beta("p", 1.0, 1.0)
        model.bernoulli("toss", p, observed=y)
    with model.when(~biased):
        model.bernoulli("toss", 0.5, observed=y)
    posterior = model.infer()
    log_w = np.array([n * np.log(0.5), betaln(1 + heads, 1 + n - heads)])
    weight = np.exp(log_w[1] - logsumexp(log_w))
    chance = weight * (1 + heads) / (n + 2) + (1 - weight) * 0.5
    assert posterior.log_likelihood(pointwise=True)["toss"] == pytest.approx(
        np.log(np.where(y == 1, chance, 1 - chance)), abs=1e-6
    )
    assert posterior.log_likelihood() == pytest.approx(np.log(np.where(y == 1, chance, 1 - chance)).sum(), abs=1e-5)
    again = posterior.predict("toss", draws=20_000, seed=1)
    assert again.samples.shape == (20_000, n)
    assert again.mean == pytest.approx(chance, abs=0.015)
    assert posterior.predict(p, draws=500).mean == pytest.approx((1 + heads) / (n + 2), abs=0.05)  # where there is a p
    with pytest.raises(hg.ModelError, match="no branch"):
        posterior.predict("nothing")


def test_counts_under_gates_are_predicted():
    model = hg.Model()
    high = model.bernoulli("high", 0.5)
    for value, rate in ((True, 20.0), (False, 2.0)):
        with model.when(high if value else ~high):
            model.poisson("count", model.gamma("rate", 50.0, 50.0 / rate), observed=[19.0, 22.0])
    posterior = model.infer()
    assert float(posterior[high].p) > 0.999
    assert posterior.predict("count").mean == pytest.approx((50 + 41) / (2.5 + 2), rel=0.02)
