"""The three kinds of KJIT, named for what they are, every setting of each in one record, and the paper's own numbers beside them.

`kjit (text)` is what the paper's text describes, `kjit (program)` what its authors' program did where that differs, `kjit (house)`
our own mixture, which has no counterpart in the paper. The paper's numbers stand beside the first two only.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from heliograph.operators.kjit.kernel_learner import columns

__all__ = [
    "KJIT",
    "PAPERS",
    "Column",
    "Published",
    "kjit_settings",
    "numbers",
    "paper_of",
    "published",
    "reproduces",
    "settings_table",
]


class Column(NamedTuple):
    """One kind of KJIT."""

    name: str  # in every experiment, table, figure and JSON
    word: str  # what `Kjit(settings=...)` calls it
    reproduces: bool  # whether the paper's numbers stand beside it
    what: str


_ALL = (
    Column("kjit (text)", "text", True, "what the paper's text describes"),
    Column("kjit (program)", "program", True, "what its authors' program did"),
    Column("kjit (house)", "house", False, "our own mixture of the two"),
)
KJIT: dict[str, Column] = {column.name: column for column in _ALL}
PAPERS = tuple(column.name for column in _ALL if column.reproduces)

# What belongs to an experiment: the text's numbers, and the program's where they are known to differ. Experiment 4's minibatch
# and threshold are the program's in every column: the text has none. There the house column sees messages on the log axis.
_LOGISTIC = {"D_in": 300, "D_out": 500, "noise": 1e-4, "prior_variance": 1.0, "threshold": -8.5, "minibatch": 300}
_UCI = {**_LOGISTIC, "threshold": -9.0, "minibatch": 500}
_GAMMA = {**_LOGISTIC, "threshold": -6.0, "minibatch": 20, "target": "message"}
_SIZES: dict[str, dict[str, dict[str, Any]]] = {
    "exp3": {"kjit (text)": _LOGISTIC, "kjit (program)": _LOGISTIC, "kjit (house)": _LOGISTIC},
    "exp4": {
        "kjit (text)": _GAMMA,
        # a message of shape 1 is always proper, so none is refused
        "kjit (program)": {**_GAMMA, "D_in": 400, "D_out": 800, "target": "rate", "improper": "engine"},
        "kjit (house)": {**_GAMMA, "axis": "chart"},
    },
    "exp5": {
        "kjit (text)": _UCI,
        "kjit (program)": {**_UCI, "D_in": 400, "D_out": 800, "threshold": -8.95},
        "kjit (house)": _UCI,
    },
}


def kjit_settings(experiment: str, name: str) -> dict[str, Any]:
    """The arguments of `Kjit` for a column in an experiment that learns just in time.

    >>> kjit_settings("exp5", "kjit (program)")["threshold"]
    -8.95
    """
    return {"settings": KJIT[name].word, **_SIZES[experiment][name]}


def reproduces(name: str) -> bool:
    """Whether a method is KJIT as the paper has it, so that its numbers belong beside it.

    >>> reproduces("kjit (text)"), reproduces("kjit (house)"), reproduces("forest")
    (True, False, False)
    """
    return name in KJIT and KJIT[name].reproduces


def settings_table(experiment: str) -> tuple[list[str], list[tuple[str, list[Any]]]]:
    """Names of the columns, and for each setting that an experiment's operators have, its value in every column."""
    whole = [
        {**columns()[KJIT[n].word], "axis": "identity", **_SIZES[experiment][n]} for n in KJIT
    ]  # the later wins, as in `Kjit`
    return list(KJIT), [(key, [one[key] for one in whole]) for key in whole[0]]


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
    """All numbers of the paper that are recorded."""
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
