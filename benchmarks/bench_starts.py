"""Models that are hard to start, from many seeds: how many runs converge, and how many of those are right.

    python -m benchmarks.bench_starts --first 200 --seeds 10          # about ten minutes
    python -m benchmarks.bench_starts --only student hierarchical

"Right": converged, and every mean within one sd of Gibbs sampling (or of a grid), Gamma beliefs on the log scale.
For item responses and matrix factorisation, whose signs are free: the error of predictions at most a tenth above Gibbs sampling's.
"""

import argparse
import time

import numpy as np
from scipy.special import ndtr, polygamma, psi

import heliograph as hg
from benchmarks.peers import gibbs
from benchmarks.peers.figures import infer, row

MOST_SWEEPS = 100


def moments(belief):
    """Mean and sd of a belief, of the logarithm where it is a Gamma."""
    if isinstance(belief, hg.Gamma):
        return psi(belief.shape_parameter) - np.log(belief.rate), np.sqrt(polygamma(1, belief.shape_parameter))
    return belief.mean, np.sqrt(np.asarray(belief.variance))


def beside(posterior, variables, mean, sd, order=False):
    """The largest error in sds, and the range of sd ratios, of some beliefs in the order of the truth."""
    parts = [moments(posterior[v]) for v in variables]
    found, spread = (np.concatenate([np.ravel(p[k]) for p in parts]) for k in range(2))
    if order:
        at = np.argsort(found)
        found, spread = found[at], spread[at]
    ratio = spread / sd
    return np.abs((found - mean) / sd).max(), ratio.min(), ratio.max()


def of(draws):
    return draws.mean(axis=0), draws.std(axis=0)


# ---- models: each gives a posterior's verdict (z, least and largest sd ratio), or (relative error, ...) ------------
def student(n):
    def make(seed):
        rng = np.random.default_rng(seed)
        y = 3.0 + 2.0 * rng.standard_t(4.0, n)
        model = hg.Model()
        rate = model.gamma("rate", 1.0, 1.0)
        mu = model.gaussian("mu", 0.0, variance=100.0)
        model.gaussian("y", mu, precision=model.gamma("tau", 2.0, rate, size=n), observed=y)
        truth = of(gibbs.student_t(np.random.default_rng(10_000 + seed), y, 2.0))
        return model, lambda p: beside(p, [mu, rate], *truth)

    return make


def mean_and_precision(n, prior):
    def make(seed):
        y = np.random.default_rng(seed).normal(2.0, 1.5, n)
        model = hg.Model()
        mu, tau = model.gaussian("mu", 0.0, variance=100.0), model.gamma("tau", prior, prior)
        model.gaussian("y", mu, precision=tau, observed=y)
        truth = gibbs.mean_and_precision(y, prior, prior)
        return model, lambda p: beside(p, [mu, tau], *map(np.array, truth))

    return make


def hierarchical(groups, each):
    def make(seed):
        rng = np.random.default_rng(seed)
        group = np.repeat(np.arange(groups), each)
        y = rng.normal(rng.normal(1.0, 1.5, groups)[group], 0.7)
        model = hg.Model()
        mu = model.gaussian("mu", 0.0, variance=100.0)
        between, within = model.gamma("between", 1.0, 1.0), model.gamma("within", 1.0, 1.0)
        theta = model.gaussian("theta", mu, precision=between, size=groups)
        model.gaussian("y", theta[group], precision=within, observed=y)
        truth = of(gibbs.hierarchical(np.random.default_rng(10_000 + seed), y, group, groups))
        return model, lambda p: beside(p, [mu, within, between], *truth)

    return make


def regression(n, d):
    def make(seed):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(n, d))
        y = x @ rng.normal(size=d) + 0.5 * rng.normal(size=n)
        model = hg.Model()
        w, tau = model.gaussian("w", np.zeros(d), covariance=10.0 * np.eye(d)), model.gamma("tau", 1.0, 1.0)
        model.gaussian("y", x @ w, precision=tau, observed=y)
        mean, sd = of(gibbs.regression(np.random.default_rng(10_000 + seed), x, y))

        def verdict(p):
            at, spread = moments(p[tau])
            z = np.append((p[w].mean - mean[:-1]) / sd[:-1], (at - mean[-1]) / sd[-1])
            ratio = np.append(np.sqrt(np.diag(p[w].covariance)) / sd[:-1], spread / sd[-1])
            return np.abs(z).max(), ratio.min(), ratio.max()

        return model, verdict

    return make


def mixture(n, separation, k, gamma, weights):
    def make(seed):
        rng = np.random.default_rng(seed)
        centres = separation * (np.arange(k) - (k - 1) / 2)
        y = rng.normal(centres[rng.integers(0, k, n)], 1.0)
        model = hg.Model()
        means = model.gaussian("means", 0.0, variance=100.0, size=k)
        which = model.categorical("which", model.dirichlet("p", np.ones(k)) if weights else np.full(k, 1 / k), size=n)
        scale = {"precision": model.gamma("tau", 1.0, 1.0, size=k)} if gamma else {"variance": 1.0}
        model.mixture("y", which, means, observed=y, **scale)
        truth = of(gibbs.mixture(np.random.default_rng(10_000 + seed), y, centres, gamma, weights))
        return model, lambda p: beside(p, [means], *truth, order=True)

    return make


