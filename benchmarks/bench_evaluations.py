"""Evaluations of a black box in related problems: a counter inside the function, and what the trace says they were for.

python benchmarks/bench_evaluations.py                               # logistic, softmax, ratio, tanh, ten problems
python benchmarks/bench_evaluations.py --factors range --problems 12 --seeds 0,1
"""

import argparse
import functools
import warnings

import numpy as np
from threadpoolctl import threadpool_limits

import heliograph as hg
from benchmarks import unseen_factors

CALLS = [0]
FACTOR = hg.factor


def counted(function, **settings):
    """`hg.factor` of a function that counts its samples."""

    @functools.wraps(function)
    def inner(*values, **named):
        arrays = [v for v in (*values, *named.values()) if isinstance(v, np.ndarray)]
        CALLS[0] += max((len(a) if a.ndim else 1 for a in arrays), default=1)
        return function(*values, **named)

    return FACTOR(inner, **settings)


def factor(function=None, **settings):
    """`hg.factor`, with a counter."""
    return functools.partial(counted, **settings) if function is None else counted(function, **settings)


def series(name, n_problems, seed):
    """Evaluations of each problem: of its messages, and of its evidence."""
    hg.factor = factor
    try:
        _, build, _ = unseen_factors.FACTORS[name]()
    finally:
        hg.factor = FACTOR
    for k in range(n_problems):
        model = build(np.random.default_rng([seed, k]))
        before = CALLS[0]
        posterior = model.infer(seed=k, progress=False)
        beliefs = [posterior[v] for v in model.variables if v.node.observed is None]
        sent = CALLS[0]
        assert beliefs
        assert np.isfinite(posterior.log_evidence)
        yield sent - before, CALLS[0] - sent, posterior.trace


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--factors", default="logistic,softmax,ratio,tanh")
    parser.add_argument("--problems", type=int, default=10)
    parser.add_argument("--seeds", default="0,1,2")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        for name in options.factors.split(","):
            for seed in map(int, options.seeds.split(",")):
                rows = list(series(name, options.problems, seed))
                print(f"{name:12} seed {seed}: messages {' '.join(str(r[0]) for r in rows)}")
                print(
                    f"{'':12} evidence {' '.join(str(r[1]) for r in rows)}; in the last {rows[-1][2].evaluations}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
