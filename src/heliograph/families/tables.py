"""Small tables for people: text of a bounded width, and HTML for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

__all__ = ["MOST_ROWS", "WIDTH", "brief", "html_table", "shortened", "text_table"]

WIDTH = 100  # columns of a line that fits every terminal and page
MOST_ROWS = 30  # of a table; what follows is counted
_BRIEF = 36  # columns of `brief`

Row = Sequence[str]


def brief(values: np.ndarray) -> str:
    """Numbers in one line of at most 36 columns: all of a few, the first and last of many.

    >>> brief(np.arange(100.0))
    '[ 0.  1.  2. ... 97. 98. 99.]'
    """
    values = np.asarray(values)
    for edge in (3, 2, 1):
        text = np.array2string(values, precision=4, threshold=2 * edge, edgeitems=edge, separator=" ").replace(
            "\n", " "
        )
        text = " ".join(text.split()) if values.ndim > 1 else text
        if len(text) <= _BRIEF:
            return text
    return shortened(text, _BRIEF)


def shortened(text: str, width: int) -> str:
    """The beginning of a text that is too long, with dots where it was cut."""
    return text if len(text) <= width else text[: width - 3] + "..."


def _kept(rows: Sequence[Row]) -> tuple[list[Row], int]:
    """The rows that are shown, and the number of those that are not."""
    if len(rows) <= MOST_ROWS:
        return list(rows), 0
    return list(rows[:MOST_ROWS]), len(rows) - MOST_ROWS


def text_table(head: Row, rows: Sequence[Row]) -> list[str]:
    """Lines of a table, columns aligned, none longer than `WIDTH`."""
    shown, left = _kept(rows)
    cells = [head, *shown]
    widths = [max(len(row[k]) for row in cells) for k in range(len(head))]
    lines = ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in cells]
    return [shortened(line, WIDTH) for line in lines] + ([f"... and {left} more"] if left else [])


def html_table(head: Row, rows: Sequence[Row], notes: Sequence[str] = (), total: int = 0) -> str:
    """The same as HTML, with notes below; nothing in a cell can become markup. `total` counts rows that were not even made.

    >>> html_table(["a"], [["<b>"]])
    '<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table>'
    """
    shown, left = _kept(rows)
    left = max(left, total - len(shown))
    body = "".join("<tr>" + "".join(f"<td>{escape(c)}</td>" for c in row) + "</tr>" for row in shown)
    first = "".join(f"<th>{escape(c)}</th>" for c in head)
    below = [*([f"... and {left} more"] if left else []), *notes]
    return f"<table><thead><tr>{first}</tr></thead><tbody>{body}</tbody></table>" + "".join(
        f"<p>{escape(note)}</p>" for note in below
    )
