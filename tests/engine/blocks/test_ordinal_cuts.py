"""Ordered categories with random cut points, under either link: against grids of the whole posterior, and what they predict."""

import numpy as np
import pytest
from scipy.special import expit, logsumexp
from scipy.stats import norm

import heliograph as hg

LINKS = {"logit": expit, "probit": norm.cdf}


def data(n, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(n)
    return x, np.digitize(x + rng.logistic(size=n), [0.0, 1.0]).astype(float)


def written(x, y, link, cuts=None, **more):
    model = hg.Model()
    x = model.data("x", x)
    slope = model.gaussian("slope", 0.0, sd=1.0)
    c = model.gaussian("cuts", [0.0, 1.0], sd=0.8, observed=cuts)
    model.constrain(c[1:] > c[:-1])
    model.ordinal("y", slope * x, c, link=link, observed=y, **more)
    return model, slope, c


def on_a_grid(x, y, link, first=None):
    """Evidence, means and sds of the slope and two cuts; `first` is a known first cut."""
    f, n = LINKS[link], 81
    axes = [np.linspace(-4, 4, n), *(np.linspace(m - 4, m + 4, n) for m in (0.0, 1.0))]
    if first is not None:
        axes[1] = np.array([first])
    s, a, b = np.meshgrid(*axes, indexing="ij")
    log_p = norm.logpdf(s) + norm.logpdf(a, 0.0, 0.8) + norm.logpdf(b, 1.0, 0.8)
    log_p = np.where(b > a, log_p, -np.inf)
    for xi, label in zip(x, y.astype(int), strict=True):
        below = [0.0, f(a - s * xi), f(b - s * xi), 1.0]
        with np.errstate(divide="ignore"):
            log_p = log_p + np.log(np.maximum(below[label + 1] - below[label], 0.0))
    p = np.exp(log_p - logsumexp(log_p))
    means = [(p * v).sum() for v in (s, a, b)]
    sds = [np.sqrt((p * (v - m) ** 2).sum()) for v, m in zip((s, a, b), means, strict=True)]
    cell = sum(np.log(e[1] - e[0]) for e in axes if len(e) > 1)
    return logsumexp(log_p) + cell, np.array(means), np.array(sds)


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("n", [1, 4, 25])
def test_slope_and_cuts_are_those_of_a_grid(link, n):
    x, y = data(n)
    evidence, means, sds = on_a_grid(x, y, link)
    model, slope, cuts = written(x, y, link)
    posterior = model.infer()
    assert posterior.converged
    assert posterior.log_evidence == pytest.approx(evidence, abs=0.06)  # EP's own, as in docs/accuracy.md
    found = np.array([posterior[slope].mean, *posterior[cuts].mean])
    spread = np.array([posterior[slope].sd, *posterior[cuts].sd])
    np.testing.assert_allclose((found - means) / sds, 0.0, atol=0.05)  # the order of the cuts is a factor of its own
    np.testing.assert_allclose(spread / sds, 1.0, atol=0.035)


@pytest.mark.parametrize("link", LINKS)
def test_a_known_cut_is_kept(link):
    x, y = data(25)
    _, means, sds = on_a_grid(x, y, link, first=0.0)
    model, slope, cuts = written(x, y, link, cuts=[0.0, np.nan])
    posterior = model.infer()
    np.testing.assert_allclose(posterior[cuts].mean, means[1:], atol=0.03)
    assert posterior[slope].sd == pytest.approx(sds[0], rel=0.03)


@pytest.mark.parametrize("link", LINKS)
def test_missing_labels_say_nothing_however_they_are_marked(link):
    x, y = data(20)
    mask = np.arange(20) % 3 == 0
    _, slope, _ = one = written(x[~mask], y[~mask], link)
    _, same, _ = two = written(x, np.where(mask, np.nan, y), link)
    _, other, _ = three = written(x, y, link, missing=mask)
    expected = one[0].infer()[slope]
    for model, s in ((two[0], same), (three[0], other)):
        assert model.infer()[s].mean == pytest.approx(expected.mean, abs=1e-8)


@pytest.mark.parametrize("link", LINKS)
def test_predictions_are_categories(link):
    model, _, _ = written(*data(25), link)
    posterior = model.infer()
    predicted = posterior.predict("y", x=[0.0, 2.0], draws=20_000, seed=1)
    draws = posterior.sample(20_000, ["slope", "cuts"], seed=2)
    for k, at in enumerate([0.0, 2.0]):
        f = LINKS[link](draws["cuts"] - (draws["slope"] * at)[:, None])
        p = np.diff(np.concatenate([np.zeros((len(f), 1)), f, np.ones((len(f), 1))], axis=1)).mean(axis=0)
        np.testing.assert_allclose(predicted.mean[k], p, atol=0.02)
    rows = posterior.log_likelihood(pointwise=True)["y"]
    assert rows.shape == (25,) and (rows < 0).all()


def test_cuts_alone_need_no_score():
    """The share of each category: a symmetric prior and equal counts leave the two cuts at opposite places."""
    model = hg.Model()
    cuts = model.gaussian("cuts", [-1.0, 1.0], sd=1.0)
    model.ordinal("y", 0.0, cuts, link="logit", observed=np.repeat([0.0, 1.0, 2.0], 40))
    low, high = model.infer()[cuts].mean
    assert low == pytest.approx(-high, abs=1e-6)
    assert expit(low) == pytest.approx(1 / 3, abs=0.02)


def test_a_label_beyond_the_cuts_is_refused():
    with pytest.raises(hg.ModelError, match="there are 3 categories, 0 to 2, but 3 was observed"):
        written(np.zeros(2), [0.0, 3.0], "logit")
