"""Messages at the limits of what a factor may be sent, for tests that nothing breaks on them."""

import numpy as np

from heliograph.families import Bernoulli, Gaussian


def wild_gaussians(rng, n):
    """Precisions from exp(-60) to exp(60), zero and negative ones, means to 50 deviations, point masses."""
    precision = np.exp(rng.uniform(-60, 60, n)) * rng.choice([1, 1, 1, 1, 0, -1], n)
    mean = rng.normal(size=n) * rng.choice([1.0, 10.0, 1e6], n)
    mean += rng.choice([0, 50], n) / np.sqrt(np.abs(precision) + 1e-12)
    point = np.where(rng.random(n) < 0.1, np.round(mean, 3), np.nan)
    soft = np.isnan(point)
    shift = np.where(precision == 0, rng.normal(size=n), mean * precision)
    return Gaussian.from_naturals((np.where(soft, shift, 0.0), np.where(soft, precision, 0.0)), point)


def wild_bernoullis(rng, n):
    """Fair, soft, nearly certain and certain labels."""
    return Bernoulli.from_log_odds(rng.choice([-1.0, 1.0], n) * rng.choice([0.0, 0.3, 30.0, 800.0, np.inf], n))
