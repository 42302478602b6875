"""The verdicts and the measured errors as tables: for a terminal, and between marks of a page."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.truth.claims import CLAIMS
from benchmarks.truth.verdict import CRASHED, REFUSED, RIGHT, SAID, SILENT, Result

__all__ = ["errors", "markdown", "rows", "text"]

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
UNITS = {"mean": "sd", "spread": "log sd", "correlation": "", "probability": "", "evidence": "nats", "nats": "nats"}


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


def errors(found: list[Result]) -> list[tuple[str, ...]]:
    """One row a claim: its limits, and the median and largest error of the models that gave no warning."""
    table: list[tuple[str, ...]] = [("models", "quiet", "error: median, largest (limit)", "why it is not smaller")]
    for name, claim in CLAIMS.items():
        quiet = [r for r in found if r.claim == name and r.errors and not r.said]
        parts = []
        for which, limit in claim.limits.items():
            values = [r.errors[which] for r in quiet if which in r.errors]
            size = f"{np.median(values):.1g}, {max(values):.2g}" if values else "-"
            parts.append(f"{which} {size} ({limit:g}{' ' + UNITS[which] if UNITS[which] else ''})")
        table.append((name, str(len(quiet)), "; ".join(parts), claim.reason))
    return table


def text(found: list[Result]) -> str:
    """For a terminal."""
    table = rows(found)
    widths = [max(len(r[k]) for r in table) for k in range(len(HEAD))]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip() for r in table)


def markdown(page: Path, found: list[Result]) -> None:
    """Replace what stands between the marks of a page by the two tables."""
    whole = page.read_text()
    for name, table in (("verdicts", rows(found)), ("errors", errors(found))):
        begin, end = f"<!-- {name}: written by python -m benchmarks.truth --markdown -->", f"<!-- end of {name} -->"
        lines = [f"| {' | '.join(r)} |" for r in table]
        lines.insert(1, "|" + " --- |" * len(table[0]))
        before, rest = whole.split(begin)
        whole = f"{before}{begin}\n" + "\n".join(lines) + f"\n{end}{rest.split(end)[1]}"
    page.write_text(whole)
