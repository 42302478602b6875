"""A model written again, with numbers for its hyper-parameters: the model at a given value is an ordinary model.

Every call of the language is kept on the tape of the draft. `Replay` makes the same calls on a draft of its own, so that whatever
the language can say, a hyper-parameter can be part of (decision 0043).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from heliograph.errors import ModelError
from heliograph.factors import Factor
from heliograph.graph.data import plain
from heliograph.graph.draft import Draft
from heliograph.graph.quantity import Quantity
from heliograph.graph.records import Graph, Node
from heliograph.graph.symbols import Values, substituted
from heliograph.graph.variable import Variable

__all__ = ["Replay"]


class Replay:
    """A model at given values of its hyper-parameters.

    Parameters
    ----------
    original
        The draft of the model as the user wrote it.
    values
        The values of the hyper-parameters by name.
    fixed
        Names of variables that are given numbers, too.
    """

    def __init__(self, original: Draft, values: Values, fixed: frozenset[str]) -> None:
        self.draft = Draft()
        self._original = original
        self._values = values
        self._fixed = fixed
        self._nodes: dict[Node, Node] = {}  # of the user's model -> of this one
        self._n_made = 0  # calls so far
        self.catch_up()

    @property
    def graph(self) -> Graph:
        """Nodes and plates so far."""
        return self.draft.graph

    def _black_box(self, factor: Factor, arguments: dict[str, Any]) -> Variable:
        raise ModelError("a factor is called on variables of the model, not on those of a copy of it")

    def catch_up(self) -> None:
        """Make the calls that the user has made since."""
        for call in self._original.tape[self._n_made :]:
            args = substituted(call.args, self._values, self._counterpart)
            kwargs = substituted(dict(call.kwargs), self._values, self._counterpart)
            made = call.function(self.draft, *args, **kwargs)
            if call.made is not None:
                self._nodes[call.made.node] = made.node
            self._n_made += 1

    def _counterpart(self, x: Any) -> Any:
        """This model's quantity for one of the user's model, or its number where it is fixed; anything else as it is."""
        if not isinstance(x, Quantity):
            return plain(x)
        if x.name in self._fixed:
            whole = np.asarray(self._values[x.name])
            return whole if x.index is None else whole.reshape(-1)[x.index]
        return Quantity(self._node(x.node), x.index)

    def _node(self, node: Node) -> Node:
        if node in self._nodes:
            return self._nodes[node]
        if 0 <= node.position < len(self.graph.nodes):  # found by its name in the user's model
            found = self.graph.nodes[node.position]
            if found.name == node.name:
                return found
        raise ModelError(f"variable {node.name!r} was made in a way that cannot be repeated at other hyper-parameters")

    def variable(self, x: Quantity) -> Variable:
        """This model's variable for one of the user's model."""
        self.catch_up()
        return Variable(self, self._node(x.node), x.index)
