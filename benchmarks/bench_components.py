"""Mixtures of vectors, counts and regressions from many seeds: how many runs converge, and how many find every component.

    python -m benchmarks.bench_components --first 100 --seeds 10          # about two minutes

"Right" is near the true parameters; where components overlap, that may not be the posterior's best labelling.
"""

import argparse
import time

import numpy as np

import heliograph as hg
from benchmarks.peers.figures import infer, row


def lines(rng, n):
    """Three crossing lines."""
    label, x = rng.integers(0, 3, n), rng.uniform(-3, 3, n)
    a, b = np.array([1.0, -1.0, 0.0]), np.array([2.0, -1.5, 0.2])
    design, y = np.stack([np.ones(n), x], 1), a[label] + b[label] * x + 0.3 * rng.standard_normal(n)
    model = hg.Model()
    w = model.gaussian("w", np.zeros((3, 2)), covariance=25 * np.eye(2))
    which = model.categorical("which", np.full(3, 1 / 3), size=n)
    model.mixture("y", which, lambda k: model.gaussian("y", design @ w[k], sd=0.3), observed=y)
    return model, lambda p: near(p["w"].mean, np.stack([a, b], 1), 0.2)


def regressions(rng, n):
    """Three regressions of four coefficients."""
    label, x, truth = rng.integers(0, 3, n), rng.standard_normal((n, 4)), 2 * rng.standard_normal((3, 4))
    model = hg.Model()
    w = model.gaussian("w", np.zeros((3, 4)), covariance=9 * np.eye(4))
    which = model.categorical("which", np.full(3, 1 / 3), size=n)
    y = (x * truth[label]).sum(1) + 0.5 * rng.standard_normal(n)
    model.mixture("y", which, lambda k: model.gaussian("y", x @ w[k], sd=0.5), observed=y)
    return model, lambda p: near(p["w"].mean, truth, 0.4)


def vectors(rng, n):
    """Five vectors in three dimensions, unknown weights."""
    centres = 5 * rng.standard_normal((5, 3))
    y = centres[rng.integers(0, 5, n)] + rng.standard_normal((n, 3))
    model = hg.Model()
    means = model.gaussian("means", np.zeros((5, 3)), covariance=50 * np.eye(3))
    which = model.categorical("which", model.dirichlet("p", np.ones(5)), size=n)
    model.mixture("y", which, lambda k: model.gaussian("y", means[k], covariance=np.eye(3)), observed=y)
    return model, lambda p: near(p["means"].mean, centres, 1.0)


def counts(rng, n):
    """Four Poissons."""
    truth = np.array([1.0, 8.0, 30.0, 80.0])
    model = hg.Model()
    rates = model.gamma("rates", 1.0, 0.05, size=4)
    which = model.categorical("which", np.full(4, 0.25), size=n)
    y = rng.poisson(truth[rng.integers(0, 4, n)])
    model.mixture("y", which, lambda k: model.poisson("y", rates[k]), observed=y)
    return model, lambda p: near(p["rates"].mean[:, None] ** 0.5, truth[:, None] ** 0.5, 0.6)


def near(found, truth, limit):
    """Whether every true component has one that was found within the limit."""
    return bool((np.linalg.norm(found[:, None] - truth, axis=-1).min(axis=0) < limit).all())


def bench(kind, n, seeds):
    settled = right = 0
    sweeps, seconds = [], []
    for seed in seeds:
        model, good = kind(np.random.default_rng(seed), n)
        start = time.process_time()
        posterior = infer(model, seed=seed, max_sweeps=100)
        seconds.append(time.process_time() - start)
        settled += posterior.converged
        right += good(posterior)
        sweeps.append(posterior.n_sweeps)
    row(
        f"{kind.__name__} n = {n}",
        f"converged {settled}, right {right} of {len(seeds)};",
        f"sweeps {np.median(sweeps):g} (most {max(sweeps)}); {np.median(seconds):.2f} s",
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--rows", type=int, default=300)
    options = parser.parse_args()
    for kind in (lines, regressions, vectors, counts):
        bench(kind, options.rows, range(options.first, options.first + options.seeds))


if __name__ == "__main__":
    main()
