"""Logistic regression with one random intercept per group by hand: Laplace, and the groups integrated out."""

import numpy as np
from scipy.special import expit, log_expit, logsumexp


def laplace(x, y, group, n_groups, prior_variance, group_variance, most=50):
    """Mode and sds of the coefficients, and Newton steps."""
    d = x.shape[1]
    w, u = np.zeros(d), np.zeros(n_groups)
    for step in range(1, most + 1):
        p = expit(x @ w + u[group])
        h = p * (1 - p)
        corner = np.eye(d) / prior_variance + x.T @ (x * h[:, None])
        side = np.stack([np.bincount(group, x[:, k] * h, n_groups) for k in range(d)], axis=1)
        inner = 1 / group_variance + np.bincount(group, h, n_groups)
        g_w = x.T @ (y - p) - w / prior_variance
        g_u = np.bincount(group, y - p, n_groups) - u / group_variance
        schur = corner - (side.T / inner) @ side
        move_w = np.linalg.solve(schur, g_w - side.T @ (g_u / inner))
        move_u = (g_u - side @ move_w) / inner
        w, u = w + move_w, u + move_u
        if 0.5 * (g_w @ move_w + g_u @ move_u) < 1e-6 or step == most:
            break
    return w, np.sqrt(np.diag(np.linalg.inv(schur))), step


def integrated(x, y, group, n_groups, prior_variance, group_variance, start, scale, nodes=31):
    """Mode and sds of the coefficients when every group's intercept is integrated by quadrature.

    The coefficients are known so well by many groups that mode and curvature are their mean and sds; derivatives are
    differences over half a `scale`.
    """
    u, weight = np.polynomial.hermite_e.hermegauss(nodes)
    log_weight = np.log(weight / weight.sum())
    order = np.argsort(group, kind="stable")
    ends = np.flatnonzero(np.diff(group[order], prepend=-1))
    sign, x = (2 * y - 1)[order], x[order]
    shift = np.sqrt(group_variance) * u

    def log_posterior(w):
        each = log_expit(sign[:, None] * ((x @ w)[:, None] + shift))
        return logsumexp(np.add.reduceat(each, ends) + log_weight, axis=1).sum() - 0.5 * w @ w / prior_variance

    d = len(start)
    steps = np.diag(0.5 * scale)
    w = start
    for _ in range(4):  # Newton's method on differences
        gradient = np.array([log_posterior(w + s) - log_posterior(w - s) for s in steps]) / (2 * np.diag(steps))
        hessian = np.empty((d, d))
        for i in range(d):
            for j in range(i + 1):
                a, b = steps[i], steps[j]
                mixed = log_posterior(w + a + b) - log_posterior(w + a - b) - log_posterior(w - a + b)
                hessian[i, j] = hessian[j, i] = (mixed + log_posterior(w - a - b)) / (4 * a[i] * b[j])
        w = w - np.linalg.solve(hessian, gradient)
    return w, np.sqrt(np.diag(np.linalg.inv(-hessian)))
