"""What oracles cost and how right they are, on eight black boxes, 200 random incoming tuples each.

Run ``python benchmarks/bench_oracles.py [n_tuples]``. Beliefs in all directions are compared with independent
integration (trapezoid grids, conjugate given one input). Claims: KL at most 1e-2 for 95 % of the tuples, the rest
flagged; z-scores of plain draws near 1; 5e5 draws for 300 messages in bounded memory.
"""

from __future__ import annotations

import sys
import time
import tracemalloc
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "oracles"))

from black_boxes import BLACK_BOXES

from heliograph.families import Gaussian
from heliograph.oracles import ImportanceOracle, QuadratureOracle


def black_boxes(n):
    heads = ("failed", "median KL", "95 % KL", "worst KL", "> 1e-2", "draws", "ms")
    widths = (6, 10, 10, 10, 6, 8, 6)
    print(f"{'black box':15} {'port':10}", *(f"{h:>{w}}" for h, w in zip(heads, widths, strict=True)))
    for name, box in BLACK_BOXES.items():
        incoming = box.incoming(np.random.default_rng(17), n)
        start = time.process_time()
        answer = ImportanceOracle(precision=0.05).ask(np.random.default_rng(18), box.sampler, incoming)
        cost = (time.process_time() - start) / n
        ok = ~answer.failed
        for port, exact in box.reference(incoming).items():
            kl = exact.kl(answer.beliefs[port])[ok]
            numbers = (
                f"{np.median(kl):10.1e} {np.quantile(kl, 0.95):10.1e} {kl.max():10.1e} {int((kl > 1e-2).sum()):6d}"
            )
            print(
                f"{name:15} {port:10} {int((~ok).sum()):6d} {numbers} {answer.n_evaluations // n:8d} {1e3 * cost:6.1f}"
            )


def proposals(n):
    box = BLACK_BOXES["logistic"]
    incoming = box.incoming(np.random.default_rng(17), n)
    exact = QuadratureOracle().ask(np.random.default_rng(0), box.sampler, incoming).beliefs["z"]
    print(f"\n{'logistic, 16384 draws':34} {'ESS':>6} {'median KL':>10} {'expected':>10} {'z-scores':>9}")
    for label, oracle in {
        "fixed N(0, 200), plain draws": ImportanceOracle(proposal=Gaussian(0.0, 200.0), draws="random", adapt=False),
        "fixed N(0, 200), Sobol'": ImportanceOracle(proposal=Gaussian(0.0, 200.0), adapt=False),
        "cavity, plain draws": ImportanceOracle(proposal="cavity", draws="random"),
        "cavity, Sobol'": ImportanceOracle(proposal="cavity"),
        "defensive, plain draws": ImportanceOracle(draws="random"),
        "defensive, Sobol'": ImportanceOracle(),
    }.items():
        answer = oracle.ask(np.random.default_rng(19), box.sampler, incoming)
        z = (answer.beliefs["z"].mean - exact.mean) / answer.standard_errors["z"][0]
        kl, expected = exact.kl(answer.beliefs["z"]), answer.expected_kl["z"]
        print(
            f"{label:34} {np.median(answer.ess) / 16384:6.1%} {np.median(kl):10.1e} {np.median(expected):10.1e} {z.std():9.2f}"
        )


def the_papers_oracle():
    box = BLACK_BOXES["logistic"]
    incoming = box.incoming(np.random.default_rng(17), 300)
    oracle = ImportanceOracle(500_000, proposal=Gaussian(0.0, 200.0), draws="random", adapt=False)
    tracemalloc.start()
    start = time.process_time()
    oracle.ask(np.random.default_rng(20), box.sampler, incoming)
    seconds, peak = time.process_time() - start, tracemalloc.get_traced_memory()[1]
    print(f"\n5e5 draws for 300 messages: {seconds:.1f} s of one core, {peak / 1e6:.0f} MB")
    tracemalloc.stop()


if __name__ == "__main__":
    n_tuples = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    black_boxes(n_tuples)
    proposals(n_tuples)
    the_papers_oracle()
