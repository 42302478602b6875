"""Means of components that overlap are jointly Gaussian: against dense algebra, sums over assignments, and Gibbs sampling."""

import itertools
import warnings

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

import heliograph as hg
from heliograph.engine.forms.choice import JointChoice
from heliograph.factors import GaussianFactor, Mixture, OneOf
from heliograph.families import Categorical, Gamma, Gaussian, MultivariateGaussian


def cavity_of(rng, n, d):
    root = rng.standard_normal((n, d, d))
    return MultivariateGaussian(rng.standard_normal((n, d)), root @ np.swapaxes(root, 1, 2) + 0.3 * np.eye(d))


@pytest.mark.parametrize("kind", ["mixture", "one of"])
def test_the_vector_hears_the_mixture_of_what_dense_algebra_makes_of_every_component(kind):
    rng = np.random.default_rng(0)
    n, k = 6, 3
    cavity, x, variance = cavity_of(rng, n, k), rng.standard_normal(n), np.array([0.5, 1.0, 2.0])
    p = rng.dirichlet(np.ones(k), n)
    incoming = {"s": Categorical(p), "x": Gaussian.point_mass(x)}
    if kind == "mixture":
        form = JointChoice(Mixture(k), tuple(f"mean{j}" for j in range(k)))
        incoming |= {f"precision{j}": Gamma.point_mass(np.full(n, 1 / variance[j])) for j in range(k)}
    else:
        form = JointChoice(OneOf([GaussianFactor()] * k), tuple(f"mean_{j}" for j in range(k)))
        incoming |= {f"variance_{j}": np.full(n, variance[j]) for j in range(k)}
    incoming[form.port] = cavity
    sent, log_z = form.message(form.port, incoming), form.log_z(incoming)
    for i in range(n):
        m, v = cavity.mean[i], cavity.covariance[i]
        log_w, means, covariances = [], [], []
        for j in range(k):
            total = v[j, j] + variance[j]
            log_w.append(np.log(p[i, j]) + stats.norm(m[j], np.sqrt(total)).logpdf(x[i]))
            means.append(m + v[:, j] * (x[i] - m[j]) / total)
            covariances.append(v - np.outer(v[:, j], v[:, j]) / total)
        w = np.exp(log_w - logsumexp(log_w))
        mean = w @ np.array(means)
        apart = np.array(means) - mean
        covariance = np.tensordot(w, np.array(covariances), 1) + (w[:, None] * apart).T @ apart
        belief = sent[i] * cavity[i]
        assert belief.mean == pytest.approx(mean, rel=1e-9)
        assert belief.covariance == pytest.approx(covariance, rel=1e-8)
        assert log_z[i] == pytest.approx(logsumexp(log_w), rel=1e-10)


@pytest.mark.parametrize("n", [1, 2, 4, 8])
def test_small_mixtures_have_the_means_and_sds_of_the_sum_over_assignments(n):
    """With three rows and more EP is not exact; factorised, sds are off by three to five times as much (measured: .02 to .2)."""
    rng = np.random.default_rng(n)
    y = rng.normal(np.where(rng.random(n) < 0.5, 1.5, -1.5), 1.0)
    log_w, mean, second = [], [], []
    for label in itertools.product((0, 1), repeat=n):
        label = np.array(label)
        v = 1 / (1.0 + np.array([(label == k).sum() for k in (0, 1)]))
        m = v * (np.array([-1.5, 1.5]) + [y[label == k].sum() for k in (0, 1)])
        log_w.append(
            sum(
                stats.multivariate_normal(
                    np.full(c, 3.0 * k - 1.5), np.eye(c) + 1.0 if c > 1 else np.full((1, 1), 2.0)
                ).logpdf(y[label == k])
                for k in (0, 1)
                if (c := int((label == k).sum()))
            )
            + n * np.log(0.5)
        )
        mean.append(m)
        second.append(v + m**2)
    w = np.exp(np.array(log_w) - logsumexp(log_w))
    truth = w @ np.array(mean)
    sd = np.sqrt(w @ np.array(second) - truth**2)
    model = hg.Model()
    means = model.gaussian("means", [-1.5, 1.5], sd=1.0)
    which = model.bernoulli("which", 0.5, size=n)
    model.mixture("y", which, means, sd=1.0, observed=y)
    posterior = model.infer()
    exact = n == 1
    assert posterior.converged
    assert np.abs(posterior[means].mean - truth).max() < (1e-9 if exact else 0.06) * sd.min()
    assert posterior[means].sd / sd == pytest.approx(1.0, abs=1e-9 if exact else 0.05)
    assert posterior.log_evidence == pytest.approx(logsumexp(log_w), abs=1e-9 if exact else 0.02)


def overlapping(seed, weights, n=200, separation=2.5):
    rng = np.random.default_rng(seed)
    centres = separation * np.array([-0.5, 0.5])
    y = rng.normal(centres[rng.integers(0, 2, n)], 1.0)
    model = hg.Model()
    means = model.gaussian("means", [-1.0, 1.0], sd=10.0)
    share = model.dirichlet("share", [1.0, 1.0]) if weights else [0.5, 0.5]
    which = model.categorical("which", share, size=n)
    model.mixture("y", which, means, sd=1.0, observed=y)
    return model, means, y, centres


def gibbs(rng, y, means, steps=4000, first=400):
    kept = []
    for step in range(steps):
        z = (-0.5 * (y[:, None] - means) ** 2 + rng.gumbel(size=(len(y), 2))).argmax(axis=1)
        v = 1 / (0.01 + np.bincount(z, minlength=2))
        means = rng.normal(v * (np.bincount(z, y, minlength=2) + np.array([-0.01, 0.01])), np.sqrt(v))
        if step >= first:
            kept.append(means)
    return np.mean(kept, axis=0), np.std(kept, axis=0), np.corrcoef(np.transpose(kept))[0, 1]


@pytest.mark.parametrize("seed", range(3))
def test_overlapping_means_have_the_sds_and_the_correlation_of_gibbs_sampling(seed):
    model, means, y, centres = overlapping(seed, False)
    posterior = model.infer(seed=seed)
    mean, sd, correlation = gibbs(np.random.default_rng(1), y, centres)
    assert np.abs(posterior[means].mean - mean).max() < 0.15 * sd.min()
    assert posterior[means].sd / sd == pytest.approx(1.0, abs=0.05)
    assert posterior.structure["means"] == "joint"
    covariance = posterior.covariance(means[0], means[1])
    assert float(covariance) / posterior[means].sd.prod() == pytest.approx(correlation, abs=0.08)
    with pytest.warns(hg.AccuracyWarning, match="factorised in a loop"):
        apart = model.infer(seed=seed, structure="factorised")
    assert (apart[means].sd < posterior[means].sd).all()


def test_a_mixture_that_overlaps_while_its_weights_are_unknown_says_so():
    with pytest.warns(hg.AccuracyWarning, match="overlap: .* 'share' .* too small"):
        overlapping(0, True)[0].infer()
    for separation, weights in ((8.0, True), (2.5, False)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            overlapping(0, weights, separation=separation)[0].infer()


def test_a_posterior_of_two_modes_says_how_far_it_is_from_a_gaussian():
    """Two of four values lie between the other two, and may be of either component."""
    model = hg.Model()
    means = model.gaussian("means", [-1.0, 1.0], sd=2.0)
    which = model.bernoulli("which", 0.5, size=4)
    model.mixture("y", which, means, sd=0.5, observed=[-1.0, 1.0, 0.1, 0.2])
    with pytest.warns(hg.AccuracyWarning, match="mixtures or functions that bend"):
        model.infer()
