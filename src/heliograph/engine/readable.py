"""What every posterior shows to people, whatever it was computed by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from heliograph.engine.drawing import draw_posterior
from heliograph.engine.showing import compare, digests_of, notes_of, summary_html, summary_text, table_of
from heliograph.graph.records import Graph
from heliograph.graph.variable import Variable

__all__ = ["ReadablePosterior"]


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
        """Sentences on how the run went."""
        return notes_of(self)

    def summary(self) -> str:
        """Means and standard deviations of the user's variables, evidence, and how the run went."""
        return summary_text(self)

    def _repr_html_(self) -> str:
        return summary_html(self)

    def plot(self, variables: Sequence[Any] | None = None, axes: Any = None) -> Any:
        """Draw the marginals of the variables, or of some, with matplotlib; returns the axes."""
        return draw_posterior(self, variables, axes)

    def table(self, probability: float = 0.9) -> Any:
        """Every scalar entry with its mean, sd and central interval: a DataFrame, or a list of rows without pandas."""
        return table_of(self, probability)

    def compare(self, other: Any) -> float:
        """The log Bayes factor of this posterior's model against another's of the same data; positive favours this one."""
        found = compare({"this": self, "other": other})
        return float(found.log_evidence[found.names.index("this")] - found.log_evidence[found.names.index("other")])
