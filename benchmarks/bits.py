"""Digests of many answers, to the last bit: run before and after a change that must not change any.

    python -m benchmarks.bits > before.txt        # about a minute
    ...
    python -m benchmarks.bits | diff before.txt -

One line per experiment (learned and kjit, seeds 0 and 1, quick size) and per kind of the truth machine's models, whose errors
against the truth are digested with every bit. Times are left out. Bits also depend on the machine, NumPy and BLAS.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from threadpoolctl import threadpool_limits

from benchmarks.truth.kinds import KINDS, make
from benchmarks.truth.verdict import judge

EXPERIMENTS = ("exp3", "exp4", "exp5")
_NOT_BITS = ("seconds", "machine", "parts", "commit", "version")


def digest(value: object) -> str:
    """The first digits of the hash of a JSON value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=repr).encode()).hexdigest()[:16]


def without_times(value: object) -> object:
    """A JSON value less what differs from run to run."""
    if isinstance(value, dict):
        return {k: without_times(v) for k, v in value.items() if not any(word in k for word in _NOT_BITS)}
    if isinstance(value, list):
        return [without_times(v) for v in value]
    return value


def experiment(name: str, seed: int) -> object:
    """The results of one experiment, by the command."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        methods = "learned,kjit (text),kjit (program)"
        command = ["reproduce", name, "--methods", methods, "--seed", str(seed), "--out", folder]
        program = "from heliograph.cli import app; app()"
        subprocess.run([sys.executable, "-c", program, *command, "--json", str(out)], check=True, capture_output=True)
        return without_times(json.loads(out.read_text()))


def main() -> None:
    """Print the digests."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=2, help="models of each kind of the truth machine")
    parser.add_argument("--no-experiments", action="store_true")
    options = parser.parse_args()
    with threadpool_limits(1):
        for kind in KINDS:
            for seed in range(options.seeds):
                found = judge(make(kind, seed))
                print(f"{kind} {seed}: {digest([found.verdict, found.errors])}", flush=True)
    for name in () if options.no_experiments else EXPERIMENTS:
        for seed in (0, 1):
            print(f"{name} {seed}: {digest(experiment(name, seed))}", flush=True)


if __name__ == "__main__":
    main()
