"""Mixtures from many seeds: how many runs converge, and how many have every mean within an sd of Gibbs sampling.

    python -m benchmarks.bench_mixtures --first 100 --seeds 10          # about two minutes
    python -m benchmarks.bench_mixtures --only known gamma

Gibbs sampling starts at the truth, so that a run that settled at a worse mode is counted as wrong.
"""

import argparse
import time

import numpy as np

import heliograph as hg
from benchmarks.peers.figures import infer, row
from benchmarks.peers.mixture import gibbs

MOST_SWEEPS = 100
CASES = {  # number of points, distance between centres, components, Gamma precisions, unknown weights
    "known n = 300": (300, 6, 3, False, False),
    "known n = 1000": (1000, 6, 3, False, False),
    "known n = 10000": (10_000, 6, 3, False, False),
    "unknown weights n = 1000": (1000, 6, 3, False, True),
    "five components": (1000, 6, 5, False, False),
    "separation 3": (300, 3, 3, False, False),
    "gamma n = 300": (300, 6, 3, True, False),
    "gamma n = 1000": (1000, 6, 3, True, False),
    "gamma n = 10000": (10_000, 6, 3, True, False),
    "gamma separation 3": (300, 3, 3, True, False),
}


def problem(seed, n, separation, k, gamma, weights):
    """A model, its means, the data and the true centres."""
    rng = np.random.default_rng(seed)
    centres = separation * (np.arange(k) - (k - 1) / 2)
    y = rng.normal(centres[rng.integers(0, k, n)], 1.0)
    model = hg.Model()
    means = model.gaussian("means", 0.0, variance=100.0, size=k)
    which = model.categorical("which", model.dirichlet("p", np.ones(k)) if weights else np.full(k, 1 / k), size=n)
    scale = {"precision": model.gamma("tau", 1.0, 1.0, size=k)} if gamma else {"variance": 1.0}
    model.mixture("y", which, means, observed=y, **scale)
    return model, means, y, centres


def bench(name, seeds):
    settled = right = negative = 0
    sweeps, seconds = [], []
    for seed in seeds:
        model, means, y, centres = problem(seed, *CASES[name])
        mean, sd = gibbs(np.random.default_rng(10_000 + seed), y, centres, CASES[name][3])
        start = time.process_time()
        posterior = infer(model, seed=seed, max_sweeps=MOST_SWEEPS)
        seconds.append(time.process_time() - start)
        found = posterior[means]
        settled += posterior.converged
        right += posterior.converged and bool((np.abs(np.sort(found.mean) - mean) < sd).all())
        negative += bool((np.asarray(found.variance) <= 0).any())
        sweeps.append(posterior.n_sweeps)
    row(
        name,
        f"converged {settled}, right {right} of {len(seeds)}; variances not positive {negative};",
        f"sweeps {np.median(sweeps):g} (most {max(sweeps)}); {np.median(seconds):.3f} s",
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--only", nargs="*", default=[""], help="cases whose names begin so")
    options = parser.parse_args()
    for name in CASES:
        if name.startswith(tuple(options.only)):
            bench(name, range(options.first, options.first + options.seeds))


if __name__ == "__main__":
    main()
