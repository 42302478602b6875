"""Hyper-parameters integrated over EP's evidence beside NumPyro's NUTS, on twelve models.

``python -m benchmarks.bench_nested`` runs all of them at the full length (2 chains of 1,000 + 4,000), NUTS twice, of which the
second run is timed. ``--draws 1000 --warmup 500`` is a quick look, and ``--models schools volatility`` chooses. Means are compared
in standard deviations and standard deviations as ratios; the last columns are three standard errors of
NUTS's own means (in standard deviations) and standard deviations (relative), the largest of all latent variables.
Times are seconds of the processor on one thread, for both, so that other work on the machine counts little.
"""

import argparse
import os
import time
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import numpy as np

from benchmarks.nested_models import LISTED, OWN


def by_nuts(model, names, warmup, draws, seed):
    """Draws by name, seconds of the second run, and the least effective sample size."""
    import jax
    import numpyro

    numpyro.enable_x64()  # a Cholesky factor of a smooth kernel does not exist in single precision
    kernel = numpyro.infer.NUTS(model, target_accept_prob=0.9)
    mcmc = numpyro.infer.MCMC(
        kernel, num_warmup=warmup, num_samples=draws, num_chains=2, chain_method="sequential", progress_bar=False
    )
    mcmc.run(jax.random.PRNGKey(seed))
    start = time.process_time()
    mcmc.run(jax.random.PRNGKey(seed + 1))
    found = {k: np.asarray(v) for k, v in mcmc.get_samples(group_by_chain=True).items() if k in names}
    seconds = time.process_time() - start
    size = min(float(np.nanmin(numpyro.diagnostics.effective_sample_size(v))) for v in found.values())
    noise = {k: sd_noise(v, numpyro.diagnostics.effective_sample_size) for k, v in found.items()}
    return {k: v.reshape(-1, *v.shape[2:]) for k, v in found.items()}, seconds, size, noise


def sd_noise(draws, size_of):
    """The standard error of every standard deviation, relative to it."""
    squares = (draws - draws.mean(axis=(0, 1))) ** 2
    variance = squares.mean(axis=(0, 1))
    spread = squares.var(axis=(0, 1)) / np.maximum(variance, 1e-300) ** 2
    return 0.5 * np.sqrt(spread / size_of(squares))


def compared(posterior, draws, names):
    """Largest mean error in standard deviations, and the range of ratios of standard deviations."""
    z, ratio = [], []
    for name in names:
        mean, sd = draws[name].mean(axis=0), draws[name].std(axis=0)
        free = sd > 1e-5  # a correlation matrix has ones on its diagonal
        z.append(np.abs(np.ravel(posterior[name].mean - mean)[np.ravel(free)] / sd[free].ravel()))
        ratio.append(np.ravel(posterior[name].sd)[np.ravel(free)] / sd[free].ravel())
    z, ratio = np.concatenate(z), np.concatenate(ratio)
    return z.max(), ratio.min(), ratio.mean(), ratio.max()


def row(make, options):
    """One model: a line of the table."""
    ours, theirs, latent, theta = make(np.random.default_rng(options.seed))
    model = ours()
    model.infer()  # both are timed the second time
    start = time.process_time()
    posterior = ours().infer()
    seconds = time.process_time() - start
    draws, by_theirs, size, noise = by_nuts(theirs, {*latent, *theta}, options.warmup, options.draws, options.seed)
    a, b = compared(posterior, draws, latent), compared(posterior, draws, theta)
    return (
        f"| {make.__name__} | {posterior.integration.u.shape[1]} | {a[0]:.3f} | {a[2]:.3f} [{a[1]:.3f}-{a[3]:.3f}] | {b[0]:.3f} | "
        f"{b[1]:.3f}-{b[3]:.3f} | {posterior.integration.n_evaluations} | {seconds:.2f} | {by_theirs:.1f} | "
        f"{by_theirs / seconds:.1f} | {3 / np.sqrt(size):.3f} | {3 * max(np.nanmax(noise[k]) for k in latent):.3f} |"
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=4000)
    parser.add_argument("--warmup", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--models", nargs="*", default=None)
    options = parser.parse_args()
    print(
        "| model | d | latent mean | latent sd | theta mean | theta sd | runs | s | NUTS s | times | noise | sd noise |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for make in (*LISTED, *OWN):
        if options.models is None or make.__name__ in options.models:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                print(row(make, options), flush=True)


if __name__ == "__main__":
    main()
