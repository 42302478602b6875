"""Mixtures whose components are any factors: against sums over all assignments, Gibbs sampling, and the model of one component."""

import itertools
import warnings

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln, logsumexp

import heliograph as hg


@pytest.fixture(autouse=True)
def loops():
    """Mixtures are factorised, and a warning says so."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hg.AccuracyWarning)
        yield


# ---- sums over all assignments -----------------------------------------------------------------------------------
def summed(n, log_weight_and_moments):
    """Evidence, mean and sd of the parameters, and the probability of component 1 in every row."""
    log_w, mean, second, labels = [], [], [], []
    for label in itertools.product((0, 1), repeat=n):
        label = np.array(label)
        weight, m, v = log_weight_and_moments(label)
        log_w.append(weight + np.log([0.6, 0.4])[label].sum())
        mean.append(m)
        second.append(v + m**2)
        labels.append(label)
    evidence = logsumexp(log_w)
    w = np.exp(np.array(log_w) - evidence)
    mean = np.tensordot(w, np.array(mean), 1)
    return evidence, mean, np.sqrt(np.tensordot(w, np.array(second), 1) - mean**2), w @ np.array(labels)


def counts(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.poisson(np.where(rng.random(n) < 0.4, 12.0, 2.0)).astype(float)
    a, b = np.array([2.0, 12.0]), np.array([1.0, 1.0])

    def weigh(label):
        total, size = (np.array([w[label == k].sum() for k in (0, 1)]) for w in (y, np.ones(n)))
        shape, rate = a + total, b + size
        log_w = (a * np.log(b) - gammaln(a) + gammaln(shape) - shape * np.log(rate)).sum() - gammaln(y + 1).sum()
        return log_w, shape / rate, shape / rate**2

    model = hg.Model()
    rates = model.gamma("rates", a, b)
    which = model.bernoulli("which", 0.4, size=n)
    model.mixture("y", which, lambda k: model.poisson("y", rates[k]), observed=y)
    return model, rates, which, weigh


def regressions(n, seed):
    """Two lines through the origin with known noise; the exact posterior given labels is Gaussian."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(1.0, 3.0, n)
    y = np.where(rng.random(n) < 0.4, 2.0, -1.0) * x + 0.5 * rng.standard_normal(n)
    prior = np.array([-1.5, 2.5])

    def weigh(label):
        log_w, mean, variance = 0.0, np.zeros(2), np.zeros(2)
        for k in (0, 1):
            xs, ys = x[label == k], y[label == k]
            if len(ys):
                cov = 0.25 * np.eye(len(ys)) + 0.5 * np.outer(xs, xs)
                log_w += stats.multivariate_normal(prior[k] * xs, cov).logpdf(ys)
            variance[k] = 1 / (2.0 + (xs**2).sum() / 0.25)
            mean[k] = variance[k] * (2.0 * prior[k] + (xs * ys).sum() / 0.25)
        return log_w, mean, variance

    model = hg.Model()
    slopes = model.gaussian("slopes", prior, variance=0.5)
    which = model.bernoulli("which", 0.4, size=n)
    model.mixture("y", which, lambda k: model.gaussian("y", slopes[k] * x, sd=0.5), observed=y)
    return model, slopes, which, weigh


def vectors(n, seed):
    rng = np.random.default_rng(seed)
    noise, centres = np.array([[1.0, 0.5], [0.5, 1.0]]), np.array([[-3.0, 0.0], [3.0, 1.0]])
    label = (rng.random(n) < 0.4).astype(int)
    y = centres[label] + rng.multivariate_normal(np.zeros(2), noise, n)
    prior = np.array([[-3.0, -1.0], [2.0, 1.0]])

    def weigh(label):
        log_w, mean, variance = 0.0, np.zeros((2, 2)), np.zeros((2, 2))
        for k in (0, 1):
            ys = y[label == k]
            m = len(ys)
            if m:
                cov = np.kron(np.eye(m), noise) + np.kron(np.ones((m, m)), 2.0 * np.eye(2))
                log_w += stats.multivariate_normal(np.tile(prior[k], m), cov).logpdf(ys.reshape(-1))
            inverse = np.linalg.inv(noise)
            cov = np.linalg.inv(0.5 * np.eye(2) + m * inverse)
            mean[k], variance[k] = cov @ (0.5 * prior[k] + inverse @ ys.sum(axis=0)), np.diag(cov)
        return log_w, mean, variance

    model = hg.Model()
    means = model.gaussian("means", prior, covariance=2.0 * np.eye(2))
    which = model.bernoulli("which", 0.4, size=n)
    model.mixture("y", which, lambda k: model.gaussian("y", means[k], covariance=noise), observed=y)
    return model, means, which, weigh


