"""One plate through 300/500 two-stage features: mean and variance of both outputs, against the bare matrix products.

Run ``python benchmarks/bench_kjit_plate.py``. The two products any such prediction needs are ``phi @ nu.T`` (inner to
outer features) and ``psi @ R^-1`` (variance), here in float32 on preallocated arrays and one BLAS thread. Claims: a
plate of 300 takes at most 3 times as long as they do, and 100,000 messages are no slower a message than 300.
"""

from __future__ import annotations

import time

import numpy as np
from scipy.special import expit

from heliograph.families import Beta, Gaussian
from heliograph.kernels import median_heuristic
from heliograph.numerics.blas_threads import one_blas_thread
from heliograph.oracles import ImportanceOracle, sampler_of
from heliograph.regression import bayesian_linear


def best_time(f, repeats):
    """Processor seconds of the fastest run: all is on one thread, and others may share the machine."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        f()
        times.append(time.process_time() - start)
    return min(times)


def plate(rng, n):
    label = rng.integers(0, 2, n)
    return [Beta(1.0 + label, 2.0 - label), Gaussian(3 * rng.normal(size=n), rng.gamma(3, 1 / 4, n))]


def main():
    rng = np.random.default_rng(0)
    train, small, large = plate(rng, 1000), plate(rng, 300), plate(rng, 100_000)
    feature_map = median_heuristic(train).features(rng, n_outer=500, n_inner=300)
    z = train[1]
    posterior = bayesian_linear.fit(feature_map.features(train), np.stack([np.tanh(z.mean), np.log(z.variance)], 1))

    def predict(messages):
        return bayesian_linear.predict(posterior, feature_map.chunks(messages, np.float32), np.float32)

    single = [rng.normal(size=s).astype(np.float32) for s in ((300, 300), (300, 500), (300, 500), (500, 500))]
    out = np.empty((300, 500), np.float32)

    def bare():
        np.matmul(single[0], single[1], out=out)
        np.matmul(single[2], single[3], out=out)

    predict(small)
    with one_blas_thread():
        bare()
        products = best_time(bare, 50)
    here = best_time(lambda: predict(small), 50)
    # the same number of messages either way, so that the machine's other work falls on both
    many = best_time(lambda: [predict(small) for _ in range(333)], 3) / (333 * 300)
    there = best_time(lambda: predict(large), 3) / 100_000
    double = best_time(lambda: bayesian_linear.predict(posterior, feature_map.chunks(small)), 10)
    print(f"two bare products, 300 messages      {products * 1e3:8.2f} ms")
    print(
        f"features + mean + variance, float32  {here * 1e3:8.2f} ms   ratio {here / products:.2f}  (claim: at most 3)"
    )
    print(f"the same in float64                  {double * 1e3:8.2f} ms   ratio {double / products:.2f}")
    print(f"a message in plates of 300           {many * 1e6:8.2f} us")
    print(f"a message in one of 100,000          {there * 1e6:8.2f} us   ratio {there / many:.2f}  (claim: at most 1)")
    logistic = sampler_of(lambda z: expit(z), Beta, name="logistic")
    oracle = ImportanceOracle(500_000, proposal=Gaussian(0.0, 200.0), draws="random", adapt=False)
    few = {"z": small[1][:5], "out": small[0][:5]}
    asked = best_time(lambda: oracle.ask(rng, logistic, few), 2) / 5
    print(f"a message by 500,000 samples         {asked * 1e3:8.2f} ms   {asked / many:.0f} times a prediction")
    return here / products, there / many


if __name__ == "__main__":
    main()
