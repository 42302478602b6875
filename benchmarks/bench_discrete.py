"""Hidden Markov chains beside hmmlearn, and topic models beside scikit-learn: ``python -m benchmarks.bench_discrete``.

CPU time, the best of several for the chain; both libraries in one run on the same data. Perplexity is of a fifth of the words,
which neither saw.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np

import heliograph as hg


def seconds(run: Callable[[], object], repeats: int) -> float:
    """The least CPU time of several runs."""
    best = np.inf
    for _ in range(repeats):
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
    return best


def hidden_chain(n: int, k: int, repeats: int) -> None:
    """Marginals and evidence of a chain with known tables."""
    from hmmlearn.hmm import CategoricalHMM

    rng = np.random.default_rng(0)
    step = rng.dirichlet(np.ones(k), k) + 3 * np.eye(k)
    step /= step.sum(1, keepdims=True)
    out, first = rng.dirichlet(np.ones(6), k), np.full(k, 1 / k)
    states = [0]
    for _ in range(n - 1):
        states.append(rng.choice(k, p=step[states[-1]]))
    seen = np.array([rng.choice(6, p=out[s]) for s in states])
    peer = CategoricalHMM(k)
    peer.startprob_, peer.transmat_, peer.emissionprob_ = first, step, out

    def ours() -> tuple[np.ndarray, float]:
        model = hg.Model()
        x = model.chain("x", n, hg.Categorical(first), lambda before: model.categorical("x", step, given=before))
        model.categorical("y", out, given=x, observed=seen)
        posterior = model.infer()
        return posterior[x].p, posterior.log_evidence

    log_p, theirs = peer.score_samples(seen[:, None])
    p, log_evidence = ours()
    a, b = seconds(ours, repeats), seconds(lambda: peer.score_samples(seen[:, None]), repeats)
    print(
        f"hidden chain {n} x {k}: heliograph {a * 1e3:.1f} ms, hmmlearn {b * 1e3:.1f} ms, ratio {a / b:.1f}; largest difference of "
        f"probabilities {np.abs(p - theirs).max():.1e}, of the log evidence {abs(log_evidence - log_p):.1e}"
    )


def topics(n_documents: int, length: int, v: int, k: int, seeds: int) -> None:
    """A topic model, held-out perplexity and time."""
    from sklearn.decomposition import LatentDirichletAllocation

    rng = np.random.default_rng(0)
    tables, shares = rng.dirichlet(np.full(v, 0.05), k), rng.dirichlet(np.full(k, 0.2), n_documents)
    document = np.repeat(np.arange(n_documents), length)
    z = np.array([rng.choice(k, p=shares[d]) for d in document])
    words = np.empty(len(z), int)
    for j in range(k):
        words[z == j] = rng.choice(v, p=tables[j], size=(z == j).sum())
    held = rng.random(len(words)) < 0.2
    counts = np.zeros((n_documents, v))
    np.add.at(counts, (document[~held], words[~held]), 1)

    def perplexity(s: np.ndarray, t: np.ndarray) -> float:
        return float(np.exp(-np.log((s[document[held]] * t[:, words[held]].T).sum(1)).mean()))

    print(
        f"topics {n_documents} x {length}, {v} categories, {k} topics: perplexity of the truth {perplexity(shares, tables):.1f}"
    )
    for seed in range(seeds):
        start = time.process_time()
        peer = LatentDirichletAllocation(
            k, doc_topic_prior=0.2, topic_word_prior=0.05, max_iter=50, random_state=seed
        ).fit(counts)
        theirs = time.process_time() - start
        b = perplexity(peer.transform(counts), peer.components_ / peer.components_.sum(1, keepdims=True))
        model = hg.Model()
        t, s = (
            model.dirichlet("tables", np.full((k, v), 0.05)),
            model.dirichlet("shares", np.full((n_documents, k), 0.2)),
        )
        choice = model.categorical("choice", s[document[~held]])
        model.categorical("word", t, given=choice, observed=words[~held])
        start = time.process_time()
        posterior = model.infer(seed=seed)
        ours = time.process_time() - start
        a = perplexity(posterior[s].mean, posterior[t].mean)
        print(
            f"  seed {seed}: heliograph {ours:.1f} s, {posterior.n_sweeps} sweeps, converged {posterior.converged}, "
            f"perplexity {a:.1f}; "
            f"scikit-learn (50 iterations) {theirs:.2f} s, perplexity {b:.1f}; ratio of times {ours / theirs:.1f}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    hidden_chain(10_000, 4, options.repeats)
    hidden_chain(100_000, 4, 3)
    hidden_chain(2_000, 20, 3)
    topics(200, 500, 1000, 10, options.seeds)
