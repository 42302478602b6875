"""The page of what is supported is what the code says."""

from pathlib import Path

import heliograph as hg

PAGE = Path(__file__).resolve().parents[2] / "docs" / "supported.md"


def test_the_page_shows_the_table_that_the_code_generates():
    assert hg.supported().markdown() in PAGE.read_text(), "run: python docs/make_supported.py"
