"""Gibbs sampling by hand for models with unknown precisions: every conditional is conjugate. Each returns the draws."""

import numpy as np
from scipy.special import ndtr, ndtri


def student_t(rng, y, shape, n=6000, first=1000):
    """Draws of the mean, log of the rate: y ~ N(mu, 1 / tau_i), tau_i ~ Gamma(shape, rate), rate ~ Gamma(1, 1), mu ~ N(0, 100)."""
    mu, rate, kept = np.median(y), 1.0, []
    for step in range(n):
        tau = rng.gamma(shape + 0.5, size=len(y)) / (rate + 0.5 * (y - mu) ** 2)
        v = 1.0 / (0.01 + tau.sum())
        mu = rng.normal(v * (tau @ y), np.sqrt(v))
        rate = rng.gamma(1.0 + shape * len(y)) / (1.0 + tau.sum())
        if step >= first:
            kept.append([mu, np.log(rate)])
    return np.array(kept)


def hierarchical(rng, y, group, n_groups, n=8000, first=1000):
    """Draws of mu, log within, log between: y ~ N(theta_g, 1 / within), theta ~ N(mu, 1 / between), Gamma(1, 1), mu ~ N(0, 100)."""
    count, total = np.bincount(group, minlength=n_groups), np.bincount(group, y, minlength=n_groups)
    mu, within, between, kept = y.mean(), 1.0, 1.0, []
    for step in range(n):
        v = 1.0 / (between + within * count)
        theta = rng.normal(v * (between * mu + within * total), np.sqrt(v))
        v = 1.0 / (0.01 + n_groups * between)
        mu = rng.normal(v * between * theta.sum(), np.sqrt(v))
        within = rng.gamma(1.0 + len(y) / 2) / (1.0 + 0.5 * ((y - theta[group]) ** 2).sum())
        between = rng.gamma(1.0 + n_groups / 2) / (1.0 + 0.5 * ((theta - mu) ** 2).sum())
        if step >= first:
            kept.append([mu, np.log(within), np.log(between)])
    return np.array(kept)


def regression(rng, x, y, n=6000, first=1000):
    """Draws of w and log tau: y ~ N(x w, 1 / tau), w ~ N(0, 10), tau ~ Gamma(1, 1)."""
    d, tau, kept = x.shape[1], 1.0, []
    for step in range(n):
        root = np.linalg.cholesky(tau * x.T @ x + np.eye(d) / 10.0)
        w = np.linalg.solve(root.T, np.linalg.solve(root, tau * x.T @ y) + rng.normal(size=d))
        tau = rng.gamma(1.0 + len(y) / 2) / (1.0 + 0.5 * ((y - x @ w) ** 2).sum())
        if step >= first:
            kept.append([*w, np.log(tau)])
    return np.array(kept)


def mixture(rng, y, means, gamma, weights, n=3000, first=500):
    """Draws of the sorted means from the truth: N(0, 100) means, precisions 1 or Gamma(1, 1), weights equal or Dirichlet(1)."""
    k = len(means)
    means, tau, log_w, kept = np.array(means, dtype=float), np.ones(k), np.zeros(k), []
    for step in range(n):
        log_p = log_w + 0.5 * np.log(tau) - 0.5 * tau * (y[:, None] - means) ** 2
        z = (log_p + rng.gumbel(size=log_p.shape)).argmax(axis=1)
        count, total = np.bincount(z, minlength=k), np.bincount(z, y, minlength=k)
        v = 1.0 / (0.01 + count * tau)
        means = rng.normal(v * tau * total, np.sqrt(v))
        if gamma:
            tau = rng.gamma(1 + count / 2) / (1 + np.bincount(z, (y - means[z]) ** 2, minlength=k) / 2)
        if weights:
            log_w = np.log(rng.dirichlet(1.0 + count))
        if step >= first:
            kept.append(np.sort(means))
    return np.array(kept)


def scales(rng, y, n=6000, first=1000):
    """Draws of the log precisions, small first, of two components: means ~ N(0, 100), tau ~ Gamma(1, 1), weights equal."""
    mu, tau, kept = np.full(2, y.mean()), np.array([0.1, 10.0]), []
    for step in range(n):
        log_p = 0.5 * np.log(tau) - 0.5 * tau * (y[:, None] - mu) ** 2
        z = (log_p + rng.gumbel(size=log_p.shape)).argmax(axis=1)
        count = np.bincount(z, minlength=2)
        v = 1.0 / (0.01 + count * tau)
        mu = rng.normal(v * tau * np.bincount(z, y, minlength=2), np.sqrt(v))
        tau = rng.gamma(1 + count / 2) / (1 + np.bincount(z, (y - mu[z]) ** 2, minlength=2) / 2)
        if step >= first:
            kept.append(np.sort(np.log(tau)))
    return np.array(kept)


def item_response(rng, correct, n=3000, first=1000):
    """The mean probability of every answer: probit of a_j theta_i - b_j, with a, b and theta ~ N(0, 1)."""
    people, items = correct.shape
    theta, a, b = correct.mean(axis=1) * 2 - 1, np.ones(items), np.zeros(items)
    total, kept = np.zeros(correct.shape), 0
    for step in range(n):
        eta = theta[:, None] * a - b
        u = rng.random(eta.shape)
        low = ndtr(-eta)
        z = eta + ndtri(np.where(correct, low + u * (1 - low), u * low).clip(1e-12, 1 - 1e-12))
        v = 1.0 / (1.0 + (a**2).sum())
        theta = rng.normal(v * ((z + b) @ a), np.sqrt(v))
        for j in range(items):
            x = np.column_stack([theta, -np.ones(people)])
            root = np.linalg.cholesky(x.T @ x + np.eye(2))
            a[j], b[j] = np.linalg.solve(root.T, np.linalg.solve(root, x.T @ z[:, j]) + rng.normal(size=2))
        if step >= first:
            total, kept = total + ndtr(theta[:, None] * a - b), kept + 1
    return total / kept


def factorisation(rng, y, seen, k, noise, n=3000, first=1000):
    """The mean of every entry of u v': y ~ N(u v', noise), u and v ~ N(0, 1), only the entries that were seen known."""
    rows, columns = y.shape
    u, v = rng.normal(size=(rows, k)), rng.normal(size=(columns, k))
    total, kept = np.zeros(y.shape), 0
    for step in range(n):
        for side, other, values, mask in ((u, v, y, seen), (v, u, y.T, seen.T)):
            for i in range(len(side)):
                x = other[mask[i]]
                root = np.linalg.cholesky(x.T @ x / noise + np.eye(k))
                right = x.T @ values[i][mask[i]] / noise
                side[i] = np.linalg.solve(root.T, np.linalg.solve(root, right) + rng.normal(size=k))
        if step >= first:
            total, kept = total + u @ v.T, kept + 1
    return total / kept


def mean_and_precision(y, shape, rate):
    """Mean and sd of mu, and of log tau, on a grid over log tau: mu ~ N(0, 100), tau ~ Gamma(shape, rate)."""
    log_tau = np.linspace(-25.0, 12.0, 20_001)
    tau = np.exp(log_tau)
    v = 1.0 / (len(y) * tau + 0.01)
    log_p = (shape + len(y) / 2) * log_tau - tau * (rate + 0.5 * (y**2).sum()) + 0.5 * np.log(v)
    log_p += 0.5 * v * (tau * y.sum()) ** 2
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    m = v * tau * y.sum()
    mean = p @ m
    log_mean = p @ log_tau
    return [mean, log_mean], [np.sqrt(p @ (v + m**2) - mean**2), np.sqrt(p @ log_tau**2 - log_mean**2)]
