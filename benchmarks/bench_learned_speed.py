"""How fast are learned messages once they are learned? Experiment 3's problems, the hand-made factor just before each.

    python benchmarks/bench_learned_speed.py                       # 30 problems, seed 0
    python benchmarks/bench_learned_speed.py --seeds 0,1,2,3,4     # all five

Prints, from the fifth problem on, the time of learned messages over that of the hand-made quadrature factor in the same
engine: the median over problems, and the ratio of sums, which has in it what was still asked and laid on a lattice. One
sweep of the paper's sampler (N(0, 200), 5e5 draws per message) is timed beside them. Processor time: machines are shared.
Garbage is collected before every run and not during it, as `timeit` does: one pause of the collector takes as long as seven
problems, and falls on whoever allocates next.
"""

import argparse
import gc
import time
import warnings

import numpy as np
from threadpoolctl import threadpool_limits

import heliograph as hg
from heliograph.oracles import ImportanceOracle

D, N, SWEEPS, FROM = 20, 300, 10, 4


def logistic():
    @hg.factor(output=hg.Beta)
    def box(z):
        return 1 / (1 + np.exp(-z))

    return box


def infer(box, x, y, sweeps=SWEEPS, **settings):
    """Processor seconds of one problem, model and all, and its posterior."""
    gc.collect()
    gc.disable()
    start = time.process_time()
    model = hg.Model()
    w = model.gaussian("w", np.zeros(D), covariance=np.eye(D))
    if box is None:
        model.bernoulli("y", logit=x @ w, observed=y)
    else:
        model.bernoulli("y", box(x @ w), observed=y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ten sweeps are ten sweeps, converged or not
        posterior = model.infer(seed=0, progress=False, stop=hg.after(sweeps), **settings)
    seconds = time.process_time() - start
    gc.enable()
    return seconds, posterior


def one_seed(seed, n_problems):
    rng, box = np.random.default_rng(seed), logistic()
    w = rng.standard_normal(D)
    exact, learned, asked, worst = [], [], 0, 0.0
    for k in range(n_problems):
        x = rng.standard_normal((N, D))
        y = (rng.random(N) < 1 / (1 + np.exp(-x @ w))).astype(float)
        before, right = infer(None, x, y)
        seconds, posterior = infer(box, x, y)
        after, _ = infer(None, x, y)
        asked += posterior.trace.n_asked
        worst = max(worst, float(right["w"].kl(posterior["w"])))
        if k >= FROM:
            exact.append(0.5 * (before + after))
            learned.append(seconds)
    proposal = ImportanceOracle(500_000, proposal=hg.Gaussian(0.0, 200.0), draws="random", adapt=False)
    sampling = SWEEPS * infer(logistic(), x, y, sweeps=1, operator="ask", oracle=proposal)[0]
    ratio = np.array(learned) / np.array(exact)
    print(
        f"seed {seed}: learned over exact {np.median(ratio):.2f} (median, goal 1.1), sums "
        f"{sum(learned) / sum(exact):.2f} (goal 1.2), "
        f"sampling over learned {sampling / np.median(learned):.0f} (goal 1,000); {asked} calls in {n_problems} problems, "
        f"worst KL {worst:.1e}",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=30)
    parser.add_argument("--seeds", default="0")
    options = parser.parse_args()
    with threadpool_limits(1):
        for seed in map(int, options.seeds.split(",")):
            one_seed(seed, options.problems)


if __name__ == "__main__":
    main()
