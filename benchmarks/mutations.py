"""Break the paper's code on purpose, one line at a time, and see that a test notices.

Run ``python benchmarks/mutations.py`` (or with words that the names of some mutations contain). Each mutation is applied to a
copy of the tree, and the tests that ought to catch it, which have to pass without it, are run there; a mutation that they let pass
is a hole. Every text to be replaced has to stand exactly once in its file, so that a mutation cannot silently do nothing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]


class Mutation(NamedTuple):
    """A line, what it becomes, and the tests that must fail then."""

    name: str
    file: str  # below src/heliograph
    old: str
    new: str
    tests: tuple[str, ...]


KJIT, JIT = "tests/operators/test_kjit.py", "tests/operators/test_jit.py"
SEQUENCES, PUBLISHED = "tests/paper/test_sequences.py", "tests/paper/test_published.py"
KERNELS = ("tests/kernels",)
EXP1, EXP2, EXP4 = (f"tests/paper/test_exp{k}.py" for k in (1, 2, 4))
SAMPLER = f"{EXP1}::test_the_quick_sampler_is_the_general_oracle_within_their_errors"
LABELS = f"{EXP1}::test_sampled_labels_are_drawn_and_as_noisy_as_they_say"
ERRORS = f"{EXP1}::test_errors_are_the_kl_from_the_label_to_the_prediction_and_not_the_other_way"
MUTATIONS = (
    # the operator
    Mutation(
        "feature decay",
        "kernels/features.py",
        "out *= np.exp(decay.astype(dtype, copy=False))",
        "out *= np.exp(0.5 * decay.astype(dtype, copy=False))",
        KERNELS,
    ),
    Mutation(
        "widths",
        "kernels/widths.py",
        "    variance = (rows.variance * present).sum(0) / count\n",
        "    variance = 2 * (rows.variance * present).sum(0) / count\n",
        KERNELS,
    ),
    Mutation(
        "median pairs",
        "kernels/widths.py",
        "median = float(np.median(squared_distances(",
        "median = float(np.mean(squared_distances(",
        KERNELS,
    ),
    Mutation(
        "noise",
        "operators/kjit/kernel_learner.py",
        "variances.append(variance + self.noise)",
        "variances.append(variance)",
        (KJIT, JIT),
    ),
    Mutation(
        "any or all",
        "operators/kjit/just_in_time.py",
        "np.asarray(self.threshold)).any(axis=1)",
        "np.asarray(self.threshold)).all(axis=1)",
        (JIT,),
    ),
    Mutation(
        "minibatch",
        "operators/kjit/just_in_time.py",
        "direction.n_waiting < self.minibatch)",
        "direction.n_waiting < self.minibatch // 2)",
        (JIT,),
    ),
    Mutation(
        "message after asking",
        "operators/kjit/call.py",
        "self._keep(rows, self._settled(answer.beliefs[self.to] / self.cavity[rows], failed))",
        "self._keep(rows, self.cavity[rows].as_uniform())",
        (JIT,),
    ),
    Mutation(
        "leverage",
        "regression/ridge.py",
        "return residual / (s.free + (s.left**2) @ shrink)[:, None]",
        "return residual",
        ("tests/regression/test_ridge.py",),
    ),
    Mutation(
        "target", "operators/kjit/kernel_learner.py", '"target": "statistics",', '"target": "log",', (KJIT, PUBLISHED)
    ),
    Mutation(
        "order",
        "operators/kjit/call.py",
        "certain = int(np.argmax(doubtful)) if doubtful.any() else len(some)",
        "certain = int(len(some) - 1 - np.argmax(doubtful[::-1])) if doubtful.any() else len(some)",
        (JIT,),
    ),
    Mutation(
        "order of the text's column",
        "operators/kjit/kernel_learner.py",
        '        "target": "statistics",\n        "embedding": "exact",\n        "gamma_factor": 1.0,\n        "features": "one",\n'
        '        "improper": "engine",\n        "order": "in turn",',
        '        "target": "statistics",\n        "embedding": "exact",\n        "gamma_factor": 1.0,\n        "features": "one",\n'
        '        "improper": "engine",\n        "order": "worst first",',
        (PUBLISHED,),
    ),
    Mutation("improper policy", "operators/kjit/just_in_time.py", "good &= (belief / cavity).proper", "pass", (JIT,)),
    # batch learning
    Mutation(
        "weights of the sampler",
        "paper/batch/messages.py",
        "log_w = 0.5 * x**2  # one over",
        "log_w = 0 * x**2  # one over",
        (SAMPLER,),
    ),
    Mutation("sampled labels", "paper/batch/messages.py", "    if particles:\n", "    if not particles:\n", (LABELS,)),
    Mutation(
        "particles of the labels",
        "paper/batch/messages.py",
        "sampled_beliefs(np.random.default_rng([seed, 77]), incoming, particles)",
        "sampled_beliefs(np.random.default_rng([seed, 77]), incoming, 4000)",
        (LABELS,),
    ),
    Mutation(
        "KL of experiment 1", "paper/batch/messages.py", "truth.kl(prediction)", "prediction.kl(truth)", (ERRORS,)
    ),
    Mutation("noise of experiment 2", "paper/exp2/parts.py", "NOISE = 1e-4  #", "NOISE = 1e-3  #", (EXP2,)),
    # sequences
    Mutation(
        "oracle of experiment 3",
        "paper/sequences/logistic.py",
        'return {"operator": Kjit(**given), "oracle": answering}',
        'return {"operator": Kjit(**given), "oracle": "quadrature"}',
        (SEQUENCES,),
    ),
    Mutation(
        "proposal",
        "paper/sequences/logistic.py",
        "PAPER_PROPOSAL = (0.0, 200.0)",
        "PAPER_PROPOSAL = (0.0, 100.0)",
        (SEQUENCES,),
    ),
    Mutation(
        "particles",
        "paper/sequences/parts.py",
        'own = {**shared, "method": method, "seed": seed}',
        'own = {**shared, "method": method, "seed": seed, "particles": 20_000}',
        (SEQUENCES,),
    ),
    Mutation("new w", "paper/sequences/logistic.py", "n_test=n_test, w=w)", "n_test=n_test)", (SEQUENCES,)),
    Mutation(
        "label",
        "paper/sequences/logistic.py",
        "drawn.X_test, drawn.bayes_label))",
        "drawn.X_test, drawn.y_test))",
        (SEQUENCES,),
    ),
    Mutation(
        "KL of the sequences",
        "paper/sequences/logistic.py",
        "float(exact.kl(belief))",
        "float(belief.kl(exact))",
        (SEQUENCES,),
    ),
    Mutation("thresholds", "paper/columns.py", '"threshold": -8.95}', '"threshold": -8.5}', (PUBLISHED,)),
    Mutation(
        "output of the trace",
        "paper/sequences/logistic.py",
        "call.log_variance[:, 0]",
        "call.log_variance.min(axis=1)",
        (SEQUENCES,),
    ),
    # experiment 4, and what stands beside
    Mutation("counts of experiment 4", "paper/exp4/parts.py", "int(so_far[k - 1])", "int(so_far[k - 2])", (EXP4,)),
    Mutation(
        "KL of experiment 4", "paper/exp4/parts.py", "exact.kl(found), np.inf)", "found.kl(exact), np.inf)", (EXP4,)
    ),
    Mutation("a printed number", "paper/published.toml", "value = -8.97,", "value = -8.79,", (PUBLISHED,)),
    Mutation(
        "beside our own",
        "paper/columns.py",
        'Column("kjit (house)", "house", False,',
        'Column("kjit (house)", "house", True,',
        (PUBLISHED,),
    ),
    Mutation(
        "markup",
        "paper/report/page.py",
        "Environment(autoescape=True,",
        "Environment(autoescape=False,",
        ("tests/paper/report/test_page.py",),
    ),
)


def copy_of(folder: Path) -> None:
    """What the tests need."""
    for name in ("src", "tests", "docs", "benchmarks"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "figures"))
    for name in ("pyproject.toml", "README.md", "CHANGELOG.md", "CONTRIBUTING.md"):
        shutil.copy(ROOT / name, folder / name)


def caught_by(folder: Path, mutation: Mutation) -> tuple[bool, str]:
    """Whether a test fails with the mutation, and which one first."""
    path = folder / "src" / "heliograph" / mutation.file
    text = path.read_text(encoding="utf-8")
    assert text.count(mutation.old) == 1, (
        f"{mutation.name}: the text stands {text.count(mutation.old)} times in {mutation.file}"
    )
    path.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
    try:
        return failure(folder, mutation.name, mutation.tests)
    finally:
        path.write_text(text, encoding="utf-8")


def failure(folder: Path, name: str, tests: tuple[str, ...]) -> tuple[bool, str]:
    """Whether one of the tests fails, and which one first."""
    shared = os.environ.get("HELIOGRAPH_SHARED", str(ROOT.parent / "shared"))
    env = {**os.environ, "PYTHONPATH": str(folder / "src"), "OMP_NUM_THREADS": "1", "HELIOGRAPH_SHARED": shared}
    command = [sys.executable, "-W", "error", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=1800)
    first = next((line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))), "")
    if done.returncode not in (0, 1):
        raise SystemExit(f"{name}: the tests did not run\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.returncode == 1 and bool(first), first.split(" - ")[0].removeprefix("FAILED ")


def main() -> None:
    wanted = [m for m in MUTATIONS if not sys.argv[1:] or any(word in m.name for word in sys.argv[1:])]
    survived = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_of(folder)
        broken, first = failure(folder, "nothing changed", tuple(sorted({t for m in wanted for t in m.tests})))
        if broken:
            raise SystemExit(f"{first} fails with nothing changed, so that it would catch anything")
        for mutation in wanted:
            start = time.perf_counter()
            caught, first = caught_by(folder, mutation)
            survived += [] if caught else [mutation.name]
            print(
                f"{'caught  ' if caught else 'SURVIVED'} {mutation.name:28s} {time.perf_counter() - start:5.1f} s  {first}",
                flush=True,
            )
    print(
        f"{len(wanted) - len(survived)} of {len(wanted)} caught" + (f"; not: {', '.join(survived)}" if survived else "")
    )
    raise SystemExit(bool(survived))


if __name__ == "__main__":
    main()
