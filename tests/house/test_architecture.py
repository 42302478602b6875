"""The pages that show the house name files that are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "heliograph"
ROOMS = ("graph", "engine")  # whose files are looked for; to grow as other rooms come to rest
PAGES = ["architecture.md", "adding_a_family.md", "adding_a_factor.md", "adding_an_operator.md"]


def _named(page: str) -> set[str]:
    """The files of these rooms that a page names, ``room/file.py``."""
    text = (ROOT / "docs" / page).read_text()
    return {
        path
        for path in re.findall(r"\b((?:\w+/)+\w+\.py)\b", text)
        if path.removeprefix("src/heliograph/").startswith(ROOMS)
    }


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_a_page_names_is_there(page):
    missing = [path for path in _named(page) if not (SOURCE / path.removeprefix("src/heliograph/")).exists()]
    assert not missing


def test_the_walk_of_a_message_has_at_most_twelve_steps():
    walk = (ROOT / "docs" / "architecture.md").read_text().split("## The walk of one message")[1]
    assert _named("architecture.md")
    assert 0 < len(re.findall(r"^\d+\. ", walk, re.MULTILINE)) <= 12


def test_every_file_in_the_repository_that_a_page_names_is_there():
    here = [
        p.relative_to(ROOT).as_posix()
        for room in ("src", "docs", "tests", "benchmarks", "examples")
        for p in (ROOT / room).rglob("*.py")
    ]
    named = {
        (page.relative_to(ROOT).as_posix(), path)
        for page in (ROOT / "docs").rglob("*.md")
        for path in re.findall(r"`([\w/.-]+\.py)`", page.read_text())
    }
    missing = [(page, path) for page, path in named if not any(f"/{p}".endswith(f"/{path}") for p in here)]
    assert named and not missing
