"""Mixtures: their start by clusters, against Gibbs sampling from the truth and against the posterior given the labels."""

import numpy as np
import pytest

import heliograph as hg

SEEDS = range(5)


def gibbs(rng, y, means, random_precisions, n=600, first=100):
    """Means and sds of the components' means under equal weights, means ~ N(0, 100), precisions 1 or ~ Gamma(1, 1)."""
    k = len(means)
    tau, kept = np.ones(k), []
    for step in range(n):
        log_p = 0.5 * np.log(tau) - 0.5 * tau * (y[:, None] - means) ** 2
        z = (log_p + rng.gumbel(size=log_p.shape)).argmax(axis=1)
        count, total = np.bincount(z, minlength=k), np.bincount(z, y, minlength=k)
        variance = 1.0 / (0.01 + count * tau)
        means = rng.normal(variance * tau * total, np.sqrt(variance))
        if random_precisions:
            tau = rng.gamma(1 + count / 2) / (1 + np.bincount(z, (y - means[z]) ** 2, minlength=k) / 2)
        if step >= first:
            kept.append(np.sort(means))
    return np.mean(kept, axis=0), np.std(kept, axis=0)


def mixture(seed, n, centres, random_precisions=False, weights=False):
    k = len(centres)
    rng = np.random.default_rng(seed)
    y = rng.normal(centres[rng.integers(0, k, n)], 1.0)
    model = hg.Model()
    means = model.gaussian("means", 0.0, variance=100.0, size=k)
    which = model.categorical("which", model.dirichlet("p", np.ones(k)) if weights else np.full(k, 1 / k), size=n)
    scale = {"precision": model.gamma("tau", 1.0, 1.0, size=k)} if random_precisions else {"variance": 1.0}
    model.mixture("y", which, means, observed=y, **scale)
    return model, means, y


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("n", "centres", "random_precisions"),
    [(300, 6.0 * np.arange(-1, 2), False), (3000, 6.0 * np.arange(-2, 3), False), (200, 6.0 * np.arange(-1, 2), True),
     (300, 3.0 * np.arange(-1, 2), False)],
)  # fmt: skip
def test_every_mean_is_within_an_sd_of_gibbs_sampling(seed, n, centres, random_precisions):
    model, means, y = mixture(seed, n, centres, random_precisions)
    mean, sd = gibbs(np.random.default_rng(99), y, centres.copy(), random_precisions)
    posterior = model.infer(seed=seed)
    assert posterior.converged, posterior.status
    assert posterior.n_sweeps <= 15
    order = np.argsort(posterior[means].mean)
    assert (np.abs(posterior[means].mean[order] - mean) < sd).all()
    # two overlapping components are correlated, which a Gaussian for each leaves out
    assert np.sqrt(posterior[means].variance[order]) / sd == pytest.approx(1.0, abs=0.12 if centres[-1] > 3 else 0.4)


def test_a_mixture_whose_groups_do_not_touch_has_the_posterior_given_the_labels():
    rng = np.random.default_rng(0)
    z = rng.integers(0, 3, 400)
    y = rng.normal(np.array([-40.0, 0.0, 40.0])[z], 1.0)
    model = hg.Model()
    means = model.gaussian("means", 0.0, variance=2500.0, size=3)
    p = model.dirichlet("p", np.ones(3))
    which = model.categorical("which", p, size=400)
    model.mixture("y", which, means, variance=1.0, observed=y)
    posterior = model.infer()
    order = np.argsort(posterior[means].mean)
    count = np.bincount(z)
    precision = count + 1 / 2500
    assert posterior.converged
    assert posterior[means].mean[order] == pytest.approx(np.bincount(z, y) / precision, rel=1e-9)
    assert posterior[means].variance[order] == pytest.approx(1 / precision, rel=1e-9)
    assert posterior[p].concentration[order] == pytest.approx(1.0 + count, rel=1e-9)
    assert (order[z] == posterior[which].p.argmax(axis=1)).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_clusters_go_to_the_components_whose_priors_expect_them(seed):
    rng = np.random.default_rng(seed)
    z = rng.integers(0, 3, 200)
    centres = np.array([8.0, -8.0, 0.0])
    model = hg.Model()
    means = model.gaussian("means", centres + rng.normal(0, 0.5, 3), variance=1.0)
    which = model.categorical("which", np.full(3, 1 / 3), size=200)
    model.mixture("y", which, means, variance=1.0, observed=rng.normal(centres[z], 1.0))
    posterior = model.infer(seed=seed)
    assert posterior.converged
    assert posterior[means].mean == pytest.approx(centres, abs=0.6)
    assert (posterior[which].p.argmax(axis=1) == z).mean() > 0.99