def scales(n):
    def make(seed):
        rng = np.random.default_rng(seed)
        y = rng.normal(1.0, np.where(rng.random(n) < 0.5, 0.3, 3.0))
        model = hg.Model()
        means, tau = model.gaussian("means", 0.0, variance=100.0, size=2), model.gamma("tau", 1.0, 1.0, size=2)
        which = model.categorical("which", np.full(2, 0.5), size=n)
        model.mixture("y", which, means, precision=tau, observed=y)
        truth = of(gibbs.scales(np.random.default_rng(10_000 + seed), y))
        return model, lambda p: beside(p, [tau], *truth, order=True)

    return make


def item_response(people, items):
    def make(seed):
        rng = np.random.default_rng(seed)
        theta, a, b = rng.normal(size=people), rng.normal(size=items), 0.5 * rng.normal(size=items)
        p_true = ndtr(theta[:, None] * a - b)
        correct = rng.random(p_true.shape) < p_true
        model = hg.Model()
        t = model.gaussian("theta", 0.0, variance=1.0, size=(people, 1))
        s = model.gaussian("a", 0.0, variance=1.0, size=items)
        d = model.gaussian("b", 0.0, variance=1.0, size=items)
        model.bernoulli("correct", probit=s * t - d, observed=correct)
        best = np.sqrt(((gibbs.item_response(np.random.default_rng(10_000 + seed), correct) - p_true) ** 2).mean())

        def verdict(p):
            m, v = _product(p[t].mean, p[t].variance, p[s].mean, p[s].variance)
            m, v = m - p[d].mean, v + p[d].variance
            return np.sqrt(((ndtr(m / np.sqrt(1 + v)) - p_true) ** 2).mean()) / best, np.nan, np.nan

        return model, verdict

    return make


def _product(ma, va, mb, vb):
    return ma * mb, va * vb + va * mb**2 + vb * ma**2


def factorisation(rows, columns, k):
    def make(seed):
        rng = np.random.default_rng(seed)
        signal = rng.normal(size=(rows, k)) @ rng.normal(size=(k, columns))
        y = signal + np.sqrt(0.1) * rng.normal(size=signal.shape)
        seen = rng.random(y.shape) < 0.8
        i, j = np.nonzero(seen)
        model = hg.Model()
        u = model.gaussian("u", 0.0, variance=1.0, size=(rows, k))
        v = model.gaussian("v", 0.0, variance=1.0, size=(columns, k))
        whole = u[i, 0] * v[j, 0]
        for c in range(1, k):
            whole = whole + u[i, c] * v[j, c]
        model.gaussian("y", whole, variance=0.1, observed=y[i, j])
        found = gibbs.factorisation(np.random.default_rng(10_000 + seed), y, seen, k, 0.1, 1500, 500)
        best = np.sqrt(((found - signal) ** 2).mean())

        def verdict(p):
            return np.sqrt(((p[u].mean @ p[v].mean.T - signal) ** 2).mean()) / best, np.nan, np.nan

        return model, verdict

    return make


CASES = {
    "student n = 40": (student(40), 1.0),
    "student n = 1000": (student(1000), 1.0),
    "mean and precision n = 3": (mean_and_precision(3, 1e-3), 1.0),
    "mean and precision n = 5": (mean_and_precision(5, 1e-3), 1.0),
    "mean and precision n = 10": (mean_and_precision(10, 1e-3), 1.0),
    "mean and precision n = 30": (mean_and_precision(30, 1e-3), 1.0),
    "hierarchical 8 x 5": (hierarchical(8, 5), 1.0),
    "hierarchical 30 x 4": (hierarchical(30, 4), 1.0),
    "regression 50 x 3": (regression(50, 3), 1.0),
    "regression 300 x 10": (regression(300, 10), 1.0),
    "mixture known n = 300": (mixture(300, 6, 3, False, False), 1.0),
    "mixture gamma n = 300": (mixture(300, 6, 3, True, False), 1.0),
    "mixture separation 3 gamma": (mixture(300, 3, 3, True, False), 1.0),
    "overlap separation 2 weights": (mixture(300, 2, 3, False, True), 1.0),
    "overlap separation 2 gamma weights": (mixture(300, 2, 3, True, True), 1.0),
    "overlap separation 3 K = 5 gamma": (mixture(500, 3, 5, True, False), 1.0),
    "scales n = 300": (scales(300), 1.0),
    "item response 60 x 8": (item_response(60, 8), 1.1),
    "factorisation 20 x 15 K = 2": (factorisation(20, 15, 2), 1.1),
}


def bench(name, seeds, **settings):
    make, limit = CASES[name]
    settled = right = negative = 0
    sweeps, seconds, errors, low, high = [], [], [], [], []
    for seed in seeds:
        model, verdict = make(seed)
        start = time.process_time()
        posterior = infer(model, seed=seed, max_sweeps=MOST_SWEEPS, **settings)
        seconds.append(time.process_time() - start)
        error, least, most = verdict(posterior)
        settled += posterior.converged
        right += posterior.converged and bool(error < limit)
        negative += not _positive(posterior, model)
        for kept, value in ((sweeps, posterior.n_sweeps), (errors, error), (low, least), (high, most)):
            kept.append(value)
    row(
        name,
        f"converged {settled}, right {right} of {len(seeds)}; error {np.median(errors):.2f} (most {max(errors):.2f});",
        f"sd ratio {min(low):.2f}-{max(high):.2f};" if np.isfinite(low).all() else "",
        f"sweeps {np.median(sweeps):g} (most {max(sweeps)}); {np.median(seconds):.3f} s",
        f"variances not positive {negative}" if negative else "",
    )


def _positive(posterior, model):
    return all(bool(np.all(posterior[v].proper)) for v in model.variables if not posterior[v].is_point.all())


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
