"""A part of the data of a model, swept against what the other parts say of a shared vector.

For data on several machines: each holds a `Part`, a model of its own rows and its own unknowns, which meets the others in one
vector. Whoever holds the middle multiplies the prior with the messages of all other parts and gives that to a part as its
*boundary*; the part sweeps once and answers with its message, the Schur complement of everything of its own. Where the
messages rest, they are those of one run over all data.
"""

from __future__ import annotations

import os
from collections import deque
from dataclasses import replace
from typing import Any

from heliograph.engine.compiled import compile_model
from heliograph.engine.options import StepOptions
from heliograph.engine.options_check import check_options
from heliograph.engine.run import Run
from heliograph.engine.stopping import after
from heliograph.engine.tables import Snapshot
from heliograph.errors import FileFormatError, ModelError
from heliograph.factors import Prior
from heliograph.families import Family, MultivariateGaussian
from heliograph.families.packing import pack, unpack
from heliograph.graph.builder import Builder
from heliograph.graph.check import check_graph
from heliograph.graph.gates import has_gates
from heliograph.graph.records import Graph, Plate
from heliograph.graph.variable import Variable
from heliograph.numerics.checks import in_words
from heliograph.storage import read_archive, understanding, write_archive

__all__ = ["Part"]

_WHAT = "saved part"


class Part:
    """One part of a model's data.

    >>> import numpy as np
    >>> from heliograph.engine import Model
    >>> def part(x, y):
    ...     model = Model()
    ...     w = model.gaussian("w", np.zeros(2), covariance=np.eye(2))
    ...     seen = model.gaussian("y", x @ w, variance=1.0, observed=y)
    ...     return Part(model, w)
    >>> prior = MultivariateGaussian(np.zeros(2), covariance=np.eye(2))
    >>> x, y = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 2.0]]), np.array([1.0, 2.0, 3.0])
    >>> messages = [part(x[:1], y[:1]).sweep(prior), part(x[1:], y[1:]).sweep(prior)]
    >>> (prior * messages[0] * messages[1]).mean.round(6)  # with Gaussian noise one sweep is exact
    array([0.588235, 1.235294])
    """

    def __init__(self, model: Builder, shared: Variable, **settings: Any) -> None:
        """`shared` is a vector of the model, whose prior stands for the boundary; `settings` are those of `steps`."""
        self._options = StepOptions(**settings)
        check_options(self._options)
        if has_gates(model):
            raise ModelError("a part is of one run, and a model with gates has one for every branch")
        self._graph = model.graph.snapshot()
        check_graph(self._graph)
        self._prior = _prior_of(self._graph, shared)
        self._messages: Snapshot | None = None

    def sweep(self, boundary: MultivariateGaussian, n_sweeps: int = 1) -> MultivariateGaussian:
        """Sweep against what is known of the shared vector elsewhere, and give the part's own message to it.

        Parameters
        ----------
        boundary
            The product of the prior and the messages of all other parts: one vector, proper.
        n_sweeps
            How often.
        """
        edge = self._prior.edges["x"]
        node = self._graph.nodes[edge.node]
        if boundary.shape != () or boundary.dimension != node.dimension or not bool(boundary.proper):
            raise ModelError(f"a boundary of {node.name!r} is one proper vector of {node.dimension} numbers")
        graph = replace(self._graph, plates=list(self._graph.plates))
        prior = Prior(boundary.reshape((1,)))
        graph.plates[self._prior.position] = replace(self._prior, factor=prior)
        options = replace(self._options, stop=after(n_sweeps))
        run = Run(compile_model(graph, options.structure, options.budget), options, self._messages)
        info, converged = deque(run.sweeps(), maxlen=1).pop()
        self._messages = run.tables.snapshot(copy=True)
        belief = run.posterior(info, converged)[node.name]
        message = belief.reshape(()) / boundary
        assert isinstance(message, MultivariateGaussian)
        return message

    # ---- keeping ------------------------------------------------------------------------------------------------
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the messages within the part to one file, so that another process can go on with the same model."""
        if self._messages is None:
            raise ModelError("this part has not been swept: there is nothing to save")
        named: dict[str, Family] = {}
        for kind, table in zip(Snapshot._fields, self._messages, strict=True):
            named |= {f"{kind} {_word(key)}": message for key, message in table.items()}
        arrays, families = pack(named)
        write_archive(path, arrays, {"families": families})

    def load(self, path: str | os.PathLike[str]) -> None:
        """Go on with the messages of a file, of the same model; a file that does not fit changes nothing."""
        arrays, header = read_archive(path, _WHAT)
        with understanding(path):
            named = unpack(arrays, header["families"])
        tables: dict[str, dict[Any, Any]] = {kind: {} for kind in Snapshot._fields}
        for word, message in named.items():
            kind, key = word.split(" ", 1)
            tables[kind][_key(key)] = message
        self._check(tables["sent"], path)
        self._messages = Snapshot(**tables)

    def _check(self, sent: dict[Any, Family], path: str | os.PathLike[str]) -> None:
        """Refuse messages that are not those of this model."""
        compiled = compile_model(self._graph, self._options.structure, self._options.budget)
        run = Run(compiled, self._options)
        own = {key: (type(m), m.size) for key, m in run.tables.sent.items()}
        if own != {key: (type(m), m.size) for key, m in sent.items()}:
            raise FileFormatError(
                f"{path} was saved by a part of another model: write the same model, with the same data"
            )


def _prior_of(graph: Graph, shared: Variable) -> Plate:
    """The plate of the prior that stands for the boundary."""
    if not isinstance(shared, Variable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ModelError(f"a part needs the vector that it shares with the others, not {in_words(shared)}")
    node = graph.nodes[shared.node.position] if 0 <= shared.node.position < len(graph.nodes) else None
    if node is None or node.family is not MultivariateGaussian or node.size != 1 or shared.index is not None:
        raise ModelError(
            f"parts share one vector, and {shared.name!r} is not a vector; write model.gaussian(name, mean, covariance=...)"
        )
    for plate, port in graph.edges_of(node.position):
        if isinstance(plate.factor, Prior) and port == "x":
            return plate
    raise ModelError(f"variable {shared.name!r} has no prior of its own that could stand for the boundary")


def _word(key: Any) -> str:
    return f"{key[0]} {key[1]}" if isinstance(key, tuple) else str(key)


def _key(word: str) -> Any:
    number, _, port = word.partition(" ")
    return (int(number), port) if port else int(number)
