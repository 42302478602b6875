"""Every Python block of the README and the docs runs as it stands."""

import re
from pathlib import Path

import matplotlib
import pytest

matplotlib.use("Agg")
ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
# the examples of the reference run one by one, see test_reference_page
WITH_CODE = [p for p in PAGES if p.name != "reference.md" and p.exists() and BLOCK.search(p.read_text())]


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda p: str(p.relative_to(ROOT)))
def test_the_blocks_of_a_page_run_in_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scope = {"__name__": "__example__"}
    for code in BLOCK.findall(page.read_text()):
        exec(compile(code, str(page), "exec"), scope)
