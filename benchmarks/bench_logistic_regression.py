"""Logistic regression by EP: cost per datum as n grows, memory, and the price of the engine over a loop written by hand.

    python benchmarks/bench_logistic_regression.py            # all sizes; about two minutes
    python benchmarks/bench_logistic_regression.py --most 10000

Prints ratios, measured side by side in one run; BLAS is held to one thread.
"""

import argparse
import subprocess
import sys
import time
import tracemalloc

import numpy as np
from threadpoolctl import threadpool_limits

import heliograph as hg

D = 20
SWEEPS = 6


def problem(n, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, D))
    y = (rng.random(n) < 1 / (1 + np.exp(-x @ rng.standard_normal(D)))).astype(float)
    return x, y


def with_engine(x, y, **settings):
    model = hg.Model()
    w = model.gaussian("w", np.zeros(D), covariance=np.eye(D))
    model.bernoulli("y", logit=x @ w, observed=y)
    return w, model.infer(progress=False, **settings)


# ---- the same EP by hand ----------------------------------------------------------------------------------------------
REACH, STEP = np.sqrt(2 * 13 * np.log(10.0)), 0.45


def by_hand(x, y, change=1e-6, most=200):
    """Parallel EP for N(0, I) and logistic likelihoods; 30-odd trapezoid nodes a message, exact to about 1e-12."""
    n, d = x.shape
    sign = 2 * y - 1
    tau, shift = np.zeros(n), np.zeros(n)  # sites
    precision, h = np.eye(d), np.zeros(d)
    old = None
    for sweep in range(1, most + 1):
        lower = np.linalg.cholesky(precision)
        half = np.linalg.solve(lower, np.eye(d))
        covariance = half.T @ half
        mean = covariance @ h
        if old is not None:
            old_mean, old_precision, old_lower = old
            gap = mean - old_mean
            kl = 0.5 * (np.sum(old_precision * covariance) - d + gap @ old_precision @ gap)
            kl += np.log(np.diag(lower)).sum() - np.log(np.diag(old_lower)).sum()
            if kl < change:
                return mean, covariance, sweep - 1
        old = mean, precision, lower
        white = x @ half.T
        belief_v = np.einsum("ij,ij->i", white, white)
        belief_m = x @ mean
        cavity_v = 1 / (1 / belief_v - tau)
        cavity_m = cavity_v * (belief_m / belief_v - shift)
        # tilted moments: sigmoid(s z) = exp(s z / 2) / (2 cosh(z / 2)), the exponential moves the cavity
        c = sign * cavity_m + 0.5 * cavity_v
        sd = np.sqrt(cavity_v)
        top = sd.max()
        step = min(STEP, 2 * np.pi**2 / (13 * np.log(10) + 0.5 * np.pi**2 / top**2) / top)
        nodes = -REACH + step * np.arange(int(np.ceil((2 * REACH + 0.5 * top) / step)) + 1)
        weight = np.exp(-0.5 * nodes**2)
        q = np.empty((len(nodes), n))
        q[0] = np.exp(-REACH * 0.5 * sd)
        g, done = np.exp(step * 0.5 * sd), 1
        while done < len(nodes):  # exp(sd u / 2) at equally spaced u is a geometric series
            more = min(done, len(nodes) - done)
            np.multiply(q[:more], g, out=q[done : done + more])
            done, g = done + more, g * g
        bell = q * q
        bell *= np.exp(-np.abs(c))
        bell += 1
        np.divide(q, bell, out=bell)
        total, first, second = np.stack([weight, weight * nodes, weight * nodes**2]) @ bell
        first /= total
        ratio = second / total - first**2
        tau = (1 / ratio - 1) / cavity_v
        shift = sign * (0.5 - np.copysign(first, c) / sd) / ratio + cavity_m * tau
        precision = np.eye(d) + (x * tau[:, None]).T @ x
        h = x.T @ shift
    return mean, covariance, most


def fastest(run, repeats):
    """The least processor time of several runs, on one thread: other people's work on the machine only ever adds."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def peak_ratio(n):
    """Peak traced memory over the data's own bytes, the data included, in this process."""
    tracemalloc.start()
    x, y = problem(n)
    tracemalloc.reset_peak()
    with_engine(x, y, stop=hg.after(2))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / (x.nbytes + y.nbytes)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=int, default=1_000_000)
    parser.add_argument("--memory", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory:
        print(peak_ratio(options.memory))
        return
    with threadpool_limits(1):
        x, y = problem(300)
        w, posterior = with_engine(x, y)
        mean, covariance, sweeps = by_hand(x, y)
        gap = max(np.abs(posterior[w].mean - mean).max(), np.abs(posterior[w].covariance - covariance).max())
        print(f"n = 300: engine and hand agree to {gap:.1e}; {posterior.n_sweeps} and {sweeps} sweeps")
        ratios = []
        for _ in range(7):  # side by side, so that a busy machine hits both
            ratios.append(fastest(lambda: with_engine(x, y), 20) / fastest(lambda: by_hand(x, y), 20))
        print(f"n = 300: one infer takes {np.median(ratios):.2f} times the loop by hand (goal: at most 2)")
        per_datum = {}
        n = 1000
        while n <= options.most:
            x, y = problem(n)
            seconds = fastest(lambda x=x, y=y: with_engine(x, y, stop=hg.after(SWEEPS)), 3 if n < 10**6 else 2)
            per_datum[n] = seconds / n / SWEEPS
            print(f"n = {n:>9,}: {1e9 * per_datum[n]:7.0f} ns a datum and sweep")
            n *= 10
        if options.most >= 10**6:
            print(
                f"time a datum at 1e6 over that at 1e4: {per_datum[10**6] / per_datum[10**4]:.2f} (goal: at most 1.3)"
            )
    top = min(options.most, 10**6)
    out = subprocess.run([sys.executable, __file__, "--memory", str(top)], capture_output=True, text=True, check=True)
    print(f"peak memory at n = {top:,}: {float(out.stdout):.2f} times the data's own bytes (goal: at most 4)")


if __name__ == "__main__":
    main()
