"""Which factor sends what, generated from the code: ``heliograph.supported()``."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from typing import NamedTuple

from heliograph.errors import ModelError
from heliograph.factors.base import Factor
from heliograph.numerics.checks import in_words

__all__ = ["Supported", "SupportedRow", "supported"]

_HEADINGS = ("factor", "to", "family", "from", "how", "power EP")


class SupportedRow(NamedTuple):
    """One direction of one factor."""

    factor: str
    to: str  # the port it sends to
    families: tuple[str, ...]  # of the message it sends
    given: tuple[tuple[str, tuple[str, ...]], ...]  # the other ports with the families they take; () for data
    how: str
    powers: bool


class Supported(tuple[SupportedRow, ...]):
    """The rows of the table; printing it shows them aligned, `markdown` gives them for a document."""

    __slots__ = ()

    def __str__(self) -> str:
        lines = [_HEADINGS, *(_cells(row) for row in self)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(_HEADINGS))]
        text = ["  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines]
        return "\n".join([text[0], "  ".join("-" * w for w in widths), *text[1:]])

    __repr__ = __str__

    def markdown(self) -> str:
        """The table in Markdown."""
        lines = [_HEADINGS, ("---",) * len(_HEADINGS), *(_cells(row) for row in self)]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)

    def of(self, factor: str) -> Supported:
        """The rows of one factor."""
        names = dict.fromkeys(row.factor for row in self)
        if factor not in names:
            raise ModelError(f"no factor is called {in_words(factor)}; there are {', '.join(names)}")
        return Supported(row for row in self if row.factor == factor)


def supported() -> Supported:
    """The table factor x direction x families x how it is computed, from the factors that there are.

    >>> from heliograph.factors.equality import Equal
    >>> [row.to for row in supported().of("equal")]
    ['a', 'b']
    """
    for module in pkgutil.walk_packages([str(Path(__file__).parent)], f"{__package__}."):
        importlib.import_module(module.name)  # a factor is registered by being in the folder
    kinds = sorted(_subclasses(Factor), key=lambda kind: kind.name)
    return Supported(
        SupportedRow(
            kind.name,
            to,
            _names(kind.families[to]),
            tuple((port, _names(kind.families.get(port, ()))) for port in kind.ports if port != to),
            kind.how.get(to, "not stated"),
            kind.powers,
        )
        for kind in kinds
        for to in kind.ports
        if kind.families.get(to)
    )


def _subclasses(kind: type[Factor]) -> list[type[Factor]]:
    """All factors of the package below `kind` that have a name and ports; users' own are not listed."""
    found = []
    for child in kind.__subclasses__():
        if child.name and child.ports and child.__module__.startswith("heliograph."):
            found.append(child)
        found += _subclasses(child)
    return found


def _names(families: tuple[type, ...]) -> tuple[str, ...]:
    return tuple(f.__name__ for f in families)


def _cells(row: SupportedRow) -> tuple[str, ...]:
    given = ", ".join(f"{port}: {_short(families)}" for port, families in row.given)
    return row.factor, row.to, _short(row.families), given, row.how, "yes" if row.powers else "no"


def _short(families: tuple[str, ...]) -> str:
    if not families:
        return "data"
    return "any" if len(families) > 4 else " or ".join(families)
