"""Tables of the report: a row per method, the paper's number under ours where it printed one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from heliograph.paper.report.style import label, number

__all__ = [
    "SPLIT",
    "Cell",
    "Table",
    "cell",
    "mean",
    "median",
    "most",
    "nats",
    "range_of",
    "share",
    "spread_table",
    "time_split",
]


class Cell(NamedTuple):
    """A number, and the paper's."""

    ours: str
    paper: str | None = None


class Table(NamedTuple):
    """Headings, and rows that begin with a name."""

    caption: str
    columns: Sequence[str]  # the first one heads the names
    rows: Sequence[tuple[str, Sequence[Cell]]]


def cell(ours: Any, paper: Any = None, digits: int = 3) -> Cell:
    """A number with so many digits."""
    return Cell(number(ours, digits), None if paper is None else number(paper, digits))


def share(ours: Any, paper: Any = None) -> Cell:
    """A share of test rows, with the four decimals that the paper prints."""
    return Cell("–" if ours is None else f"{ours:.4f}", None if paper is None else f"{paper:.4f}")


def mean(values: Sequence[Any]) -> float | None:
    """The mean of what is there."""
    there = [v for v in values if v is not None]
    return float(np.mean(there)) if there else None


def nats(values: Sequence[Any]) -> np.ndarray:
    """KLs as numbers: JSON's null stands for one beyond all numbers."""
    return np.array([np.inf if v is None else v for v in values], dtype=float)


def median(values: Sequence[Any]) -> float | None:
    """The median of KLs."""
    return float(np.median(nats(values))) if values else None


def most(values: Sequence[Any]) -> float | None:
    """The largest of KLs."""
    return float(nats(values).max()) if values else None


SPLIT = ("of these oracle", "learning", "prediction", "rest")


def time_split(row: Mapping[str, Any], many: Callable[[Any], Any]) -> list[Cell]:
    """What the seconds went into."""
    return [cell(many(row[f"seconds_{part}"])) for part in ("oracle", "learning", "prediction", "rest")]


def spread_table(result: Mapping[str, Any]) -> list[Table]:
    """Medians and ranges over the seeds that were run, if there is more than one."""
    spread = result.get("spread")
    if not spread or len(spread["seeds"]) < 2:
        return []
    keys = list(dict.fromkeys(k for row in spread["methods"].values() for k in row))
    rows = []
    for method, row in spread["methods"].items():
        n = max(len(v) for v in row.values())
        name = label(method) if n == len(spread["seeds"]) else f"{label(method)} ({n} seed{'s' if n > 1 else ''})"
        rows.append((name, [Cell(range_of(row[k]) if k in row else "–") for k in keys]))
    seeds = spread["seeds"]
    caption = f"Over seeds {seeds[0]} to {seeds[-1]}: median, and in brackets the least and the most"
    return [Table(caption, ("method", *keys), rows)]


def range_of(values: Sequence[Any], digits: int = 3) -> str:
    """Median, least and most of a number over the seeds; the number itself if there is only one.

    >>> range_of([3.0, 1.0, 2.0]), range_of([0.5])
    ('2.00 (1.00 to 3.00)', '0.500')
    """
    if all(v is None for v in values):
        return "–"
    there = nats(values)
    if len(there) == 1 or there.min() == there.max():
        return number(_plain(there[0]), digits)
    middle = float(np.quantile(there, 0.5, method="lower" if np.isinf(there).any() else "linear"))
    ends = " to ".join(number(_plain(x), digits) for x in (there.min(), there.max()))
    return f"{number(_plain(middle), digits)} ({ends})"


def _plain(x: float) -> float | int:
    return int(x) if np.isfinite(x) and x == int(x) and abs(x) >= 10 else float(x)