@pytest.mark.parametrize("made", [counts, regressions, vectors])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
def test_small_mixtures_agree_with_the_sum_over_all_assignments(made, n):
    """One row is exact: its tilted distribution is the posterior. EP's own errors beyond are limited as docs/accuracy.md says."""
    model, parameters, which, weigh = made(n, 7)
    evidence, mean, sd, p = summed(n, weigh)
    posterior = model.infer()
    belief = posterior[parameters]
    assert posterior.converged
    exact = n == 1
    assert posterior.log_evidence == pytest.approx(evidence, abs=1e-9 if exact else 0.03)
    assert posterior[which].p == pytest.approx(p, abs=1e-9 if exact else 0.03)
    assert np.abs((belief.mean - mean) / sd).max() < (1e-9 if exact else 0.1)
    if made is not counts:  # a Gamma keeps E log, not the variance
        assert np.sqrt(np.asarray(belief.variance)) / sd == pytest.approx(1.0, abs=1e-9 if exact else 0.25)


# ---- many rows ---------------------------------------------------------------------------------------------------
def gibbs_of_counts(rng, y, rates, steps=1500, first=300):
    """Equal weights, rates ~ Gamma(1, .1), from the truth."""
    kept = []
    for step in range(steps):
        log_p = y[:, None] * np.log(rates) - rates
        z = (log_p + rng.gumbel(size=log_p.shape)).argmax(axis=1)
        rates = rng.gamma(1 + np.bincount(z, y, minlength=len(rates))) / (0.1 + np.bincount(z, minlength=len(rates)))
        if step >= first:
            kept.append(np.sort(rates))
    return np.mean(kept, axis=0), np.std(kept, axis=0)


@pytest.mark.parametrize("seed", range(4))
def test_rates_of_counts_are_those_of_gibbs_sampling(seed):
    rng = np.random.default_rng(seed)
    truth = np.array([1.0, 7.0, 25.0])
    y = rng.poisson(truth[rng.integers(0, 3, 300)]).astype(float)
    model = hg.Model()
    rates = model.gamma("rates", 1.0, 0.1, size=3)
    which = model.categorical("which", np.full(3, 1 / 3), size=300)
    model.mixture("y", which, lambda k: model.poisson("y", rates[k]), observed=y)
    posterior = model.infer(seed=seed)
    mean, sd = gibbs_of_counts(np.random.default_rng(50), y, truth.copy())
    order = np.argsort(posterior[rates].mean)
    assert posterior.converged, posterior.status
    assert np.abs(posterior[rates].mean[order] - mean).max() < 0.25 * sd.max()
    assert np.sqrt(posterior[rates].variance[order]) / sd == pytest.approx(1.0, abs=0.2)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 20, 21, 60, 400])
