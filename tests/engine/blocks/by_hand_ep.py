"""Expectation propagation for sites on rows of a dense Gaussian, one site at a time, with tilted moments on an even grid."""

import numpy as np

NODES = np.linspace(-9.0, 9.0, 1201)


def expectation_propagation(mean, covariance, rows, log_likelihoods, sweeps=60):
    """Posterior mean and covariance of x ~ N(mean, covariance) under sites ``log_likelihoods[k](rows[k] @ x)``.

    Sequential, undamped, all messages from scratch: slow, and nothing shared with the package.
    """
    prior_precision = np.linalg.inv(covariance)
    prior_shift = prior_precision @ mean
    tau, nu = np.zeros(len(rows)), np.zeros(len(rows))
    for _ in range(sweeps):
        before = tau.copy()
        for k, (row, log_likelihood) in enumerate(zip(rows, log_likelihoods, strict=True)):
            now = np.linalg.inv(prior_precision + (rows.T * tau) @ rows)
            centre = now @ (prior_shift + rows.T @ nu)
            m, v = row @ centre, row @ now @ row
            cavity_v = 1 / (1 / v - tau[k])
            cavity_m = cavity_v * (m / v - nu[k])
            z = cavity_m + np.sqrt(cavity_v) * NODES
            log_w = -0.5 * NODES**2 + log_likelihood(z)
            w = np.exp(log_w - log_w.max())
            w /= w.sum()
            tilted_m = w @ z
            tilted_v = w @ (z - tilted_m) ** 2
            tau[k] = 1 / tilted_v - 1 / cavity_v
            nu[k] = tilted_m / tilted_v - cavity_m / cavity_v
        if np.abs(tau - before).max() < 1e-10 * np.abs(tau).max():
            break
    else:
        raise AssertionError("the reference did not settle")
    now = np.linalg.inv(prior_precision + (rows.T * tau) @ rows)
    return now @ (prior_shift + rows.T @ nu), now
