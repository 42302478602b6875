"""What every posterior shows to people, whatever it was computed by: a summary, a table of all entries, comparisons by evidence."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import chain
from textwrap import wrap
from typing import Any, NamedTuple

import numpy as np

from heliograph.engine.drawing import draw_posterior
from heliograph.errors import ModelError
from heliograph.families import Categorical
from heliograph.families.tables import brief, html_table, shortened, text_table
from heliograph.graph.quantity import Quantity
from heliograph.graph.records import Graph
from heliograph.graph.symbols import Symbol
from heliograph.graph.variable import Variable
from heliograph.numerics.checks import in_words

__all__ = [
    "Comparison",
    "ReadablePosterior",
    "TableRow",
    "check_model",
    "checked_names",
    "compare",
    "digests_of",
    "entry_names",
]

_WIDE = 100  # columns of a note
_NAME = 24  # columns of a variable's name
_HEAD = ("variable", "mean", "sd")
_COMPARED = ("model", "log evidence", "against the best", "probability")
_LABELLED = 2_000_000  # entries of a table, beyond which one would not be read


def check_model(name: str, asked: Graph, live: Graph, version: int) -> None:
    """Refuse a variable of another model than that of a posterior, and of this one as it is since it was given other data."""
    if asked is not live:
        raise ModelError(f"variable {name!r} belongs to another model than this posterior")
    if live.version != version:
        raise ModelError(
            f"the model was given other data since this posterior was computed; ask for a variable by its name, as in "
            f"posterior[{name!r}], or run infer again"
        )


def checked_names(variables: Any, there: Sequence[str]) -> list[str]:
    """The names of the variables that a user wants drawn, each of which must be among those that are `there`."""
    one = isinstance(variables, (str, Quantity, Symbol))
    names: list[str] = []
    for x in [variables] if one else variables:
        names.append(x if isinstance(x, str) else x.name)
        if names[-1] not in there:
            raise ModelError(f"no variable is called {names[-1]!r}; there are {list(there)}")
        if isinstance(x, Quantity) and x.index is not None:
            raise ModelError(
                f"entries of {x.name!r} are not drawn by themselves; draw {x.name!r}, and take them of the draws"
            )
    return names


class ReadablePosterior:
    """A collection of beliefs by name, with summaries, tables and comparisons.

    A subclass has `graph`, ``self[name]``, `log_evidence`, `converged`, `status`, `trace`, `n_sweeps` and `error_estimate`.
    """

    @property
    def graph(self) -> Graph:
        """The graph of the run."""
        raise NotImplementedError  # pragma: no cover

    def __getitem__(self, variable: Any) -> Any:
        raise NotImplementedError  # pragma: no cover

    def __iter__(self) -> Iterator[str]:
        """The names of the user's unobserved variables."""
        return (n.name for n in self.graph.nodes if n.given and not n.fully_observed)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, variable: object) -> bool:
        name = variable.name if isinstance(variable, Variable) else variable
        return any(n.name == name for n in self.graph.nodes) or any(n == name for n in self)

    def digests(self) -> dict[str, str]:
        """Checksums of what was observed, by name: two posteriors are compared only if they saw the same."""
        return digests_of(self.graph)

    def notes(self) -> list[str]:
        """Sentences on how the run went: its evidence, whether it settled, and what learned messages may have added."""
        run: Any = self
        sweeps = f"{run.n_sweeps} sweep" + ("" if run.n_sweeps == 1 else "s") if run.n_sweeps else "one exact pass"
        state = f"converged after {sweeps}" if run.converged else f"NOT converged: {run.status}"
        lines = [f"log evidence {run.log_evidence:.6g}; {state}"]
        if run.trace.sweeps:
            lines.append(repr(run.trace))
        if np.isnan(run.error_estimate):
            lines.append("learned messages: this operator gives no estimate of the posterior error")
        elif np.isinf(run.error_estimate):
            lines.append("learned messages: some rows failed, so the posterior error is unknown")
        elif run.error_estimate:
            lines.append(f"learned messages: estimated posterior error {run.error_estimate:.2g} nats")
        return lines

    def summary(self) -> str:
        """Means and standard deviations, evidence and how the run went, at most 100 columns wide."""
        notes = chain.from_iterable(
            wrap(note, _WIDE, break_long_words=False, break_on_hyphens=False) for note in self.notes()
        )
        return "\n".join([*text_table(_HEAD, self._rows()), "", *notes])

    def _repr_html_(self) -> str:
        return html_table(_HEAD, self._rows(), self.notes())

    def _rows(self) -> list[tuple[str, str, str]]:
        each = ((name, self[name]) for name in self)
        return [(shortened(name, _NAME), brief(belief.mean), brief(belief.sd)) for name, belief in each]

    def plot(self, variables: Sequence[Any] | None = None, axes: Any = None) -> Any:
        """Draw the marginals of the variables, or of some, with matplotlib; returns the axes."""
        return draw_posterior(self, variables, axes)

    def table(self, probability: float = 0.9) -> Any:
        """A row for every scalar entry of every variable: a DataFrame where pandas is installed, else a list of `TableRow`."""
        rows: list[TableRow] = []
        for name in self:
            belief, node = self[name], next((n for n in self.graph.nodes if n.name == name), None)
            mean = np.asarray(belief.mean, dtype=float)
            if len(rows) + mean.size > _LABELLED:
                raise ModelError(
                    f"a table of over {_LABELLED} entries cannot be read; ask for posterior[{name!r}] instead"
                )
            if isinstance(belief, Categorical):  # categories have no order, and so no interval
                lower = upper = np.full(mean.shape, np.nan)
            else:
                lower, upper = belief.interval(probability)
            columns = (
                a.reshape(-1).tolist() for a in (mean, np.asarray(belief.sd), np.asarray(lower), np.asarray(upper))
            )
            names = entry_names(name, mean.shape, None if node is None else node.labels)
            rows += [TableRow(*row) for row in zip(names, *columns, strict=True)]
        if find_spec("pandas") is None:
            return rows
        pandas: Any = import_module("pandas")
        frame = pandas.DataFrame(rows, columns=TableRow._fields)
        low = 50 * (1 - probability)
        return frame.set_index("name").rename(columns={"lower": f"{low:g}%", "upper": f"{100 - low:g}%"})

    def compare(self, other: Any) -> float:
        """The log Bayes factor of this posterior's model against another's of the same data; positive favours this one."""
        found = compare({"this": self, "other": other})
        return float(found.log_evidence[found.names.index("this")] - found.log_evidence[found.names.index("other")])


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


