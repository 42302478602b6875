"""The logistic factor's exact messages on a grid, and streams of problems: an oracle that owes nothing to the oracles room."""

from __future__ import annotations

import numpy as np
from scipy.special import log_expit

from heliograph.factors.black_box import factor
from heliograph.families import Beta, Gaussian
from heliograph.oracles import Answer

_NODES = np.linspace(-12.0, 12.0, 400)  # standard deviations around the Gaussian: its tails weigh 1e-32
_STEP = _NODES[1] - _NODES[0]


class GridOracle:
    """Sums over an even grid: exact to rounding for a Gaussian times an analytic function."""

    def __init__(self):
        self.n_rows = 0

    def ask(self, rng, sampler, incoming):
        m, v = incoming["z"].mean, incoming["z"].variance
        self.n_rows += len(m)
        z = m[:, None] + np.sqrt(v)[:, None] * _NODES
        log_p, log_q = log_expit(z), log_expit(-z)
        a, b = incoming["out"].naturals
        log_w = -0.5 * _NODES**2 + a[:, None] * log_p + b[:, None] * log_q
        top = log_w.max(axis=1, keepdims=True)
        w = np.exp(log_w - top)
        total = w.sum(axis=1, keepdims=True)
        w /= total
        mean = (w * z).sum(axis=1)
        variance = (w * (z - mean[:, None]) ** 2).sum(axis=1)
        beliefs = {
            "z": Gaussian(mean, variance),
            "out": Beta.from_statistics((w * log_p).sum(axis=1), (w * log_q).sum(axis=1)),
        }
        n = len(m)
        zero, none = np.zeros(n), {p: np.zeros((n, 2, 2)) for p in beliefs}
        return Answer(
            beliefs,
            log_z=top[:, 0] + np.log(total[:, 0] * _STEP / np.sqrt(2 * np.pi)) - incoming["out"].log_normaliser(),
            standard_errors=dict.fromkeys(beliefs, (zero, zero)),
            covariances=none,
            chart_covariances=none,
            expected_kl=dict.fromkeys(beliefs, zero),
            log_z_error=zero,
            ess=np.full(n, np.inf),
            pareto_k=np.full(n, -1.0),
            failed=np.zeros(n, dtype=bool),
            n_evaluations=n * len(_NODES),
        )


def logistic_factor(**more):
    @factor(output=Beta, **more)
    def logistic(z):
        return 1 / (1 + np.exp(-z))

    return logistic


def plate(seed, n=200):
    """Messages such as a logistic regression sends: Gaussians of many widths, Beta(2, 1) or Beta(1, 2)."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    return {"z": Gaussian(rng.normal(0, 2, n), np.exp(rng.uniform(-1, 3, n))), "out": Beta(1.0 + y, 2.0 - y)}
