"""The paper's own numbers, read from ``published.toml``, which says for each where in the paper it stands."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from heliograph.paper.columns import reproduces

__all__ = ["Published", "numbers", "paper_of", "published"]


class Published(NamedTuple):
    """One number of the paper."""

    experiment: str
    method: str  # "kjit" for both columns that are meant to reproduce it
    key: str
    at: str | None  # the data set, the curve, or after how many problems
    value: float
    line: int  # of the paper's source
    source: str  # "text" if it is printed there, "figure" if it was read off the figure that begins there


@cache
def numbers() -> tuple[Published, ...]:
    """Every number there is."""
    text = files("heliograph.paper").joinpath("published.toml").read_text(encoding="utf-8")
    return tuple(
        Published(n["experiment"], n["method"], n["key"], n.get("at"), n["value"], n["line"], n["from"])
        for n in tomllib.loads(text)["number"]
    )


def paper_of(experiment: str, method: str, key: str, at: str | None = None) -> float | None:
    """The paper's number for a method of an experiment, or None if it has none.

    >>> paper_of("exp1", "kjit (program)", "mean_log_kl"), paper_of("exp1", "kjit (house)", "mean_log_kl")
    (-8.97, None)
    """
    if method != "kjit" and method.startswith("kjit"):
        method = "kjit" if reproduces(method) else method
    wanted = (experiment, method, key, at)
    return next((n.value for n in numbers() if (n.experiment, n.method, n.key, n.at) == wanted), None)


def published(experiment: str) -> dict[str, Any]:
    """What an experiment's JSON carries of the paper: ``{method: {key: number}}``, or ``{key: {at: number}}``."""
    found: dict[str, Any] = {}
    for n in numbers():
        if n.experiment == experiment:
            row = found.setdefault(n.method, {})
            if n.at is None:
                row[n.key] = n.value
            else:
                row.setdefault(n.key, {})[n.at] = n.value
    return found
