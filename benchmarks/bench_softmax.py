"""Softmax regression of ten classes beside NUTS: how far our means, deviations and fitted probabilities are from its draws.

``python -m benchmarks.bench_softmax [--draws 16000]`` prints a line for each size, with what the draws are good to.
NumPyro is no dependency of the package.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

import heliograph as hg

CLASSES = 10
SIZES = ((150, 3, 0), (200, 2, 2), (300, 4, 1))  # rows, columns, seed


def data(n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns, the first of ones, and labels."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.ones(n), rng.standard_normal((n, d - 1))])
    p = probabilities(x @ rng.standard_normal((CLASSES, d)).T)
    return x, np.array([rng.choice(CLASSES, p=row) for row in p])


def probabilities(z: np.ndarray) -> np.ndarray:
    """The softmax along the last axis."""
    p = np.exp(z - z.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True)


def nuts(x: np.ndarray, y: np.ndarray, draws: int) -> tuple[np.ndarray, np.ndarray]:
    """Draws of the weights, and the standard error of each mean in deviations."""
    import jax
    import numpyro
    import numpyro.distributions as dist
    from numpyro.diagnostics import effective_sample_size
    from numpyro.infer import MCMC, NUTS

    numpyro.enable_x64()

    def model() -> None:
        w = numpyro.sample("w", dist.Normal(0, 1).expand([CLASSES, x.shape[1]]).to_event(2))
        numpyro.sample("y", dist.Categorical(logits=x @ w.T), obs=y)

    sampler = MCMC(NUTS(model), num_warmup=500, num_samples=draws, progress_bar=False)
    sampler.run(jax.random.PRNGKey(0))
    found = np.asarray(sampler.get_samples()["w"])
    return found, effective_sample_size(found[None]) ** -0.5


def ours(x: np.ndarray, y: np.ndarray) -> tuple[Any, Any]:
    """The posterior, and its variable."""
    model = hg.Model()
    w = model.gaussian("w", np.zeros((CLASSES, x.shape[1])), covariance=np.eye(x.shape[1]))
    model.categorical("y", logits=x @ w, observed=y.astype(float))
    return model.infer(), w


def main() -> None:
    """Print the lines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=16_000)
    draws = parser.parse_args().draws
    print(
        "n, d | CPU s, NUTS s | rms error of a mean, its Monte Carlo error (sds) | sd ratio | probability: rms, largest gap"
    )
    for n, d, seed in SIZES:
        x, y = data(n, d, seed)
        start = time.process_time()
        posterior, w = ours(x, y)
        middle = time.process_time()
        drawn, error = nuts(x, y, draws)
        theirs = time.process_time() - middle
        off = (posterior[w].mean - drawn.mean(0)) / drawn.std(0)
        ratio = posterior[w].sd / drawn.std(0)
        own = posterior.sample(4000, seed=1)["w"]
        few = drawn[:: max(1, draws // 4000)]
        gap = np.mean([probabilities(x @ v.T) for v in own], axis=0)
        gap = gap - np.mean([probabilities(x @ v.T) for v in few], axis=0)
        print(
            f"{n}, {d} | {middle - start:.1f}, {theirs:.1f} | {np.sqrt((off**2).mean()):.4f}, {np.sqrt((error**2).mean()):.4f} |"
            f" {ratio.mean():.3f} ({ratio.min():.3f} to {ratio.max():.3f})"
            f" | {np.sqrt((gap**2).mean()):.5f}, {np.abs(gap).max():.5f}"
        )


if __name__ == "__main__":
    main()
