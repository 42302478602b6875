"""The digest of a part's code: it changes with what can change a number, and with nothing else."""

import pytest

from heliograph.paper.running import fingerprint
from heliograph.paper.running.fingerprint import code_behind, modules_behind

CODE = {
    "__init__.py": "",
    "work.py": '"""Work."""\n\n\ndef work():\n    from heliograph.inner import tool\n\n    return tool.twice(2)\n',
    "inner/__init__.py": "",
    "inner/tool.py": 'def twice(x):\n    """Two times x."""\n    return 2 * x\n',
    "other.py": "import heliograph.work\n",
}


@pytest.fixture
def tree(tmp_path, monkeypatch):
    def write(**changed):
        for name, text in {**CODE, **{k.replace("__", "/") + ".py": v for k, v in changed.items()}}.items():
            path = tmp_path / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        code_behind.cache_clear()
        fingerprint._read.cache_clear()
        return code_behind("heliograph.work")

    monkeypatch.setattr(fingerprint, "_ROOT", tmp_path)
    yield write
    monkeypatch.undo()
    code_behind.cache_clear()
    fingerprint._read.cache_clear()


def test_code_that_is_reached_counts_and_other_code_does_not(tree):
    before = tree()
    assert modules_behind("heliograph.work") == {"heliograph.work", "heliograph.inner", "heliograph.inner.tool"}
    assert tree(inner__tool="def twice(x):\n    return 3 * x\n") != before
    assert tree(other="import numpy\n") == before


def test_comments_docstrings_and_line_breaks_do_not_count(tree):
    before = tree()
    assert tree(inner__tool="# why\ndef twice(x):\n    return (\n        2 * x  # doubled\n    )\n") == before


def test_code_outside_the_package_has_no_digest_of_its_own():
    assert code_behind("json") == code_behind("nowhere.at.all")
    assert modules_behind("json") == set()
