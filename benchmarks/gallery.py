"""The examples beside NumPyro: our seconds, NUTS's first and second run, and how far our posteriors are from its draws.

``python -m benchmarks.gallery [names]`` prints the table. ``--write`` keeps the means and deviations of long runs (10,000
draws) in ``tests/examples/nuts.json``, which the tests of the examples compare with, and the rows in
``docs/guide/gallery.md``. NumPyro is no dependency of the package.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.gallery_models import ROOT, data_of, example, models

STORED = ROOT / "tests" / "examples" / "nuts.json"
PAGE = ROOT / "docs" / "guide" / "gallery.md"
HEAD = "| example | ours, first s | second s | NUTS, first s | second s | mean off by | NUTS good to | sd ratio |"
RULE = "| --- | --- | --- | --- | --- | --- | --- | --- |"


def nuts(
    function: Callable[..., None], data: tuple[Any, ...], warmup: int, draws: int, seed: int, runs: int = 2
) -> tuple[dict[str, np.ndarray], list[float]]:
    """Draws, and the seconds of the first run (with compilation) and of a second one."""
    import jax
    from numpyro.infer import MCMC, NUTS

    seconds, found = [], {}
    sampler = MCMC(NUTS(function), num_warmup=warmup, num_samples=draws, progress_bar=False)
    for k in range(runs):
        start = time.perf_counter()
        sampler.run(jax.random.PRNGKey(seed + k), *data)
        found = {n: np.asarray(v, dtype=float) for n, v in sampler.get_samples().items()}
        seconds.append(time.perf_counter() - start)
    return found, seconds


def ours(name: str) -> tuple[Any, list[float]]:
    """Our posterior, and the seconds of two runs, the model's writing included (a script's data too)."""
    module, seconds, posterior = example(name), [], None
    data = data_of(module)
    for _ in range(2):
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if hasattr(module, "posterior"):
                posterior = example(name).posterior
            else:
                posterior = module.model(*data).infer(max_sweeps=200)
        seconds.append(time.perf_counter() - start)
    return posterior, seconds


def errors(posterior: Any, truth: dict[str, dict[str, Any]]) -> tuple[float, float, float]:
    """The largest error of a mean in deviations, and the least and largest ratio of deviations."""
    worst, low, high = 0.0, np.inf, 0.0
    for name, moments in truth.items():
        if name not in posterior:
            continue
        belief = posterior[name]
        mean, sd = np.ravel(moments["mean"]), np.ravel(moments["sd"])
        ratio = np.ravel(np.sqrt(belief.variance)) / sd
        worst = max(worst, float((np.abs(np.ravel(belief.mean) - mean) / sd).max()))
        low, high = min(low, float(ratio.min())), max(high, float(ratio.max()))
    return worst, low, high


def long_run(function: Callable[..., None], data: tuple[Any, ...]) -> dict[str, dict[str, Any]]:
    """Means and deviations of 10,000 draws, and the standard error of the worst mean, in deviations."""
    from numpyro.diagnostics import effective_sample_size

    draws, _ = nuts(function, data, 1000, 10_000, 7, runs=1)
    return {
        n: {
            "mean": v.mean(0).round(5).tolist(),
            "sd": v.std(0).round(5).tolist(),
            "error": round(float(np.min(effective_sample_size(v[None])) ** -0.5), 4),
        }
        for n, v in draws.items()
        if not n.startswith("white")
    }


def keep_row(row: str) -> None:
    """Put an example's row into the page, in the place of its last one; rows stand in the order of their names."""
    lines = PAGE.read_text().splitlines()
    top = lines.index(RULE) + 1
    end = next((k for k in range(top, len(lines)) if not lines[k].startswith("|")), len(lines))
    rows = {line.split("|")[1]: line for line in lines[top:end]} | {row.split("|")[1]: row}
    PAGE.write_text("\n".join([*lines[:top], *(rows[k] for k in sorted(rows)), *lines[end:]]) + "\n")


def compare(name: str, function: Callable[..., None], known: dict[str, Any], write: bool) -> str:
    """One row of the table; a long run first if its result is to be kept."""
    data = data_of(example(name))
    posterior, own = ours(name)
    _, theirs = nuts(function, data, 500, 1000, 0)
    if write:
        known[name] = long_run(function, data)
        STORED.write_text(json.dumps(known, indent=0) + "\n")
    truth = known.get(name, {})
    off, low, high = errors(posterior, truth)
    good = max((v["error"] for v in truth.values()), default=np.nan)
    link = f"[{name}](../../examples/{name}.py)"
    return (
        f"| {link} | {own[0]:.3f} | {own[1]:.3f} | {theirs[0]:.2f} | {theirs[1]:.2f} |"
        f" {off:.3f} | {good:.3f} | {low:.3f} to {high:.3f} |"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--write", action="store_true", help="keep long runs' moments, and the rows")
    args = parser.parse_args()
    known = json.loads(STORED.read_text()) if STORED.exists() else {}
    print(HEAD, RULE, sep="\n")
    import numpyro

    numpyro.enable_x64()
    for name, function in models().items():
        if not args.names or name in args.names:
            row = compare(name, function, known, args.write)
            print(row, flush=True)
            if args.write:
                keep_row(row)


if __name__ == "__main__":
    main()
