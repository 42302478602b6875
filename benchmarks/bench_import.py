"""The time of `import heliograph`, beside that of another commit, in CPU seconds of fresh processes.

    python benchmarks/bench_import.py 0bfede3 --runs 20

Both are run in turn, from their sources with bytecode, as an installed package has it: the first run of each only writes it. Two
lines more say what Python and numpy take alone.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]


def seconds(source: Path, code: str, cache: str) -> float:
    """CPU seconds of one process, user and system."""
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    env |= {"PYTHONPATH": str(source), "PYTHONPYCACHEPREFIX": cache}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], env=env, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print the least and the median time of each, and the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commit", help="what to compare with")
    parser.add_argument("--runs", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(
            ["git", "archive", options.commit, "src"], cwd=HERE, check=True, capture_output=True
        ).stdout
        with tarfile.open(fileobj=BytesIO(archive)) as files:
            files.extractall(folder, filter="data")
        before, now = Path(folder) / "src", HERE / "src"
        cases = {
            "python": (now, "pass"),
            "numpy": (now, "import numpy"),
            "before": (before, "import heliograph"),
            "now": (now, "import heliograph"),
        }
        times: dict[str, list[float]] = {name: [] for name in cases}
        for k in range(options.runs + 1):
            for name, (source, code) in cases.items():
                spent = seconds(source, code, f"{folder}/cache")
                if k:
                    times[name].append(spent)
    for name, spent in times.items():
        print(f"{name:7} least {min(spent):.3f} median {statistics.median(spent):.3f}")
    least, middle = (f(times["now"]) / f(times["before"]) for f in (min, statistics.median))
    print(f"now / before: least {least:.2f}, median {middle:.2f}")


if __name__ == "__main__":
    main()
