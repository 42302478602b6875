"""The table of what is supported, generated from the code."""

from __future__ import annotations

from pathlib import Path

import heliograph.factors as room
from heliograph.factors import Factor, supported


def test_every_direction_of_every_factor_has_a_row_that_says_how():
    rows = {(r.factor, r.to) for r in supported()}
    kinds = [f for f in vars(room).values() if isinstance(f, type) and issubclass(f, Factor) and f.name and f.ports]
    assert kinds
    for kind in kinds:
        for port in kind.ports:
            if kind.families.get(port):
                assert (kind.name, port) in rows
    assert all(r.how != "not stated" for r in supported())


def test_names_are_unique():
    kinds = [f for f in vars(room).values() if isinstance(f, type) and issubclass(f, Factor) and f.name and f.ports]
    names = [k.name for k in dict.fromkeys(kinds)]
    assert len(names) == len(set(names))


def test_it_prints_as_a_table_and_as_markdown():
    table = supported().of("gaussian_precision")
    text, markdown = str(table), table.markdown()
    assert text.splitlines()[0].startswith("factor")
    assert "quadrature over precision" in text and "Gamma" in text
    assert markdown.splitlines()[1].startswith("| ---")
    assert len(markdown.splitlines()) == 2 + 3


def test_factors_written_by_a_user_are_not_listed():
    class Mine(Factor):
        name = "mine"
        ports = ("x",)

    assert Mine.name not in {r.factor for r in supported()}


def test_the_docs_show_the_table_of_today():
    page = (Path(__file__).resolve().parents[2] / "docs/supported.md").read_text()
    assert supported().markdown() in page, "write docs/supported.md anew from heliograph.supported().markdown()"
