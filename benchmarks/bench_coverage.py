"""Does `error_estimate` cover what learned messages did to the posterior? Regressions through black boxes against exact EP.

    python benchmarks/bench_coverage.py                       # about 200 runs on two processes
    python benchmarks/bench_coverage.py --quick               # a dozen small ones
    python benchmarks/bench_coverage.py --factors exp,tanh --sizes 2000,40000 --labels sampling --seeds 3
    python benchmarks/bench_coverage.py --log runs.jsonl ...  # every run is appended to a file as it ends
    python benchmarks/bench_coverage.py --tables runs.jsonl   # only the tables of what such files hold

Each run is a regression: n rows, d columns, a black box on ``X @ w``, data on its output. What was realised is
KL(exact || learned) of the posterior of the coefficients, where exact is EP with the same moments by sums over even nodes, written
here and owing nothing to the package: its own error is the KL to the same EP with half as many nodes more, printed as
`exact to`. The table gives by factor, size and kind of label: the share of runs whose estimate covers what was realised
(goal: 95 %), the median of estimate over realised, the worst shortfall, and how often the tolerance itself was kept.

Ratio and coverage are of all runs. Both numbers count as at least `RESOLVED`, a billionth of the tolerance: a run ends when a
sweep moves the beliefs by less than 1e-12 nats. Runs in which exact EP itself has no answer (a covariance that is not positive
definite) are counted apart.
"""

import argparse
import json
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import numpy as np
from scipy.linalg import block_diag
from scipy.special import expit, log_expit, log_ndtr, ndtr
from threadpoolctl import threadpool_limits

import heliograph as hg

VARIANCE = 0.25  # of Gaussian data on an output
SPREAD = 1.5  # standard deviation of X @ w under the truth
SETTLED = hg.changed_less_than(1e-12) | hg.after(60)  # what is compared are messages, not how far EP was from its end
RESOLVED = (
    1e-12  # nats that no comparison resolves: a KL is a difference of numbers near 1, and a run ends with such a sweep
)
CHUNK = 16_384  # rows whose nodes are laid out together


# ---- the factors: a black box, how data come about, and the log likelihood of z that it implies ----------------------
def logistic():
    @hg.factor(output=hg.Beta)
    def box(z):
        return 1 / (1 + np.exp(-z))

    def draw(rng, z):
        return (rng.random(len(z)) < expit(z)).astype(float)

    def observe(model, out, y):
        model.bernoulli("y", out, observed=y)

    return box, draw, observe, lambda y, z: log_expit((2 * y - 1) * z)


def phi():
    @hg.factor(output=hg.Beta)
    def box(z):
        return np.clip(ndtr(z), 1e-300, 1 - 1e-16)

    def draw(rng, z):
        return (rng.random(len(z)) < ndtr(z)).astype(float)

    def observe(model, out, y):
        model.bernoulli("y", out, observed=y)

    return box, draw, observe, lambda y, z: log_ndtr((2 * y - 1) * z)


def _counts(function, name):
    @hg.factor(output=hg.Gamma, name=name)
    def box(z):
        return function(z)

    def draw(rng, z):
        return rng.poisson(function(z)).astype(float)

    def observe(model, out, y):
        model.poisson("y", out, observed=y)

    def log_likelihood(y, z):
        rate = function(z)
        return y * np.log(rate) - rate

    return box, draw, observe, log_likelihood


def exp():
    return _counts(lambda z: np.exp(np.minimum(z, 50.0)), "exp")


def softplus():
    return _counts(lambda z: np.logaddexp(0.0, z) + 1e-12, "softplus")


def _numbers(function, name):
    @hg.factor(output=hg.Gaussian, name=name)
    def box(z):
        return function(z)

    def draw(rng, z):
        return function(z) + np.sqrt(VARIANCE) * rng.standard_normal(len(z))

    def observe(model, out, y):
        model.gaussian("y", out, variance=VARIANCE, observed=y)

    return box, draw, observe, lambda y, z: -0.5 * (y - function(z)) ** 2 / VARIANCE


def asinh():
    return _numbers(lambda z: np.arcsinh(3 * z), "asinh")


