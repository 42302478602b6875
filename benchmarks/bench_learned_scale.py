"""The default operator under shift, on plates of a million, and over many problems.

    python benchmarks/bench_learned_scale.py

Shift: trained on one region of messages, then means moved by 10 standard deviations and variances by 100 times; counts accepted
messages whose KL from the exact belief is above 100 times what one message may be wrong by. Scale: time a message and memory of one
plate of 1e6 against 1e4. Problems: oracle calls after 10, 100 and 1,000 logistic regressions.
"""

import argparse
import time
import tracemalloc

import numpy as np
from threadpoolctl import threadpool_limits

import heliograph as hg
from heliograph.factors import Logistic
from heliograph.factors.black_box import RunOptions


def logistic():
    @hg.factor(output=hg.Beta)
    def box(z):
        return 1 / (1 + np.exp(-z))

    return box


def plate(rng, n, shift=0.0, stretch=1.0):
    """Messages like those of a logistic regression: means, variances, one label each."""
    mean, variance = shift + 2.0 * rng.standard_normal(n), stretch * np.exp(0.5 * rng.standard_normal(n))
    label = rng.random(n) < 0.5
    return {"z": hg.Gaussian(mean, variance), "out": hg.Beta(np.where(label, 2.0, 1.0), np.where(label, 1.0, 2.0))}


def send(box, rng, incoming, tolerance):
    n = len(incoming["z"])
    return box.send("z", incoming, RunOptions(rng, "learned", None, tolerance * n, None, n))


def shift(tolerance, n=1000):
    rng, box = np.random.default_rng(0), logistic()
    for _ in range(3):
        send(box, rng, plate(rng, n), tolerance)
    before, wrong, accepted, worst = box.n_asked, 0, 0, 0.0
    for k in range(10):
        incoming = plate(rng, n, *((20.0, 1.0), (0.0, 100.0), (20.0, 100.0), (-20.0, 100.0))[k % 4])
        reply = send(box, rng, incoming, tolerance)
        kept = ~reply.asked & ~reply.failed
        exact = Logistic().belief("z", {"z": incoming["z"], "p": incoming["out"]})
        kl = exact.kl(reply.message * incoming["z"])[kept]
        accepted, wrong, worst = (
            accepted + kept.sum(),
            wrong + (kl > 100 * tolerance).sum(),
            max(worst, kl.max(initial=0.0)),
        )
    print(
        f"shift, {tolerance:g} a message: asked {before} in training, {box.n_asked - before} after; {wrong} of {accepted} accepted "
        f"above 100 times; worst {worst / tolerance:.2g} times"
    )


def scale(most):
    rng, box = np.random.default_rng(1), logistic()
    for _ in range(3):
        send(box, rng, plate(rng, 2000), 1e-6)
    incoming = plate(rng, most)
    n = min(10_000, most)
    small = [{p: m[k : k + n] for p, m in incoming.items()} for k in range(0, most, n)]
    for _ in range(3):  # what is still to be asked, and to be laid on a lattice
        send(box, rng, incoming, 1e-6)
        for part in small:
            send(box, rng, part, 1e-6)
    per = {n: np.inf, most: np.inf}
    for _ in range(7):  # the same messages, one plate after the other and all in one
        for size, plates in ((n, small), (most, [incoming])):
            start = time.process_time()
            for part in plates:
                send(box, rng, part, 1e-6)
            per[size] = min(per[size], (time.process_time() - start) / most)
    tracemalloc.start()
    send(box, rng, incoming, 1e-6)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    ratio, own = per[most] / per[n], incoming["z"].naturals[0].nbytes * 4
    print(
        f"scale: {1e6 * per[n]:.2f} us per message at {n:,}, {1e6 * per[most]:.2f} at {most:,} (ratio {ratio:.2f}, goal 1.2)"
    )
    print(f"memory: peak {peak / 2**20:.0f} MB beside {own / 2**20:.0f} MB of messages")


def problems(most):
    box, calls, done = logistic(), 0, {}
    for k in range(most):
        rng = np.random.default_rng([7, k])
        x = rng.standard_normal((60, 5))
        y = rng.random(60) < 1 / (1 + np.exp(-x @ rng.standard_normal(5)))
        model = hg.Model()
        w = model.gaussian("w", np.zeros(5), covariance=np.eye(5))
        model.bernoulli("y", box(x @ w), observed=y)
        calls += model.infer(seed=k).trace.n_asked
        if k + 1 in (10, 100, 1000, most):
            done[k + 1] = calls
    print(f"oracle calls after that many problems: {done} (goal: at most 20 % more after the first ten)")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plate", type=int, default=1_000_000)
    parser.add_argument("--problems", type=int, default=1000)
    options = parser.parse_args()
    with threadpool_limits(1):
        for tolerance in (1e-4, 1e-6):
            shift(tolerance)
        problems(options.problems)
        scale(options.plate)


if __name__ == "__main__":
    main()
