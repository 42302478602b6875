"""Models of 1e4 to 1e6 rows: processor time per row of writing, inference and reading, and the peak memory of the process.

    python benchmarks/bench_scale.py                  # about two minutes and 3 GB
    python benchmarks/bench_scale.py --only chain counts --rows 1e4 1e5

Both should be linear: the time per row falls at first (what a run costs whatever its size) and stays.
"""

import argparse
import multiprocessing
import resource
import time

import numpy as np
from scipy.special import expit

import heliograph as hg
from benchmarks.peers.figures import infer, row


def chain(rng, model, n):
    """A random walk seen in noise."""
    x = model.gaussian("x", 0.0, variance=np.r_[100.0, np.full(n - 1, 1e9)])
    model.gaussian("step", x[1:] - x[:-1], variance=0.1, observed=np.zeros(n - 1))
    model.gaussian("y", x, variance=0.5, observed=np.cumsum(rng.normal(0, 0.3, n)) + rng.normal(0, 0.7, n))
    return x


def counts(rng, model, n):
    """Counts on an AR(1) chain."""
    x = model.gaussian("x", 0.0, variance=np.r_[1.0, np.full(n - 1, 1e6)])
    model.gaussian("step", x[1:] - 0.95 * x[:-1], variance=0.05, observed=np.zeros(n - 1))
    model.poisson("count", log_rate=x, observed=rng.poisson(1.0, n))
    return x


def intercepts(rng, model, n):
    """Random intercepts, ten rows a group."""
    groups = n // 10
    g = rng.integers(0, groups, n)
    effect = model.gaussian("effect", model.gaussian("centre", 0.0, variance=10.0), variance=1.0, size=groups)
    model.gaussian("y", effect[g], variance=1.0, observed=rng.normal(size=n) + rng.normal(size=groups)[g])
    return effect


def logistic(rng, model, n, d=20):
    """Logistic regression."""
    x = rng.standard_normal((n, d))
    w = model.gaussian("w", np.zeros(d), covariance=10 * np.eye(d))
    y = (rng.random(n) < expit(x @ rng.standard_normal(d))).astype(float)
    model.bernoulli("y", logit=x @ w, observed=y)
    return w


def mixed(rng, model, n, d=3):
    """Logistic regression with random intercepts, ten rows a group."""
    groups = n // 10
    g, x = rng.integers(0, groups, n), rng.standard_normal((n, d))
    w = model.gaussian("w", np.zeros(d), covariance=10 * np.eye(d))
    effect = model.gaussian("effect", 0.0, variance=1.0, size=groups)
    y = (rng.random(n) < expit(x @ rng.standard_normal(d) + rng.normal(size=groups)[g])).astype(float)
    model.bernoulli("y", logit=x @ w + effect[g], observed=y)
    return w


def spread(rng, model, n, d=5):
    """Counts with an extra spread each."""
    x = rng.standard_normal((n, d))
    w = model.gaussian("w", np.zeros(d), covariance=10 * np.eye(d))
    extra = model.gaussian("extra", 0.0, variance=0.3, size=n)
    model.poisson("count", log_rate=x @ w + extra, observed=rng.poisson(1.0, n))
    return w


MODELS = {f.__name__: f for f in (chain, counts, intercepts, logistic, mixed, spread)}


def measure(name, n):
    """One model in a process of its own, so that the peak is its own."""
    start = time.process_time()
    model = hg.Model()
    variable = MODELS[name](np.random.default_rng(0), model, n)
    written = time.process_time()
    posterior = infer(model)
    _ = posterior[variable].mean
    done = time.process_time()
    row(
        f"{name}, {n:.0e} rows",
        f"data and model {written - start:.2f} s, inference {done - written:.2f} s, {1e6 * (done - start) / n:.2f} us a row;",
        f"{posterior.n_sweeps} sweeps, {'converged' if posterior.converged else 'NOT converged'};",
        f"peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB",
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=MODELS, default=list(MODELS))
    parser.add_argument("--rows", nargs="*", type=float, default=[1e4, 1e5, 1e6])
    options = parser.parse_args()
    for name in options.only:
        for n in options.rows:
            process = multiprocessing.get_context("spawn").Process(target=measure, args=(name, int(n)))
            process.start()
            process.join()


if __name__ == "__main__":
    main()
