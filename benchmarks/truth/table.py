"""The verdicts as a table: for a terminal, and between two marks of a page."""

from __future__ import annotations

from pathlib import Path

from benchmarks.truth.claims import CLAIMS
from benchmarks.truth.verdict import CRASHED, REFUSED, RIGHT, SAID, SILENT, Result

__all__ = ["markdown", "rows", "text"]

HEAD = (
    "kind",
    "models",
    "right",
    "said so",
    "refused",
    "silent",
    "crashed",
    "needless",
    "stray",
    "worst right",
    "seconds",
)
BEGIN, END = "<!-- verdicts: written by python -m benchmarks.truth --markdown -->", "<!-- end of verdicts -->"


def rows(found: list[Result]) -> list[tuple[str, ...]]:
    """One row a kind, and their sum.

    needless: right, and yet a warning. stray: models with a warning that is not ours.
    worst right: the largest error over its limit.
    """
    kinds = list(dict.fromkeys(r.kind for r in found))
    groups = [(kind, [r for r in found if r.kind == kind]) for kind in kinds] + [("all", found)]
    table: list[tuple[str, ...]] = [HEAD]
    for name, group in groups:
        right = [r for r in group if r.verdict == RIGHT]
        counts = [sum(r.verdict == v for r in group) for v in (RIGHT, SAID, REFUSED, SILENT, CRASHED)]
        needless = sum(bool(r.said) for r in right if CLAIMS[r.claim].limits)
        stray = sum(bool(r.stray) for r in group)
        worst = max((r.worst for r in right), default=0.0)
        seconds = sum(r.seconds for r in group) / max(len(group), 1)
        table.append((name, *map(str, (len(group), *counts, needless, stray)), f"{worst:.2g}", f"{seconds:.2f}"))
    return table


def text(found: list[Result]) -> str:
    """For a terminal."""
    table = rows(found)
    widths = [max(len(r[k]) for r in table) for k in range(len(HEAD))]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip() for r in table)


def markdown(page: Path, found: list[Result]) -> None:
    """Replace what stands between the two marks of a page by the table."""
    table = rows(found)
    lines = [f"| {' | '.join(r)} |" for r in table]
    lines.insert(1, "|" + " --- |" * len(HEAD))
    before, rest = page.read_text().split(BEGIN)
    after = rest.split(END)[1]
    page.write_text(f"{before}{BEGIN}\n" + "\n".join(lines) + f"\n{END}{after}")
