"""Examples from other people's tutorials against exact algebra on grids: eight schools, a local level, an epidemic."""

import numpy as np
from scipy.stats import halfcauchy
from test_examples_against_truth import moments, near, posterior_of


def test_eight_schools_are_gaussian_given_their_spread():
    module, posterior = posterior_of("eight_schools")
    d = module.data()
    log_taus = np.linspace(-9.0, 6.0, 3001)
    found, log_p = [], []
    for u in log_taus:
        prior = np.full((9, 9), 25.0)  # mu, and the effects
        prior[1:, 1:] += np.exp(2 * u) * np.eye(8)
        noisy = prior[1:, 1:] + np.diag(d["error"] ** 2)
        gain = np.linalg.solve(noisy, prior[1:]).T
        mean, covariance = gain @ d["y"], prior - gain @ prior[1:]
        found.append(np.concatenate([mean, np.diag(covariance) + mean**2]))
        fit = -0.5 * (np.linalg.slogdet(noisy)[1] + d["y"] @ np.linalg.solve(noisy, d["y"]))
        log_p.append(fit + halfcauchy(scale=5.0).logpdf(np.exp(u)) + u)
    log_p = np.array(log_p)
    near(*moments(np.exp(log_taus), log_p), posterior["tau"])
    p = np.exp(log_p - log_p.max())
    first, second = np.split((p / p.sum()) @ np.array(found), 2)
    sd = np.sqrt(second - first**2)
    ours = (
        np.append(posterior["mu"].mean, posterior["theta"].mean),
        np.append(posterior["mu"].sd, posterior["theta"].sd),
    )
    np.testing.assert_allclose((ours[0] - first) / sd, 0.0, atol=0.05)
    np.testing.assert_allclose(ours[1] / sd, 1.0, atol=0.05)


def test_the_local_level_is_a_mixture_of_dense_gaussians():
    module, posterior = posterior_of("local_level")
    y = module.data()
    n = len(y)
    walk = 4.0 + 0.04 * np.minimum.outer(np.arange(n), np.arange(n))
    logs, means, squares = [], [], []
    for k in range(n - 1):
        after = (np.arange(n) > k).astype(float)
        spread = walk + 9.0 * np.outer(after, after) + 0.25 * np.eye(n)
        logs.append(-0.5 * (np.linalg.slogdet(2 * np.pi * spread)[1] + y @ np.linalg.solve(spread, y)))
        mean = 9.0 * after @ np.linalg.solve(spread, y)
        means.append(mean)
        squares.append(9.0 - 81.0 * after @ np.linalg.solve(spread, after) + mean**2)
    p = np.exp(np.array(logs) - max(logs))
    evidence = np.log(p.sum() / (n - 1)) + max(logs)
    p /= p.sum()
    np.testing.assert_allclose(posterior["when"].p, p, atol=1e-8)
    np.testing.assert_allclose(posterior["jump"].mean, p @ means, rtol=1e-8)
    np.testing.assert_allclose(posterior["jump"].variance, p @ squares - (p @ means) ** 2, rtol=1e-6)
    np.testing.assert_allclose(posterior.log_evidence, evidence, rtol=1e-9)


def test_the_epidemic_has_the_rates_of_a_grid():
    module, posterior = posterior_of("sir_simulator")
    a, b = np.meshgrid(np.linspace(-0.95, -0.4, 111), np.linspace(-2.4, -1.3, 111), indexing="ij")
    log_p = -0.5 * (((a - np.log(0.4)) / 0.3) ** 2 + ((b - np.log(0.2)) / 0.3) ** 2)
    for day, count in zip(module.DAYS, module.data(), strict=True):
        z = module.log_infected(a.ravel(), b.ravel(), np.full(a.size, day)).reshape(a.shape) + np.log(0.1)
        log_p += count * z - np.exp(z)
    assert max(log_p[0].max(), log_p[-1].max(), log_p[:, 0].max(), log_p[:, -1].max()) < log_p.max() - 8
    near(*moments(a, log_p), posterior["log_beta"])
    near(*moments(b, log_p), posterior["log_gamma"])
