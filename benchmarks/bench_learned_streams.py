"""The default operator without an engine: answers needed on streams of messages, honesty, speed and memory of large plates.

    python benchmarks/bench_learned_streams.py              # streams, shift, a plate of 1e6 messages
    python benchmarks/bench_learned_streams.py --part speed # one plate of 300 against the hand-made factor

Streams are 2,000 tuples in plates of 200, two problems, each broad then narrow; labels are exact (grids). "KL" is that of accepted
predictions, "ratio" realised over expected.
"""

import argparse
import resource
import time
import warnings

import numpy as np
from threadpoolctl import threadpool_limits

from heliograph.factors.logistic import Logistic, LogisticBernoulli
from heliograph.families import Bernoulli, Beta, Gamma, Gaussian
from heliograph.operators.learned import Learned
from heliograph.operators.protocol import Setting
from heliograph.oracles import sampler_of
from heliograph.oracles.answer import Answer
from heliograph.oracles.references import reference_of

PLATE = 200


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def exponential(z):
    return np.exp(z)


def narrowing(rng, n, first, last):
    share = np.linspace(0, 1, n)
    return np.exp((1 - share) * np.log(first) + share * np.log(last) + 0.3 * rng.normal(size=n))


def logistic_stream(rng, labels, n=1000, shift=0.0, spread=1.0):
    z, a, b = [], [], []
    for k in range(2):
        v = spread * narrowing(rng, n, 20.0, 0.5)
        m = shift + 2.0 * k + rng.normal(size=n) * np.sqrt(2 + 0.5 * v)
        y = rng.random(n) < sigmoid(m)
        z.append((m, v))
        if labels == "labels":
            a.append(np.where(y, 2.0, 1.0)), b.append(np.where(y, 1.0, 2.0))
        elif labels == "1..3":
            a.append(rng.uniform(1, 3, n)), b.append(rng.uniform(1, 3, n))
        else:
            (
                a.append(np.exp(rng.uniform(np.log(0.5), np.log(50), n))),
                b.append(np.exp(rng.uniform(np.log(0.5), np.log(50), n))),
            )
    m, v = np.concatenate(z, axis=1)
    return {"z": Gaussian(m, v), "out": Beta(np.concatenate(a), np.concatenate(b))}


def poisson_stream(rng, n=1000):
    m = np.concatenate([rng.normal(size=n), 1 + rng.normal(size=n)])
    v = np.concatenate([narrowing(rng, n, 4.0, 0.05) for _ in range(2)])
    return {"z": Gaussian(m, v), "out": Gamma(rng.poisson(np.exp(np.clip(m, -3, 5))) + 1.0, rng.uniform(0.5, 2, 2 * n))}


def exact(incoming):
    """Beliefs of both ports by 3,001 nodes in a window that is fitted to what counts."""
    m, v = incoming["z"].mean[:, None], incoming["z"].variance[:, None]
    out = incoming["out"]
    first, second = (a[:, None] for a in out.naturals)
    beta = isinstance(out, Beta)
    low, high = m - 14 * np.sqrt(v), m + 14 * np.sqrt(v)
    for _ in range(3):
        z = low + (high - low) * np.linspace(0, 1, 3001)
        up, down = (-np.logaddexp(0, -z), -np.logaddexp(0, z)) if beta else (z, -np.exp(z))
        log_f = -0.5 * (z - m) ** 2 / v + first * up + second * down
        top = log_f.max(axis=1, keepdims=True)
        w = np.exp(log_f - top)
        counts = w > 1e-30
        start, stop = counts.argmax(axis=1)[:, None], 3000 - counts[:, ::-1].argmax(axis=1)[:, None]
        low, high = np.take_along_axis(z, start, 1), np.take_along_axis(z, stop, 1)
    total = w.sum(axis=1)
    w = w / total[:, None]
    mean = (w * z).sum(axis=1)
    belief = Gaussian(mean, (w * (z - mean[:, None]) ** 2).sum(axis=1))
    log_z = top[:, 0] + np.log(total * (z[:, 1] - z[:, 0])) - 0.5 * np.log(2 * np.pi * v[:, 0]) - out.log_normaliser()
    of_out = (
        Beta.from_statistics((w * up).sum(1), (w * down).sum(1))
        if beta
        else Gamma.from_statistics(-(w * down).sum(1), mean)
    )
    return {"z": belief, "out": of_out}, log_z


def answer(incoming, precision=None):
    beliefs, log_z = exact(incoming)
    n = len(log_z)
    zero, square = np.zeros(n), {p: np.zeros((n, 2, 2)) for p in beliefs}
    kl = dict.fromkeys(beliefs, zero)
    return Answer(
        beliefs, log_z, dict.fromkeys(beliefs, (zero, zero)), square, square, kl, zero, zero, zero, zero > 1, 0
    )


