"""Mixtures by hand: the mode of one of unit Gaussians, and Gibbs sampling."""

import numpy as np


def em(y, means):
    """The mode that EM finds from the true means: known variance 1 and equal weights."""
    for _ in range(50):
        r = np.exp(-0.5 * (y[:, None] - means) ** 2)
        r /= r.sum(axis=1, keepdims=True)
        means = r.T @ y / r.sum(axis=0)
    return means


def gibbs(rng, y, means, random_precisions, n=400, first=100):
    """Means and sds of the sorted means: equal weights, means ~ N(0, 100), precisions 1 or ~ Gamma(1, 1)."""
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