def test_components_that_do_not_touch_have_the_posterior_given_the_labels(n):
    rng = np.random.default_rng(n)
    label = rng.integers(0, 2, n)
    y = np.array([[-30.0, 0.0], [30.0, 5.0]])[label] + rng.standard_normal((n, 2))
    model = hg.Model()
    means = model.gaussian("means", np.array([[-30.0, 0.0], [30.0, 0.0]]), covariance=25.0 * np.eye(2))
    weights = model.dirichlet("weights", [1.0, 1.0])
    which = model.categorical("which", weights, size=n)
    model.mixture("y", which, lambda k: model.gaussian("y", means[k], covariance=np.eye(2)), observed=y)
    posterior = model.infer()
    count = np.bincount(label, minlength=2)
    assert posterior.converged
    total = np.stack([y[label == k].sum(0) for k in (0, 1)])
    truth = (total + np.array([[-1.2, 0.0], [1.2, 0.0]])) / (count + 0.04)[:, None]
    assert posterior[means].mean == pytest.approx(truth, abs=1e-6)
    assert posterior[weights].concentration == pytest.approx(1.0 + count, rel=1e-6)
    given = gammaln(2.0) - gammaln(2.0 + n) + gammaln(1.0 + count).sum()
    for k, prior in ((0, -30.0), (1, 30.0)):
        for j in (0, 1):
            ys = y[label == k, j]
            cov = np.eye(len(ys)) + 25.0
            given += (
                stats.multivariate_normal(np.full(len(ys), prior if j == 0 else 0.0), cov).logpdf(ys) if len(ys) else 0
            )
    assert posterior.log_evidence == pytest.approx(given, abs=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_three_lines_are_told_apart(seed):
    rng = np.random.default_rng(seed)
    label, x = rng.integers(0, 3, 300), rng.uniform(-3, 3, 300)
    a, b = np.array([1.0, -1.0, 0.0]), np.array([2.0, -1.5, 0.2])
    model = hg.Model()
    w = model.gaussian("w", np.zeros((3, 2)), covariance=25.0 * np.eye(2))
    which = model.categorical("which", np.full(3, 1 / 3), size=300)
    design = np.stack([np.ones(300), x], axis=1)
    y = a[label] + b[label] * x + 0.3 * rng.standard_normal(300)
    model.mixture("y", which, lambda k: model.gaussian("y", design @ w[k], sd=0.3), observed=y)
    posterior = model.infer(seed=seed)
    found = posterior[w].mean[np.argsort(-posterior[w].mean[:, 1])]
    assert posterior.converged, posterior.status
    assert found == pytest.approx(np.stack([a, b], axis=1)[[0, 2, 1]], abs=0.2)


# ---- what does not matter ----------------------------------------------------------------------------------------
def test_rows_in_another_order_and_other_units_give_the_same():
    rng = np.random.default_rng(3)
    label = rng.integers(0, 2, 80)
    y = rng.gamma(3.0, np.array([1.0, 9.0])[label])

    def run(order, unit):
        model = hg.Model()
        rate = model.gamma("rate", [1.0, 1.0], np.array([1.0, 9.0]) * unit)
        which = model.bernoulli("which", 0.5, size=80)
        model.mixture("y", which, lambda k: model.gamma("y", 3.0, rate[k]), observed=unit * y[order])
        p = model.infer(tolerance=1e-6)
        return p[rate].mean * unit, p[which].p[np.argsort(order)], p.log_evidence + 80 * np.log(unit)

    plain = run(np.arange(80), 1.0)
    for order, unit in ((rng.permutation(80), 1.0), (np.arange(80), 1e6), (np.arange(80), 1e-6)):
        for a, b in zip(run(order, unit), plain, strict=True):
            assert a == pytest.approx(b, rel=1e-5, abs=1e-6)


def test_a_function_of_gaussians_says_what_means_and_a_variance_say():
    rng = np.random.default_rng(4)
    y = rng.normal(np.array([-3.0, 3.0])[rng.integers(0, 2, 30)], 1.0)
    y[:3] = np.nan

    def run(word):
        model = hg.Model()
        means = model.gaussian("means", [-2.0, 2.0], sd=2.0)
        tau = model.gamma("tau", 2.0, 2.0)
        which = model.bernoulli("which", 0.5, size=30)
        word(model, which, means, tau)
        p = model.infer()
        return p[means].mean, p[means].variance, p[tau].mean, p.log_evidence, p[which].p, p["y"].mean

    one = run(lambda m, s, mu, tau: m.mixture("y", s, mu, precision=tau, observed=y))
    other = run(lambda m, s, mu, tau: m.mixture("y", s, lambda k: m.gaussian("y", mu[k], precision=tau), observed=y))
    for a, b in zip(one, other, strict=True):
        assert a == pytest.approx(b, rel=1e-4, abs=1e-4)


def test_known_components_give_the_exact_probabilities():
    rng = np.random.default_rng(5)
    y = rng.beta(2.0, 5.0, 60)
    model = hg.Model()
    which = model.bernoulli("which", 0.3, size=60)
    model.mixture("y", which, lambda k: model.beta("y", *[(2.0, 5.0), (6.0, 2.0)][k]), observed=y)
    p = model.infer()
    density = np.stack([0.7 * stats.beta(2, 5).pdf(y), 0.3 * stats.beta(6, 2).pdf(y)])
    assert p[which].p == pytest.approx(density[1] / density.sum(0), rel=1e-9)
    assert p.log_evidence == pytest.approx(np.log(density.sum(0)).sum(), rel=1e-12)


def test_counts_with_too_many_zeros():
    """Zeros of their own, and a Poisson: the posterior on a grid over the rate and the share of them."""
    rng = np.random.default_rng(6)
    y = np.where(rng.random(50) < 0.4, 0, rng.poisson(2.0, 50)).astype(float)
    model = hg.Model()
    rate, share = model.gamma("rate", 2.0, 1.0), model.beta("share", 1.0, 1.0)
    own = model.bernoulli("own", share, size=50)
    y[7] = np.nan
    model.mixture("y", own, lambda k: model.poisson("y", 1e-12 if k else rate), observed=y)
    r, s = np.meshgrid(np.linspace(0.01, 8, 800), (np.arange(400) + 0.5) / 400, indexing="ij")
    log_p = stats.gamma(2.0).logpdf(r)
    for v in y[~np.isnan(y)]:
        log_p += np.log(s * (v == 0) + (1 - s) * stats.poisson(r).pmf(v))
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    posterior = model.infer()
    for found, at in ((posterior[rate], r), (posterior[share], s)):
        mean = (p * at).sum()
        sd = np.sqrt((p * (at - mean) ** 2).sum())
        assert abs(found.mean - mean) < 0.15 * sd
        # rate and share are dependent, and EP factorises them
        assert 0.7 < np.sqrt(found.variance) / sd < 1.05


# ---- the rest of the language ------------------------------------------------------------------------------------
def lines(n=90):
    rng = np.random.default_rng(8)
    label, x = rng.integers(0, 2, n), rng.uniform(-3, 3, n)
    y = np.array([1.0, -1.0])[label] + np.array([2.0, -1.5])[label] * x + 0.5 * rng.standard_normal(n)
    y[::9] = np.nan
    model = hg.Model()
    at = model.data("x", x)
    a, b = model.gaussian("a", 0.0, sd=5.0, size=2), model.gaussian("b", [1.0, -1.0], sd=3.0)
    which = model.bernoulli("which", 0.5, size=n)
    model.mixture("y", which, lambda k: model.gaussian("y", a[k] + b[k] * at, sd=0.5), observed=y)
    return model, label, x, y


def test_missing_values_schedules_and_structures():
    model, label, x, y = lines()
    p = model.infer()
    missing = np.isnan(y)
    for other in (model.infer(schedule="sequential"), model.infer(structure="factorised")):
        assert other["b"].mean == pytest.approx(p["b"].mean, abs=1e-3)
    mixed = 0.5 * (p["a"].mean[0] + p["b"].mean[0] * x) + 0.5 * (p["a"].mean[1] + p["b"].mean[1] * x)
    assert p["y"].mean[missing] == pytest.approx(mixed[missing], abs=1e-6)
    assert (np.asarray(p["which"].p)[~missing].round() == label[~missing]).mean() > 0.9
    assert np.isnan(p.log_likelihood(pointwise=True)["y"]).tolist() == missing.tolist()


def test_predictions_follow_new_data_through_the_functions_of_components():
    model = lines()[0]
    p = model.infer()
    ahead = p.predict("y", x=np.full(90, 3.0))
    near = np.asarray(p["which"].p).round()
    line = p["a"].mean[near.astype(int)] + 3.0 * p["b"].mean[near.astype(int)]
    sure = np.abs(np.asarray(p["which"].p) - 0.5) > 0.4999
    assert ahead.mean[sure] == pytest.approx(line[sure], abs=0.05)
    assert ahead.sd[sure] == pytest.approx(0.5, abs=0.1)
    model.observe(y=np.full(90, 1.0), x=np.linspace(-1, 1, 90))
    assert np.isfinite(model.infer().log_evidence)


def test_an_unknown_scale_of_all_components_is_integrated_over():
    rng = np.random.default_rng(9)
    y = rng.normal(np.array([-6.0, 6.0])[rng.integers(0, 2, 80)], 1.4)
    model = hg.Model()
    mu = model.gaussian("mu", [-1.0, 1.0], sd=10.0)
    scale = model.half_normal("scale", 3.0)
    which = model.bernoulli("which", 0.5, size=80)
    model.mixture("y", which, lambda k: model.gaussian("y", mu[k], sd=scale), observed=y)
    p = model.infer()
    ss = sum(((y[y * s > 0] - y[y * s > 0].mean()) ** 2).sum() for s in (-1, 1))
    assert p["scale"].mean == pytest.approx(np.sqrt(ss / 78), rel=0.02)


def test_the_same_seed_gives_the_same_bits():
    answers = [lines()[0].infer(seed=5)["b"].mean for _ in range(2)]
    assert (answers[0] == answers[1]).all()


@pytest.mark.parametrize(
    ("component", "words"),
    [
        (lambda m, r: lambda k: None, "must call one builder with the name 'y'"),
        (lambda m, r: lambda k: (m.poisson("y", r[k]), m.poisson("y", r[k])), "it called 2"),
        (lambda m, r: lambda k: m.poisson("y", r[k], observed=[1.0]), "give observed= to model.mixture"),
        (lambda m, r: lambda k: m.poisson("y", r[k]) if k else m.gamma("y", 1.0, r[k]), "of different kinds"),
    ],
)
def test_a_function_that_makes_no_component_is_refused_and_leaves_nothing_behind(component, words):
    model = hg.Model()
    rates = model.gamma("rates", 1.0, 1.0, size=2)
    which = model.bernoulli("which", 0.5, size=3)
    with pytest.raises(hg.HeliographError, match=words):
        model.mixture("y", which, component(model, rates), observed=[1.0, 2.0, 3.0])
    model.mixture("y", which, lambda k: model.poisson("y", rates[k]), observed=[1.0, 2.0, 9.0])
    assert model.infer().converged


def test_what_a_component_makes_is_of_no_use_to_other_words():
    model = hg.Model()
    mu = model.gaussian("mu", [0.0, 5.0], sd=1.0)
    which = model.bernoulli("which", 0.5, size=3)
    with pytest.raises(hg.HeliographError, match="cannot be used further"):
        model.mixture("y", which, lambda k: model.gaussian("y", mu[k], sd=1.0) + 1.0, observed=np.zeros(3))


def test_a_zero_inflated_poisson_is_a_mixture_with_a_rate_of_0():
    y = np.array([0, 0, 0, 2, 3, 0, 1, 4, 0, 2, 0, 5])
    model = hg.Model()
    w, r = model.beta("w", 1, 1), model.gamma("r", 2.0, rate=0.5)
    z = model.bernoulli("z", w, size=len(y))
    model.mixture("y", z, lambda k: model.poisson("y", r if k else 0), observed=y)
    posterior = model.infer()
    share, rate = np.linspace(0.001, 0.999, 400)[:, None], np.linspace(0.01, 15, 1500)[None]
    log_p = stats.gamma.logpdf(rate, 2, scale=2)
    for one in y:
        log_p = log_p + np.log((1 - share) * (one == 0) + share * stats.poisson.pmf(one, rate))
    p = np.exp(log_p - logsumexp(log_p))
    for name, v in (("w", share), ("r", rate)):
        mean = (p * v).sum()
        sd = np.sqrt((p * (v - mean) ** 2).sum())
        assert abs(posterior[name].mean - mean) < 0.05 * sd
        assert abs(posterior[name].sd / sd - 1) < 0.05
    labels = posterior["z"].p
    np.testing.assert_allclose(labels[y > 0], 1.0, atol=1e-6)
    assert posterior.converged
