"""How numbers and methods look: names, colours that colour-blind readers tell apart, and figures of one kind."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Picture", "colour", "file_name", "label", "look", "marker", "new_figure", "number", "scattered"]

# Okabe and Ito's colours, which remain distinct with every common kind of colour blindness
_COLOURS = {
    "exact": "#000000",
    "learned": "#D55E00",
    "learned 100": "#B07AA1",
    "learned bare": "#B07AA1",
    "learned sampled": "#B07AA1",
    "kjit (text)": "#0072B2",
    "kjit (program)": "#56B4E9",
    "kjit (house)": "#E69F00",
    "forest": "#009E73",
    "eslami forest": "#009E73",
    "neural": "#CC79A7",
    "random forest": "#E69F00",
    "extra trees": "#7F3C00",
    "sampling": "#777777",
}
_MORE = ("#E69F00", "#8C6BB1", "#7F3C00", "#4D4D4D", "#B3A100", "#66A61E", "#A6761D", "#1B6A8C")
_LABELS = {
    "exact": "exact EP (quadrature)",
    "learned": "learned (default)",
    "learned bare": "learned, no reference",
    "learned bare 100": "learned 100, no reference",
    "learned sampled": "learned from draws",
    "forest": "Eslami's forest",
    "eslami forest": "Eslami's forest",
    "neural": "Heess's network",
}
_MARKERS = "osD^vP*Xhd<>p"
_RC: Any = {
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.7,
    "axes.axisbelow": True,
}


class Picture(NamedTuple):
    """A figure with its caption and alternative text."""

    name: str  # of its files
    alt: str  # for readers who cannot see it
    caption: str
    figure: Figure
    wide: bool = False  # a trace over many messages: scrolls in its box on a phone


def label(method: str) -> str:
    """The method's name as a reader knows it.

    >>> label("neural"), label("kjit (text)")
    ("Heess's network", 'kjit (text)')
    """
    return _LABELS.get(method, method)


def file_name(method: str) -> str:
    """The method's name as a part of a file's name.

    >>> file_name("kjit (text)")
    'kjit_text'
    """
    return "_".join("".join(c if c.isalnum() else " " for c in method).split())


def colour(method: str) -> str:
    """The same colour for a method in every figure."""
    return _COLOURS.get(method, _MORE[sum(map(ord, method)) % len(_MORE)])


def marker(method: str) -> str:
    """A marker, which distinguishes a method beside its colour."""
    known = list(_COLOURS)
    return _MARKERS[known.index(method) % len(_MARKERS) if method in known else sum(map(ord, method)) % len(_MARKERS)]


def look() -> AbstractContextManager[Any]:
    """The look of every figure, for as long as it is drawn and written; nothing global stays changed."""
    from matplotlib import rc_context  # slow to import, and not every command draws

    return rc_context(_RC)


def new_figure(width: float = 5.6, height: float = 3.8, **subplots: Any) -> tuple[Figure, Any]:
    """A figure and its axes, without any global state."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(**subplots)


def scattered(figure: Figure, picture: tuple[str, str, str], ncols: int = 3, markerscale: float = 2) -> Picture:
    """The picture (its name, alternative text and caption) of a figure of points, with a legend above it."""
    figure.legend(loc="outside upper center", ncols=ncols, markerscale=markerscale, handletextpad=0.1)
    return Picture(*picture, figure)


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(x: Any, digits: int = 3) -> str:
    """A number for a table.

    >>> number(0.07118), number(1234567), number(4.2e34), number(-8.97), number(None), number(0.0)
    ('0.0712', '1,234,567', '4.2 × 10³⁴', '-8.97', '–', '0')
    """
    if x is None or (isinstance(x, float) and math.isnan(x)):
        return "–"
    if isinstance(x, int) or (isinstance(x, float) and abs(x) < 1e15 and x == int(x) and abs(x) >= 1000):
        return f"{int(x):,}"
    if x == 0:
        return "0"
    if math.isinf(x):
        return "∞" if x > 0 else "-∞"
    size = math.floor(math.log10(abs(x)))
    if size < -4 or size > 5:
        mantissa, power = f"{x:.1e}".split("e")
        return f"{mantissa} × 10{str(int(power)).translate(_RAISED)}"
    if size >= 3:
        return f"{x:,.0f}"
    return f"{x:.{max(0, digits - 1 - size)}f}"
