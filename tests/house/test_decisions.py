"""Decisions: numbered without gaps, titled by their number, and there when cited."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "decisions").glob("*.md"))
NUMBERS = [p.name[:4] for p in PAGES]
TEXTS = [
    p for room in ("src", "docs", "tests", "benchmarks") for p in (ROOT / room).rglob("*") if p.suffix in (".py", ".md")
]
TEXTS += [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"]
CITED = re.compile(r"\bdecisions?[/ ](\d{4})(-[a-z0-9-]+\.md)?")


def test_numbers_have_no_gaps():
    assert [f"{k:04d}" for k in range(1, len(PAGES) + 1)] == NUMBERS


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.name)
def test_a_page_is_titled_by_its_number(path):
    assert path.read_text().startswith(f"# {path.name[:4]} ")


def test_every_decision_that_is_cited_exists():
    names = {p.name for p in PAGES}
    wrong = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in TEXTS
        for match in CITED.finditer(path.read_text())
        if match[1] not in NUMBERS or (match[2] and match[1] + match[2] not in names)
    ]
    assert not wrong


def test_the_index_has_every_page_once_under_its_title():
    index = " ".join((ROOT / "docs" / "decisions.md").read_text().split())
    for path in PAGES:
        title = path.read_text().splitlines()[0].removeprefix(f"# {path.name[:4]} ")
        assert index.count(f"- [{path.name[:4]}](decisions/{path.name}) {title}") == 1, "add it to docs/decisions.md"