def test_clusters_go_to_the_components_whose_known_variances_fit():
    rng = np.random.default_rng(1)
    z = rng.integers(0, 2, 300)
    sd = np.array([0.3, 3.0])
    for flipped in (False, True):
        y = rng.normal(np.array([-8.0, 8.0])[z], (sd[::-1] if flipped else sd)[z])
        model = hg.Model()
        means = model.gaussian("means", 0.0, variance=100.0, size=2)
        which = model.bernoulli("which", 0.5, size=300)
        model.mixture("y", which, means, variance=sd**2, observed=y)
        posterior = model.infer()
        assert posterior.converged
        assert posterior[means].mean == pytest.approx([8.0, -8.0] if flipped else [-8.0, 8.0], abs=0.8)


@pytest.mark.parametrize("seed", SEEDS)
def test_mixtures_that_share_a_selector_are_clustered_together(seed):
    """Neither coordinate tells all three groups apart, and a fifth of the values is missing."""
    rng = np.random.default_rng(seed)
    z = rng.integers(0, 3, 300)
    centres = np.array([[-6.0, -6.0], [-6.0, 6.0], [6.0, 6.0]])
    y = rng.normal(centres[z], 1.0)
    y[rng.random(y.shape) < 0.2] = np.nan
    model = hg.Model()
    means = [model.gaussian(f"means{j}", 0.0, variance=100.0, size=3) for j in range(2)]
    which = model.categorical("which", np.full(3, 1 / 3), size=300)
    for j in range(2):
        model.mixture(f"y{j}", which, means[j], variance=1.0, observed=y[:, j])
    posterior = model.infer(seed=seed)
    found = np.stack([posterior[m].mean for m in means], axis=1)
    found = found[np.lexsort((found[:, 1].round(), found[:, 0].round()))]
    assert posterior.converged, posterior.status
    assert found == pytest.approx(centres, abs=0.6)


def test_groups_with_means_of_their_own_are_clustered_apart():
    """Two groups of rows, each with its own pair of means, and nothing in common but the model."""
    rng = np.random.default_rng(4)
    z = rng.integers(0, 2, (2, 100))
    centres = np.array([[-5.0, 5.0], [95.0, 105.0]])
    model = hg.Model()
    means = model.gaussian("means", 50.0, variance=2500.0, size=(2, 1, 2))
    which = model.categorical("which", np.full(2, 0.5), size=(2, 100))
    y = rng.normal(np.take_along_axis(centres, z, axis=1), 1.0)
    model.mixture("y", which, means, variance=1.0, observed=y)
    posterior = model.infer()
    assert posterior.converged
    assert np.sort(posterior[means].mean.reshape(2, 2), axis=1) == pytest.approx(centres, abs=0.6)


def test_noisy_readings_of_a_mixture_are_clustered_by_what_is_known_of_them():
    rng = np.random.default_rng(6)
    centres = np.array([-7.0, 0.0, 7.0])
    x = rng.normal(centres[rng.integers(0, 3, 300)], 1.0)
    model = hg.Model()
    means = model.gaussian("means", 0.0, variance=100.0, size=3)
    which = model.categorical("which", np.full(3, 1 / 3), size=300)
    latent = model.mixture("x", which, means, variance=1.0)
    model.gaussian("y", latent, variance=0.25, observed=rng.normal(x, 0.5))
    posterior = model.infer()
    assert posterior.converged, posterior.status
    assert np.sort(posterior[means].mean) == pytest.approx(centres, abs=0.5)


def test_known_selectors_are_believed():
    y, z = np.array([-5.0, -4.0, 5.0, 6.0, 4.5, -5.5]), np.array([1, 1, 0, 0, 0, 1])
    model = hg.Model()
    means = model.gaussian("means", 0.0, variance=100.0, size=2)
    which = model.categorical("which", np.full(2, 0.5), size=6)
    model.observe(which, z)
    model.mixture("y", which, means, variance=1.0, observed=y)
    assert model.infer()[means].mean == pytest.approx([15.5 / 3.01, -14.5 / 3.01], rel=1e-9)


def test_the_same_seed_gives_the_same_answer_to_the_last_bit():
    answers = []
    for _ in range(2):
        model, means, _ = mixture(3, 300, 6.0 * np.arange(-1, 2))
        answers.append(model.infer(seed=8)[means].mean)
    assert (answers[0] == answers[1]).all()
