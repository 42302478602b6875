"""A factor too hard for a thousand labels: the product of two broad Gaussians without a reference, and what becomes of asks.

    python benchmarks/bench_landmarks.py                       # 8,000 tuples in plates of 200, three ways
    python benchmarks/bench_landmarks.py --tuples 4000 --noise 1e-2

Prints, for every 2,000 tuples: the share that was asked about, then of those that were not: mean realised and expected KL,
the share above the largest expected KL that was accepted, and above 100 times it, and the time a tuple took. At the end
the messages move: means by 5, variances by 9 times. Labels are exact, or with `--noise` wrong by that many nats.
"""

import argparse
import time
import warnings

import numpy as np
from threadpoolctl import threadpool_limits

from heliograph.families import Gaussian
from heliograph.operators.learned import Learned
from heliograph.operators.protocol import Setting
from heliograph.oracles import sampler_of
from heliograph.oracles.answer import Answer

PLATE = 200


def product(a, b):
    return a * b


def stream(rng, n, shift=0.0, spread=1.0):
    ma, mb = shift + rng.uniform(-1, 2, n), rng.uniform(-1, 2, n)
    va, vb = spread * np.exp(rng.uniform(-3, -1, n)), spread * np.exp(rng.uniform(-3, -1, n))
    a, b = ma + np.sqrt(va) * rng.normal(size=n), mb + np.sqrt(vb) * rng.normal(size=n)
    vo = np.exp(rng.uniform(-1, 1, n))
    return {"a": Gaussian(ma, va), "b": Gaussian(mb, vb), "out": Gaussian(a * b + np.sqrt(vo) * rng.normal(size=n), vo)}


def exact(incoming):
    """The belief of a: given a, the rest is Gaussian, so one grid over a is enough."""
    (ma, va), (mb, vb), (mo, vo) = ((m.mean[:, None], m.variance[:, None]) for m in incoming.values())
    a = ma + np.sqrt(va) * np.linspace(-8, 8, 801)
    v = a**2 * vb + vo
    log_w = -0.5 * (a - ma) ** 2 / va - 0.5 * (mo - a * mb) ** 2 / v - 0.5 * np.log(v)
    w = np.exp(log_w - log_w.max(axis=1, keepdims=True))
    w /= w.sum(axis=1, keepdims=True)
    mean = (w * a).sum(axis=1)
    return Gaussian(mean, (w * (a - mean[:, None]) ** 2).sum(axis=1))


def oracle(rng, noise):
    """Answers about a that are wrong by `noise` nats on average, half in the mean and half in the variance."""

    def ask(incoming, precision=None):
        belief = exact(incoming)
        n = len(belief)
        sd, one = np.sqrt(noise), np.ones(n)
        mean = belief.mean + sd * np.sqrt(belief.variance) * rng.normal(size=n)
        belief = Gaussian(mean, belief.variance * np.exp(np.sqrt(2) * sd * rng.normal(size=n)))
        errors = np.zeros((n, 2, 2))
        errors[:, 0, 0], errors[:, 1, 1] = noise * belief.variance, 2 * noise
        zero, kl = np.zeros(n), {"a": noise * one}
        moments = {"a": (zero, zero)}
        return Answer({"a": belief}, zero, moments, {"a": errors}, {"a": errors}, kl, one, one, zero, zero > 1, 0)

    return ask


def run(name, options, operator):
    rng = np.random.default_rng([options.seed, 0])
    ask = oracle(np.random.default_rng([options.seed, 1]), options.noise)
    setting = Setting(options.tolerance / PLATE**1.5, sampler_of(product, Gaussian), None, None)
    for k in range(0, options.tuples + 2000, 2000):
        moved = k >= options.tuples
        incoming = stream(rng, 2000, *((5.0, 9.0) if moved else ()))
        truth = exact(incoming)
        found, expected, asked, seconds = [], [], 0, 0.0
        for j in range(0, 2000, PLATE):
            rows = {p: m[j : j + PLATE] for p, m in incoming.items()}
            start = time.perf_counter()
            reply = operator.send(rng, "a", rows, ask, setting)
            seconds += time.perf_counter() - start
            kl = truth[j : j + PLATE].kl(reply.message * rows["a"])
            kept = ~reply.asked
            found.append(kl[kept]), expected.append(reply.expected_kl[kept])
            asked += int(reply.asked.sum())
        known = next(iter(operator.kinds.values()))["a"]
        kl, said = np.concatenate(found), np.concatenate(expected)
        told = "moved" if moved else f"{k + 2000}"
        if len(kl):
            top = max(float(said.max()), options.tolerance / PLATE)
            what = f"{kl.mean():9.1e} {said.mean():9.1e} {(kl > top).mean():8.4f} {(kl > 100 * top).mean():8.4f}"
        else:
            what = "        -         -        -        -"
        print(
            f"{name:34s} {told:>6s} {asked / 2000:6.3f} {what} {1e6 * seconds / 2000:7.0f} us {len(known):6d}",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tuples", type=int, default=8000)
    parser.add_argument("--tolerance", type=float, default=1.0)
    parser.add_argument("--noise", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--ways", default="1000 and no more,exact,landmarks")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    ways = {
        "1000 and no more": {"budget": 1000, "landmarks": 1000},
        "exact": {"budget": 3000, "landmarks": 3000},
        "landmarks": {},
        "250 landmarks": {"landmarks": 250},
    }
    print(f"{'way':34s} {'tuples':>6s} {'asked':>6s} {'mean KL':>9s} {'expected':>9s} {'> most':>8s} {'> 100x':>8s}")
    with threadpool_limits(1):
        for name in options.ways.split(","):
            run(name, options, Learned(reference="none", **ways[name]))


if __name__ == "__main__":
    main()