# ---- comparing ---------------------------------------------------------------------------------------------------
class Comparison(NamedTuple):
    """Models ordered by their evidence, the best first."""

    names: tuple[str, ...]
    log_evidence: np.ndarray
    log_bayes_factor: np.ndarray  # of each against the best: 0 and below
    probability: np.ndarray  # of each, if all were equally probable before the data

    def __repr__(self) -> str:
        return "\n".join(text_table(_COMPARED, [(shortened(n, _NAME), *numbers) for n, *numbers in self._rows()]))

    def _repr_html_(self) -> str:
        return html_table(_COMPARED, self._rows())

    def _rows(self) -> list[tuple[str, ...]]:
        numbers = zip(self.log_evidence, self.log_bayes_factor, self.probability, strict=True)
        return [(n, f"{e:.4f}", f"{b:.4f}", f"{p:.4g}") for n, (e, b, p) in zip(self.names, numbers, strict=True)]


def compare(posteriors: Mapping[str, Any]) -> Comparison:
    """Compare models of the same data by their evidence.

    The posteriors must be of the same observed values; values under the same name must be equal.

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
    for name, p in posteriors.items():
        if not hasattr(p, "digests"):
            raise ModelError(f"compare takes posteriors, and {name!r} is {in_words(p)}")
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
    without = [model for model, named in digests.items() if not named]
    if 0 < len(without) < len(digests):
        raise ModelError(
            f"model {without[0]!r} has no data, and others have: evidences can be compared only for the same data"
        )
    seen: dict[str, tuple[str, str]] = {}
    for model, named in digests.items():
        for name, digest in named.items():
            other = seen.setdefault(name, (model, digest))
            if other[1] != digest:
                raise ModelError(
                    f"models {other[0]!r} and {model!r} were given different values of {name!r}: evidences can be compared "
                    "only for the same data"
                )
