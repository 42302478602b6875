"""Run thousands of random models and print the verdicts: ``python -m benchmarks.truth --models 2000 --jobs 2``."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.truth.kinds import KINDS, SHARES, make
from benchmarks.truth.table import markdown, text
from benchmarks.truth.verdict import CRASHED, SILENT, Result, judge


def judged(job: tuple[str, int]) -> Result:
    """One model, in whatever process."""
    with threadpool_limits(1):
        return judge(make(*job))


def results(jobs: list[tuple[str, int]], n_workers: int) -> Iterator[Result]:
    """The verdicts in the order of the jobs."""
    if n_workers == 1:
        yield from map(judged, jobs)
        return
    with ProcessPoolExecutor(n_workers) as pool:
        yield from pool.map(judged, jobs, chunksize=4)


def chosen(kinds: list[str], n_models: int, seed: int) -> list[tuple[str, int]]:
    """That many models, in turn from every kind according to its share."""
    shares = np.array([SHARES.get(kind, 1.0) for kind in kinds])
    ends = np.floor(np.cumsum(shares) / shares.sum() * n_models + 1e-9).astype(int)
    counts = np.diff(ends, prepend=0)
    jobs = [(k / count, kind, seed + k) for kind, count in zip(kinds, counts, strict=True) for k in range(count)]
    return [(kind, s) for _, kind, s in sorted(jobs)]


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.truth", description=__doc__)
    parser.add_argument(
        "--models", type=int, default=2000, help="how many in all, spread over the kinds by their shares"
    )
    parser.add_argument("--seed", type=int, default=0, help="the first seed of every kind")
    parser.add_argument("--jobs", type=int, default=1, help="worker processes")
    parser.add_argument("--kind", action="append", choices=list(KINDS), help="only this kind (may be repeated)")
    parser.add_argument("--json", type=Path, help="write every verdict to this file")
    parser.add_argument("--markdown", type=Path, help="replace the tables in this page, for example docs/accuracy.md")
    parser.add_argument("--read", type=Path, help="run nothing: take the verdicts from a file that --json wrote")
    parser.add_argument("--show", action="store_true", help="print the models and stop (with --kind and --models 1)")
    parser.add_argument("--verbose", action="store_true", help="print what was said, and the errors, of every model")
    options = parser.parse_args()
    kinds = options.kind or list(KINDS)
    jobs = chosen(kinds, options.models, options.seed)
    if options.show:
        print(*(make(*job).description for job in jobs), sep="\n\n")
        return 0
    start, found = time.perf_counter(), []
    if options.read:
        found = [Result(**r) for r in json.loads(options.read.read_text())]
        jobs = []
    for k, r in enumerate(results(jobs, options.jobs), 1):
        found.append(r)
        if r.verdict in (SILENT, CRASHED):
            print(f"{r.verdict}: --kind '{r.kind}' --seed {r.seed}: {r.note}", flush=True)
        elif options.verbose:
            errors = ", ".join(f"{name} {error:.2g}" for name, error in r.errors.items())
            print(f"{r.verdict}: {r.kind} {r.seed} ({r.seconds:.1f} s): {errors} {r.said}", flush=True)
        if sys.stderr.isatty():
            print(f"\r{k} of {len(jobs)}, {time.perf_counter() - start:.0f} s", end="", file=sys.stderr)
    bad = [r for r in found if r.verdict in (SILENT, CRASHED)]
    for r in bad:
        print(f"\n{'=' * 100}\n{r.verdict}: {r.note}\n{make(r.kind, r.seed).description}")
    print("\n" + text(found))
    print(f"{len(found)} models in {time.perf_counter() - start:.0f} s, {len(bad)} silently wrong or crashed")
    if options.json:
        options.json.write_text(json.dumps([asdict(r) for r in found], indent=1))
    if options.markdown:
        markdown(options.markdown, found)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
