"""Experiment 3 of the paper, small: related logistic regressions with every operator, against the hand-made factor.

    python benchmarks/bench_exp3_quick.py                            # 3 problems, 2,000 particles; under a minute
    python benchmarks/bench_exp3_quick.py --problems 30 --paper      # the paper's oracle: N(0, 200), 5e5 particles; hours
    python benchmarks/bench_exp3_quick.py --oracle quadrature --operators kjit ask --schedule sequential

Prints for each problem: asks, calls of the function, improper messages, disagreement with the noise-free Bayes label on
10,000 points, KL(hand-made || learned) of the posterior of w, seconds, and how they were spent. The last problem is run
twice: the second pass should ask at most 2 % as often as the first problem did.
"""

import argparse
import json
import time
import warnings

import numpy as np
from threadpoolctl import threadpool_limits

import heliograph as hg
from heliograph.oracles import ImportanceOracle

D, N, SWEEPS = 20, 300, 10


def make_factor():
    @hg.factor(output=hg.Beta)
    def logistic(z):
        return 1 / (1 + np.exp(-z))

    return logistic


def problems(seed, n_problems):
    rng = np.random.default_rng(seed)
    w, test = rng.standard_normal(D), rng.standard_normal((10_000, D))
    data = []
    for _ in range(n_problems):
        x = rng.standard_normal((N, D))
        data.append((x, (rng.random(N) < 1 / (1 + np.exp(-x @ w))).astype(float)))
    return data, test, test @ w > 0


def infer(logistic, x, y, schedule, **settings):
    model = hg.Model()
    w = model.gaussian("w", np.zeros(D), covariance=np.eye(D))
    if logistic is None:
        model.bernoulli("y", logit=x @ w, observed=y)
    else:
        model.bernoulli("y", logistic(x @ w), observed=y)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ten sweeps are ten sweeps, converged or not
        posterior = model.infer(seed=0, progress=False, schedule=schedule, stop=hg.after(SWEEPS), **settings)
    return posterior, time.perf_counter() - start


def oracle_of(options):
    if options.paper:
        return ImportanceOracle(500_000, proposal=hg.Gaussian(0.0, 200.0), draws="random", adapt=False)
    return ImportanceOracle(options.particles) if options.oracle == "importance" else options.oracle


def row_of(operator, k, posterior, exact, seconds, test, label):
    trace = posterior.trace
    return {
        "operator": operator,
        "problem": k,
        "asked": trace.n_asked,
        "evaluations": int(trace.total("n_evaluations")),
        "improper": int(trace.total("n_improper")),
        "failed": int(trace.total("n_failed")),
        "disagreement": float(np.mean((test @ posterior["w"].mean > 0) != label)),
        "kl": float(exact["w"].kl(posterior["w"])),
        "seconds": seconds,
        "oracle": trace.total("seconds_oracle"),
        "learning": trace.total("seconds_learning"),
        "prediction": trace.total("seconds_prediction"),
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--problems", type=int, default=3)
    parser.add_argument("--particles", type=int, default=2000)
    parser.add_argument("--oracle", default="importance")
    parser.add_argument("--paper", action="store_true")
    parser.add_argument("--operators", nargs="+", default=["kjit", "ask"])
    parser.add_argument("--schedule", default="parallel")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    data, test, label = problems(options.seed, options.problems)
    rows = []
    with threadpool_limits(1):
        by_hand = [infer(None, x, y, options.schedule) for x, y in data]
        for k, (posterior, seconds) in enumerate(by_hand):
            rows.append(row_of("by hand", k + 1, posterior, posterior, seconds, test, label))
        for operator in options.operators:
            logistic = make_factor()
            for k in [*range(len(data)), len(data) - 1]:
                x, y = data[k]
                posterior, seconds = infer(
                    logistic, x, y, options.schedule, operator=operator, oracle=oracle_of(options)
                )
                rows.append(row_of(operator, k + 1, posterior, by_hand[k][0], seconds, test, label))
                if not options.json:
                    print(f"  {operator}, problem {k + 1}: {seconds:.1f} s", flush=True)
    if options.json:
        print(json.dumps(rows))
        return
    names = list(rows[0])
    print(" ".join(f"{n:>12}" for n in names))
    for row in rows:
        print(" ".join(f"{v:12.4g}" if isinstance(v, float) else f"{v:>12}" for v in row.values()))


if __name__ == "__main__":
    main()
