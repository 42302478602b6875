"""A posterior for people: a summary, a table of all entries, and the comparison of two evidences."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from itertools import chain
from typing import Any, NamedTuple, Protocol

import numpy as np

from heliograph.errors import ModelError
from heliograph.families import Categorical, Family
from heliograph.families.tables import brief, html_table, shortened, text_table
from heliograph.graph.records import Graph, Node

__all__ = [
    "Comparison",
    "TableRow",
    "compare",
    "digests_of",
    "entry_names",
    "notes_of",
    "summary_html",
    "summary_text",
    "table_of",
]

_NAME = 24  # columns of a variable's name
_HEAD = ("variable", "mean", "sd")
_LABELLED = 2_000_000  # entries of a table, beyond which one would not be read


class Shown(Protocol):
    """What a posterior shows."""

    @property
    def graph(self) -> Graph:
        """The graph of the run."""
        ...

    def __iter__(self) -> Iterator[str]: ...

    def __getitem__(self, variable: str) -> Family: ...

    def notes(self) -> list[str]:
        """Sentences on how the run went."""
        ...


def _rows(posterior: Shown) -> list[tuple[str, str, str]]:
    rows: list[tuple[str, str, str]] = []
    for name in posterior:
        belief = posterior[name]
        rows.append((shortened(name, _NAME), brief(belief.mean), brief(belief.sd)))
    return rows


def summary_text(posterior: Shown) -> str:
    """Means and standard deviations, evidence and how the run went, at most 100 columns wide."""
    notes = chain.from_iterable(_wrapped(note) for note in posterior.notes())
    return "\n".join([*text_table(_HEAD, _rows(posterior)), "", *notes])


def _wrapped(note: str, width: int = 100) -> list[str]:
    """A sentence in lines that are not longer than `width`."""
    lines: list[str] = []
    line = ""
    for word in note.split(" "):
        if line and len(line) + 1 + len(word) > width:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}" if line else word
    return [*lines, line]


def summary_html(posterior: Shown) -> str:
    """The summary for a notebook."""
    return html_table(_HEAD, _rows(posterior), posterior.notes())


def notes_of(posterior: Any) -> list[str]:
    """Sentences on how a run went: its evidence, whether it settled, and what learned messages may have added."""
    sweeps = (
        f"{posterior.n_sweeps} sweep" + ("" if posterior.n_sweeps == 1 else "s")
        if posterior.n_sweeps
        else "one exact pass"
    )
    state = f"converged after {sweeps}" if posterior.converged else f"NOT converged: {posterior.status}"
    lines = [f"log evidence {posterior.log_evidence:.6g}; {state}"]
    if posterior.trace.sweeps:
        lines.append(repr(posterior.trace))
    if np.isnan(posterior.error_estimate):
        lines.append("learned messages: this operator gives no estimate of the posterior error")
    elif np.isinf(posterior.error_estimate):
        lines.append("learned messages: some rows failed, so the posterior error is unknown")
    elif posterior.error_estimate:
        lines.append(f"learned messages: estimated posterior error {posterior.error_estimate:.2g} nats")
    return lines


class TableRow(NamedTuple):
    """One scalar entry of a posterior."""

    name: str
    mean: float
    sd: float
    lower: float
    upper: float


def entry_names(name: str, shape: tuple[int, ...], labels: tuple[str, ...] | None = None) -> list[str]:
    """The names of the entries of an array: ``w[0]``, ``w[1]``, or with labels ``w[age]``.

    >>> entry_names("w", (2,)), entry_names("w", ())
    (['w[0]', 'w[1]'], ['w'])
    """
    if not shape:
        return [name]
    parts = [[str(i) for i in range(n)] for n in shape]
    if labels is not None and len(labels) == shape[-1]:
        parts[-1] = list(labels)
    found = [""]
    for axis in parts:
        found = [f"{a}, {b}" if a else b for a in found for b in axis]
    return [f"{name}[{i}]" for i in found]


def table_of(posterior: Shown, probability: float = 0.9) -> Any:
    """A row for every scalar entry of every variable: a DataFrame where pandas is installed, else a list of `TableRow`."""
    rows: list[TableRow] = []
    for name in posterior:
        belief, node = posterior[name], _node(posterior.graph, name)
        mean = np.asarray(belief.mean, dtype=float)
        if len(rows) + mean.size > _LABELLED:
            raise ModelError(f"a table of over {_LABELLED} entries cannot be read; ask for posterior[{name!r}] instead")
        if isinstance(belief, Categorical):  # categories have no order, and so no interval
            lower = upper = np.full(mean.shape, np.nan)
        else:
            lower, upper = belief.interval(probability)
        columns = (a.reshape(-1).tolist() for a in (mean, np.asarray(belief.sd), np.asarray(lower), np.asarray(upper)))
        names = entry_names(name, mean.shape, None if node is None else node.labels)
        rows += [TableRow(*row) for row in zip(names, *columns, strict=True)]
    if find_spec("pandas") is None:
        return rows
    pandas: Any = import_module("pandas")
    frame = pandas.DataFrame(rows, columns=TableRow._fields)
    low = 50 * (1 - probability)
    return frame.set_index("name").rename(columns={"lower": f"{low:g}%", "upper": f"{100 - low:g}%"})


def _node(graph: Graph, name: str) -> Node | None:
    return next((n for n in graph.nodes if n.name == name), None)


# ---- comparing ---------------------------------------------------------------------------------------------------
class Comparison(NamedTuple):
    """Models by their evidence, the best first."""

    names: tuple[str, ...]
    log_evidence: np.ndarray
    log_bayes_factor: np.ndarray  # of each against the best: 0 and below
    probability: np.ndarray  # of each, if all were equally probable before the data

    def __repr__(self) -> str:
        rows = [
            (shortened(n, _NAME), f"{e:.4f}", f"{b:.4f}", f"{p:.4g}")
            for n, e, b, p in zip(self.names, self.log_evidence, self.log_bayes_factor, self.probability, strict=True)
        ]
        return "\n".join(text_table(("model", "log evidence", "against the best", "probability"), rows))

    def _repr_html_(self) -> str:
        rows = [
            (n, f"{e:.4f}", f"{b:.4f}", f"{p:.4g}")
            for n, e, b, p in zip(self.names, self.log_evidence, self.log_bayes_factor, self.probability, strict=True)
        ]
        return html_table(("model", "log evidence", "against the best", "probability"), rows)


def compare(posteriors: Mapping[str, Any]) -> Comparison:
    """Compare models of the same data by their evidence.

    The posteriors must be of the same observed values; what they call alike must be alike.

    >>> import heliograph as hg
    >>> found = {}
    >>> for name, variance in (("narrow", 1.0), ("broad", 100.0)):
    ...     model = hg.Model()
    ...     x = model.gaussian("x", 0.0, variance=variance)
    ...     y = model.gaussian("y", x, variance=1.0, observed=[0.2, -0.1])
    ...     found[name] = model.infer()
    >>> hg.compare(found).names
    ('narrow', 'broad')
    """
    if len(posteriors) < 2:
        raise ModelError("compare takes at least two posteriors by name, as in hg.compare({'a': p1, 'b': p2})")
    _check_same_data({name: p.digests() for name, p in posteriors.items()})
    evidence = np.array([float(p.log_evidence) for p in posteriors.values()])
    if np.isnan(evidence).any():
        missing = [name for name, e in zip(posteriors, evidence, strict=True) if np.isnan(e)]
        raise ModelError(f"the evidence of {missing} is not known, so there is nothing to compare")
    order = np.argsort(-evidence, kind="stable")
    gap = evidence[order] - evidence.max()
    weight = np.exp(gap)
    names = tuple(np.array(list(posteriors), dtype=object)[order])
    return Comparison(names, evidence[order], gap, weight / weight.sum())


def digests_of(graph: Graph) -> dict[str, str]:
    """Checksums of the observed values of the user's variables and counts, by name."""
    seen = {n.name: n.observed.point for n in graph.nodes if n.given and n.observed is not None}
    seen |= {name: plate.data[plate.factor.child] for name, plate in graph.counts.items()}
    return {
        name: hashlib.sha256(np.ascontiguousarray(values, dtype=float).tobytes()).hexdigest()[:16]
        for name, values in seen.items()
        if values is not None and not np.isnan(values).all()
    }


def _check_same_data(digests: Mapping[str, Mapping[str, str]]) -> None:
    seen: dict[str, tuple[str, str]] = {}
    for model, named in digests.items():
        for name, digest in named.items():
            other = seen.setdefault(name, (model, digest))
            if other[1] != digest:
                raise ModelError(
                    f"models {other[0]!r} and {model!r} were given different values of {name!r}: evidences can be compared "
                    "only for the same data"
                )