def tanh():
    return _numbers(np.tanh, "tanh")


def threshold():
    @hg.factor(output=hg.Bernoulli)
    def box(z, rng):
        return (z + rng.logistic(size=z.shape) > 0).astype(float)

    def draw(rng, z):
        return (rng.random(len(z)) < expit(z)).astype(float)

    def observe(model, out, y):
        model.observe(out, y)

    return box, draw, observe, lambda y, z: log_expit((2 * y - 1) * z)


def pair():
    @hg.factor(output=hg.Gaussian)
    def box(a, b):
        return a + np.tanh(b)

    def draw(rng, a, b):
        return a + np.tanh(b) + np.sqrt(VARIANCE) * rng.standard_normal(len(a))

    def observe(model, out, y):
        model.gaussian("y", out, variance=VARIANCE, observed=y)

    return box, draw, observe, lambda y, a, b: -0.5 * (y - a - np.tanh(b)) ** 2 / VARIANCE


FACTORS = {f.__name__: f for f in (logistic, phi, exp, softplus, asinh, tanh, threshold, pair)}


# ---- exact EP ---------------------------------------------------------------------------------------------------------
def _tilted(log_likelihood, y, mean, covariance, step):
    """Moments of ``N(z; mean, covariance) L(z)`` of each row, by sums over even nodes around a rough mode."""
    n, k = mean.shape
    line = np.arange(-8.5, 8.5 + step / 2, step)
    nodes = np.stack([g.ravel() for g in np.meshgrid(*[line] * k, indexing="ij")])  # (k, N)
    means, covariances = np.empty_like(mean), np.empty_like(covariance)
    rows = max(1, CHUNK * 64 // nodes.size)
    for start in range(0, n, rows):
        part = slice(start, start + rows)
        inverse = np.linalg.inv(covariance[part])
        centre, root = mean[part], np.linalg.cholesky(covariance[part])
        for _ in range(2):  # once around the cavity, then around what that found
            z = centre[..., None] + root @ nodes
            gap = z - mean[part, :, None]
            log_w = log_likelihood(y[part, None], *np.swapaxes(z, 0, 1)) - 0.5 * (gap * (inverse @ gap)).sum(axis=1)
            w = np.exp(log_w - log_w.max(axis=1, keepdims=True))
            w /= w.sum(axis=1, keepdims=True)
            centre = np.einsum("rn,rkn->rk", w, z)
            gap = z - centre[..., None]
            spread = (w[:, None] * gap) @ np.swapaxes(gap, 1, 2)
            root = np.linalg.cholesky(spread)
        means[part], covariances[part] = centre, spread
    return means, covariances


def _marginals(designs, mean, covariance):
    """Means ``(n, k)`` and covariances ``(n, k, k)`` of what the k designs make of joint coefficients."""
    d, k = designs[0].shape[1], len(designs)
    m = np.stack([x @ mean[j * d : (j + 1) * d] for j, x in enumerate(designs)], axis=1)
    v = np.empty((len(m), k, k))
    for i, x in enumerate(designs):
        for j, z in enumerate(designs):
            v[:, i, j] = ((x @ covariance[i * d : (i + 1) * d, j * d : (j + 1) * d]) * z).sum(axis=1)
    return m, v


def exact_ep(log_likelihood, y, designs, start, step=0.5, sweeps=60, settled=1e-13):
    """EP with a standard normal prior on joint coefficients, from ``start`` (their mean and covariance).

    The inputs of one row are joint, as they are in the package (docs/decisions/0054). Gives mean and covariance, and the
    last change in nats.
    """
    (mean, covariance), sites, change = start, None, np.inf
    times = lambda a, b: np.einsum("nij,nj->ni", a, b)  # noqa: E731
    for _ in range(sweeps):
        m, v = _marginals(designs, mean, covariance)
        if sites is not None:  # a first guess of the sites: as if each saw the whole belief
            inverse = np.linalg.inv(v)
            v = np.linalg.inv(inverse - sites[1])
            m = times(v, times(inverse, m) - sites[0])
        means, covariances = _tilted(log_likelihood, y, m, v, step)
        after, before = np.linalg.inv(covariances), np.linalg.inv(v)
        r, t = sites = times(after, means) - times(before, m), after - before
        shift = np.concatenate([x.T @ r[:, j] for j, x in enumerate(designs)])
        precision = np.block(
            [[(x * t[:, i, j, None]).T @ z for j, z in enumerate(designs)] for i, x in enumerate(designs)]
        )
        new = np.linalg.inv(np.eye(len(shift)) + precision)
        new = 0.5 * (new + new.T)
        change = kl((new @ shift, new), (mean, covariance))
        mean, covariance = new @ shift, new
        if change < settled:
            break
    return (mean, covariance), change


def kl(a, b):
    """KL in nats between two Gaussians, each a mean and a covariance."""
    (m, c), (n, e) = a, b
    inverse = np.linalg.inv(e)
    ratio = inverse @ c
    off = n - m
    return 0.5 * float(np.trace(ratio) - len(m) + off @ inverse @ off - np.linalg.slogdet(ratio)[1])


# ---- one run ----------------------------------------------------------------------------------------------------------
def run(task):
    """Realised and estimated error of one regression."""
    name, n, d, tolerance, labels, seed = task
    rng = np.random.default_rng([seed, n, d])
    box, draw, observe, log_likelihood = FACTORS[name]()
    n_inputs = 2 if name == "pair" else 1
    scale = 0.6 if name == "exp" else SPREAD
    truths = [scale / np.sqrt(d) * rng.standard_normal(d) for _ in range(n_inputs)]
    designs = [rng.standard_normal((n, d)) for _ in range(n_inputs)]
    y = draw(rng, *[x @ w for x, w in zip(designs, truths, strict=True)])
    model = hg.Model()
    ws = [model.gaussian(f"w{k}", np.zeros(d), covariance=np.eye(d)) for k in range(n_inputs)]
    observe(model, box(*[x @ w for x, w in zip(designs, ws, strict=True)]), y)
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught, threadpool_limits(1):
        warnings.simplefilter("always")
        posterior = model.infer(
            oracle={"quadrature": "quadrature", "sampling": "importance", "default": None}[labels],
            tolerance=tolerance,
            seed=seed,
            progress=False,
            improper="allow",  # as exact EP does here
            stop=SETTLED,
        )
    seconds = time.perf_counter() - started
    learned = [
        (np.asarray(posterior[w].mean).reshape(-1), np.asarray(posterior[w].covariance).reshape(d, d)) for w in ws
    ]
    started = time.perf_counter()
    joint = np.concatenate([m for m, _ in learned]), block_diag(*[c for _, c in learned])
    with threadpool_limits(1):
        exact, change = exact_ep(log_likelihood, y, designs, joint)
        finer = exact
        if n <= 10_000 and n_inputs == 1:  # there the integrands are widest, and a second run costs little
            finer, _ = exact_ep(log_likelihood, y, designs, exact, step=0.35)
    each = [slice(k * d, (k + 1) * d) for k in range(n_inputs)]
    return {
        "task": task,
        "realised": sum(kl((exact[0][k], exact[1][k, k]), b) for k, b in zip(each, learned, strict=True)),
        "estimate": posterior.error_estimate,
        "exact": max(change, kl(exact, finer)),
        "converged": posterior.converged,
        "asked": posterior.trace.n_asked,
        "sweeps": posterior.n_sweeps,
        "seconds": seconds,
        "check": time.perf_counter() - started,
        "warned": sorted({w.category.__name__ for w in caught}),
    }


def tasks_of(options):
    """The runs: every factor with every size and kind of label, columns and tolerances in turn."""
    tasks = []
    for name in options.factors:
        for n in options.sizes:
            if name == "pair" and n > 10_000:
                n = 4_000 if n < 100_000 else 8_000  # a plane of nodes for every row
            for labels in options.labels:
                if labels == "quadrature" and name == "threshold":
                    continue  # quadrature wants a deterministic function
                for seed in range(options.seeds if n < 100_000 else max(1, options.seeds // 2)):
                    d = (20, 5)[seed % 2] if options.columns is None else options.columns
                    tolerance = (1e-3, 1e-2)[seed // 2 % 2] if options.tolerance is None else options.tolerance
                    tasks.append((name, n, d, tolerance, labels, options.first + seed))
    return sorted(tasks, key=lambda t: (t[5], -t[1]))  # seed by seed, so that a run that is cut off has seen all kinds


def table(results):
    """Coverage by factor, size and labels."""
    lines = [
        f"{'':24}{'runs':>5}{'covered':>9}{'resolved':>10}{'ratio':>8}{'90 %':>8}{'worst short':>13}{'kept':>7}{'settled':>9}"
        f"{'asked':>8}"
    ]
    for title, key in (("factor", 0), ("size", 1), ("labels", 4), ("columns", 2), ("tolerance", 3)):
        for value in sorted({r["task"][key] for r in results if np.isfinite(r["realised"])}, key=str):
            lines.append(_line(f"{title} {value}", [r for r in results if r["task"][key] == value]))
    without = sum(not np.isfinite(r["realised"]) for r in results)
    return "\n".join([*lines, _line("all", results), f"without an answer of exact EP: {without}"])


def _line(title, rows):
    rows = [r for r in rows if np.isfinite(r["realised"])]
    tolerance = np.array([r["task"][3] for r in rows])
    realised = np.maximum([r["realised"] for r in rows], RESOLVED)
    ratio = np.maximum([r["estimate"] for r in rows], RESOLVED) / realised
    return (
        f"{title:24}{len(rows):5}{100 * np.mean(ratio >= 1):8.1f}%{np.sum(realised > RESOLVED):10}{np.median(ratio):8.3g}"
        f"{np.quantile(ratio, 0.9):8.3g}{1 / ratio.min():13.2g}{100 * np.mean(realised <= tolerance):6.1f}%"
        f"{100 * np.mean([r['converged'] for r in rows]):8.1f}%{np.mean([r['asked'] for r in rows]):8.0f}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--factors", default=",".join(FACTORS))
    parser.add_argument("--sizes", default="2000,10000,40000,200000")
    parser.add_argument("--labels", default="default,sampling,quadrature")
    parser.add_argument("--columns", type=int)
    parser.add_argument("--tolerance", type=float)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="2,000 rows, one seed")
    parser.add_argument("--log", type=Path, help="append each run to this file, a line of JSON")
    parser.add_argument("--tables", type=Path, nargs="+", help="run nothing: the tables of the runs in these files")
    options = parser.parse_args()
    if options.tables:
        print(table([json.loads(text) for path in options.tables for text in path.read_text().splitlines()]))
        return
    options.factors = options.factors.split(",")
    options.sizes = [2000] if options.quick else [int(float(s)) for s in options.sizes.split(",")]
    options.labels = options.labels.split(",")
    options.seeds = 1 if options.quick else options.seeds
    started, results = time.perf_counter(), []
    tasks = tasks_of(options)
    print(f"{'factor':10}{'n':>8}{'d':>4}{'tol':>7} {'labels':11}{'realised':>10}{'estimate':>10}{'ratio':>8}{'exact to':>10}"
          f"{'asked':>7}{'sweeps':>7}{'s':>7}{'check':>7}")  # fmt: skip
    with ProcessPoolExecutor(options.processes) as pool:
        for done in as_completed([pool.submit(run, task) for task in tasks]):
            r = done.result()
            results.append(r)
            if options.log:
                with options.log.open("a") as log:
                    log.write(json.dumps(r) + "\n")
            name, n, d, tolerance, labels, _ = r["task"]
            print(f"{name:10}{n:8}{d:4}{tolerance:7.0e} {labels:11}{r['realised']:10.1e}{r['estimate']:10.1e}"
                  f"{r['estimate'] / max(r['realised'], 1e-15):8.1f}{r['exact']:10.0e}{r['asked']:7}{r['sweeps']:7}"
                  f"{r['seconds']:7.1f}{r['check']:7.1f} {'' if r['converged'] else 'NOT CONVERGED '}"
                  f"{' '.join(w for w in r['warned'])}", flush=True)  # fmt: skip
    print(f"\n{table(results)}\n{time.perf_counter() - started:.0f} seconds")


if __name__ == "__main__":
    main()
