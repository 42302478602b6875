"""What `import heliograph` loads: numpy and parts of scipy, and nothing that only some users need."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

LIBRARIES = {"heliograph", "numpy", "scipy", "threadpoolctl"}  # what `import heliograph` may load besides Python's own
PARTS = {"linalg", "sparse", "special", "version"}  # and of scipy, whose private modules follow these
WINGS = {"cli", "paper"}  # what it may not load of this package


def test_importing_the_package_loads_numpy_and_three_parts_of_scipy():
    code = "import sys; before = set(sys.modules); import heliograph; print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    parts: dict[str, set[str]] = {}
    for name in done.stdout.split():
        library, _, rest = name.partition(".")
        parts.setdefault(library, set()).update(p for p in rest.split(".")[:1] if not p.startswith("_"))
    foreign = set(parts) - set(sys.stdlib_module_names) - {"cython_runtime"}  # of compiled modules, and no file
    assert {library for library in foreign if not library.startswith("_")} == LIBRARIES
    assert parts["scipy"] - {""} <= PARTS
    assert not parts["heliograph"] & WINGS


def test_a_model_with_a_learned_factor_runs_without_the_wing_of_the_paper(tmp_path):
    source = Path(__file__).resolve().parents[2] / "src" / "heliograph"
    shutil.copytree(source, tmp_path / "heliograph", ignore=shutil.ignore_patterns("paper", "cli.py", "__pycache__"))
    code = (
        "import numpy as np, heliograph as hg\n"
        "f = hg.factor(output=hg.Beta)(lambda z: 1 / (1 + np.exp(-z)))\n"
        "m = hg.Model(); w = m.gaussian('w', np.zeros(2), covariance=np.eye(2))\n"
        "m.bernoulli('y', f(np.eye(2)[[0, 1, 0]] @ w), observed=np.array([1, 0, 1]))\n"
        "print(m.infer(progress=False)['w'].mean.shape, hg.__file__)\n"
    )
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("(2,)") and str(tmp_path) in done.stdout
