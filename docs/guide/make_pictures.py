"""The two pictures of page 2: ``python docs/guide/make_pictures.py``."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import numpy as np
from matplotlib import pyplot as plt
from scipy import optimize, special, stats

import heliograph as hg

HERE = Path(__file__).parent / "images"


def projection() -> None:
    """Draw one site: cavity, factor, tilted distribution, and the Gaussian with its mean and variance."""
    x = np.linspace(-4, 6, 1000)
    cavity = stats.norm(0.0, 1.5).pdf(x)
    factor = special.expit(3 * (x - 0.5))
    tilted = cavity * factor / np.trapezoid(cavity * factor, x)
    mean = np.trapezoid(x * tilted, x)
    sd = np.sqrt(np.trapezoid((x - mean) ** 2 * tilted, x))
    figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
    ax.plot(x, cavity, "--", color="0.5", label="cavity")
    ax.plot(x, 0.4 * factor, ":", color="tab:orange", label="true factor (scaled)")
    ax.fill_between(x, tilted, alpha=0.25, color="tab:blue", label="tilted: cavity times factor")
    ax.plot(x, stats.norm(mean, sd).pdf(x), color="tab:blue", label="projection: same mean and variance")
    ax.set_yticks([])
    ax.set_xlabel("x")
    ax.legend(fontsize="small")
    figure.savefig(HERE / "projection.png", dpi=110)


def posterior() -> None:
    """Draw a logistic regression with six labels: exact contours, EP's Gaussian and Laplace's."""
    X = np.array([[1, 0.5], [1, 2.0], [-1, 1.5], [2, -1], [0.5, 1], [1.5, 1.5]])
    y = np.array([1, 1, 1, 1, 1, 1.0])
    model = hg.Model()
    w = model.gaussian("w", np.zeros(2), covariance=9 * np.eye(2))
    model.bernoulli("y", logit=2 * X @ w, observed=y)
    belief = model.infer()[w]
    a = np.linspace(-3, 9, 240)
    grid = np.stack(np.meshgrid(a, a), axis=-1)

    def log_density(v: np.ndarray) -> np.ndarray:
        z = 2 * v @ X.T
        return special.log_expit(np.where(y, z, -z)).sum(axis=-1) - (v**2).sum(axis=-1) / 18

    log_p = log_density(grid)
    mode = optimize.minimize(lambda v: -log_density(v), np.zeros(2)).x
    p = special.expit(2 * X @ mode)
    curvature = np.linalg.inv(np.eye(2) / 9 + (2 * X).T @ ((p * (1 - p))[:, None] * 2 * X))
    figure, ax = plt.subplots(figsize=(5, 4.4), layout="constrained")
    ax.contourf(a, a, np.exp(log_p - log_p.max()), levels=8, cmap="Blues")
    levels = np.exp(-0.5 * np.array([2.0, 1.0]) ** 2)
    for mean, covariance, colour in ((belief.mean, belief.covariance, "tab:red"), (mode, curvature, "k")):
        q = np.exp(-0.5 * np.einsum("...i,ij,...j", grid - mean, np.linalg.inv(covariance), grid - mean))
        ax.contour(a, a, q, levels=levels, colors=colour, linestyles="-" if colour == "tab:red" else "--")
    ax.plot([], [], color="tab:red", label="EP: one and two sds")
    ax.plot([], [], "k--", label="Laplace")
    ax.set(xlabel="w[0]", ylabel="w[1]", title="exact posterior (blue)")
    ax.legend()
    figure.savefig(HERE / "posterior.png", dpi=110)


if __name__ == "__main__":
    projection()
    posterior()