def run(name, function, output, incoming, to, tolerance, reference="auto"):
    sampler = sampler_of(function, output)
    operator, rng = Learned(reference=reference, audit=0.0, budget=800), np.random.default_rng(0)
    setting = Setting(tolerance / PLATE**1.5, sampler, None, reference_of(sampler))
    found, expected, asked = [], [], 0
    start = time.perf_counter()
    for k in range(0, len(incoming["z"]), PLATE):
        rows = {p: m[k : k + PLATE] for p, m in incoming.items()}
        reply = operator.send(rng, to, rows, answer, setting)
        kl = exact(rows)[0][to].kl(reply.message * rows[to])
        found.append(kl[~reply.asked]), expected.append(reply.expected_kl[~reply.asked])
        asked += int(reply.asked.sum())
    kl, expected = np.concatenate(found), np.concatenate(expected)
    ratio = kl / np.maximum(expected, 1e-300)
    print(
        f"{name:34s} {to:4s} {reference:5s} {tolerance:8.0e} {asked:6d} {np.median(kl):10.1e} {np.quantile(kl, 0.99):9.1e} "
        f"{kl.max():9.1e} {np.median(ratio):7.2f} {np.quantile(ratio, 0.99):7.1f} {time.perf_counter() - start:6.1f}",
        flush=True,
    )


def streams():
    print(
        "stream                             to   ref   tolerance  asked  median KL   99 %      worst    ratio   99 %   seconds"
    )
    for tolerance in (1e-2, 1e-3):
        for reference in ("auto", "none"):
            for labels in ("labels", "1..3", ".5..50"):
                incoming = logistic_stream(np.random.default_rng(7), labels)
                for to in ("z", "out"):
                    run(f"logistic, Beta {labels}", sigmoid, Beta, incoming, to, tolerance, reference)
            incoming = poisson_stream(np.random.default_rng(7))
            for to in ("z", "out"):
                run("exp, Gamma of counts", exponential, Gamma, incoming, to, tolerance, reference)


def shift():
    """Trained on one region, then moved: accepted messages above 100 times one message's share of the tolerance."""
    sampler, rng = sampler_of(sigmoid, Beta), np.random.default_rng(1)
    for reference in ("auto", "none"):
        operator = Learned(reference=reference, audit=0.0, budget=800)
        setting = Setting(1e-3 / PLATE**1.5, sampler, None, reference_of(sampler))
        bad = accepted = 0
        for moved, spread in ((0.0, 1.0), (20.0, 1.0), (0.0, 100.0), (-20.0, 100.0), (40.0, 1.0)):
            incoming, before = logistic_stream(rng, "labels", shift=moved, spread=spread), operator.n_asked
            for k in range(0, 2000, PLATE):
                rows = {p: m[k : k + PLATE] for p, m in incoming.items()}
                reply = operator.send(rng, "z", rows, answer, setting)
                kl = exact(rows)[0]["z"].kl(reply.message * rows["z"])[~reply.asked]
                bad, accepted = bad + int((kl > 100 * 1e-3 / PLATE).sum()), accepted + len(kl)
            print(
                f"shift, reference {reference}: moved {moved:+.0f}, variances x {spread:.0f}: asked {operator.n_asked - before}"
            )
        print(
            f"shift, reference {reference}: {bad} of {accepted} accepted messages above 100 times their share",
            flush=True,
        )


def scale():
    """Time a message and memory at 1e4 and 1e6 messages."""
    sampler, rng = sampler_of(sigmoid, Beta), np.random.default_rng(2)
    operator = Learned(audit=0.0)
    for n in (1_000_000, 10_000):
        incoming = logistic_stream(rng, "labels", n=n // 2)
        setting = Setting(1e-2 / 1e4**1.5, sampler, None, reference_of(sampler))
        for again in ("first", "again"):
            before, start = operator.n_asked, time.perf_counter()
            operator.send(rng, "z", incoming, answer, setting)
            seconds = time.perf_counter() - start
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            told = f"{1e6 * seconds / n:.2f} us per message, asked {operator.n_asked - before}, peak memory {memory:.0f} MB"
            print(f"{n:8d} messages, {again}: {told}", flush=True)


def speed():
    """One plate of 300: the operator once it knows, its parts, and the hand-made factors."""
    sampler, rng = sampler_of(sigmoid, Beta), np.random.default_rng(3)
    refer, operator = reference_of(sampler), Learned(audit=0.0)
    setting = Setting(1e-3 / 300**1.5, sampler, None, refer)

    def plate():
        m = 2 * rng.normal(size=300)
        y = rng.random(300) < sigmoid(m)
        return {
            "z": Gaussian(m, np.exp(rng.uniform(-1, 1, 300))),
            "out": Beta(np.where(y, 2.0, 1.0), np.where(y, 1.0, 2.0)),
        }

    for _ in range(10):
        operator.send(rng, "z", plate(), answer, setting)
    incoming = plate()
    operator.send(rng, "z", incoming, answer, setting)
    label = Bernoulli.point_mass((incoming["out"].a > 1.5) * 1.0)
    ways = {
        "learned": lambda: operator.send(rng, "z", incoming, answer, setting),
        "of which the reference": lambda: refer(rng, incoming, "z"),
        "hand-made, p = sigmoid(z)": lambda: Logistic().message("z", {"z": incoming["z"], "p": incoming["out"]}),
        "hand-made, y ~ sigmoid(z)": lambda: LogisticBernoulli().message("z", {"z": incoming["z"], "y": label}),
    }
    for name, way in ways.items():
        best = min(_timed(way) for _ in range(300))
        print(f"{name:28s} {1e6 * best:7.0f} us for 300 messages", flush=True)


def _timed(way):
    start = time.perf_counter()
    way()
    return time.perf_counter() - start


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("streams", "shift", "scale", "speed"))
    part = parser.parse_args().part
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        for name, what in {"streams": streams, "shift": shift, "scale": scale, "speed": speed}.items():
            if part in (None, name):
                what()
