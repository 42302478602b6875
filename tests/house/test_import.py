"""What `import heliograph` loads: numpy and parts of scipy, and nothing that only some users need."""

import subprocess
import sys

HEAVY = ("sklearn", "matplotlib", "scipy.stats", "rich", "typer", "pandas", "jinja2")


def test_importing_the_package_loads_no_heavy_library():
    code = f"import sys, heliograph; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
