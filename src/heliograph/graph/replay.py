"""A model written again, with numbers for its hyper-parameters: the model at a given value is an ordinary model.

Every call of the language is kept on the tape of the draft. `Replay` makes the same calls on a draft of its own, so that whatever
the language can say, a hyper-parameter can be part of (decision 0043).
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import numpy as np

from heliograph.errors import ModelError
from heliograph.graph.data import plain
from heliograph.graph.draft import Draft
from heliograph.graph.pinned import applied
from heliograph.graph.quantity import Quantity
from heliograph.graph.records import Graph, Node
from heliograph.graph.symbols import Values, substituted
from heliograph.graph.tape import Call, Taped
from heliograph.graph.variable import Variable

__all__ = ["Replay"]

_Handle = tuple[Node, np.ndarray | None, tuple[int, ...]]  # what a variable points to


class Replay:
    """A model at given values of its hyper-parameters.

    Parameters
    ----------
    original
        The model as the user wrote it.
    values
        The values of the hyper-parameters by name.
    fixed
        Names of variables that are given numbers, too.
    chosen
        Which calls are made; by default all.
    """

    def __init__(
        self, original: Taped, values: Values, fixed: frozenset[str], chosen: Callable[[Call], bool] | None = None
    ) -> None:
        self.draft = Draft()
        self.draft.values = values
        self._original = original
        self._tape = original.draft.tape
        self._fixed = fixed
        self._chosen = chosen
        self._n_read = 0  # calls of the user's tape
        self._nodes: dict[Node, Node] = {}  # of the user's model -> of this one
        self._own: set[Node] = set()
        self._made: list[tuple[Quantity, _Handle]] = []  # the user's variables, and what they are here
        self.catch_up()

    @property
    def graph(self) -> Graph:
        """Nodes and plates so far."""
        return self.draft.graph

    def catch_up(self) -> None:
        """Make the calls that the user has made since."""
        start, self._n_read = self._n_read, len(self._tape)
        new = [c for c in self._tape[start:] if self._chosen is None or self._chosen(c)]
        if not new:
            return
        with self._entered() as before:
            for call in new:
                args = substituted(call.args, self.draft.values, self._counterpart)
                kwargs = substituted(dict(call.kwargs), self.draft.values, self._counterpart)
                with self.draft.transaction():
                    made = applied(self.draft, call.function, args, kwargs)
                self.draft.tape.append(call)
                if call.made is not None and isinstance(made, np.ndarray):
                    if call.made.node not in self._nodes:  # entries of a variable are known where it is
                        self.draft.pinned[call.made.node] = made
                elif call.made is not None:
                    if made.index is None and made.name in self._fixed:
                        self.draft.pinned[made.node] = np.asarray(self.draft.values[made.name])
                    here = made.node, made.index, made.shape
                    before.append((call.made, _handle(call.made)))
                    self._made.append((call.made, here))
                    self._nodes[call.made.node] = made.node
                    self._own.add(made.node)
                    _point(call.made, here)

    @contextmanager
    def _entered(self) -> Generator[list[tuple[Quantity, _Handle]], None, None]:
        """Let the user's model and its variables be this one: functions that are part of a call use them."""
        old = self._original.draft
        before = [(x, _handle(x)) for x, _ in self._made]
        try:
            self._original.draft = self.draft
            for x, here in self._made:
                _point(x, here)
            yield before
        finally:
            self._original.draft = old
            for x, was in reversed(before):
                _point(x, was)

    def _counterpart(self, x: Any) -> Any:
        """This model's quantity for one of the user's model; anything else as it is."""
        if not isinstance(x, Quantity):
            return plain(x)
        return x if x.node in self.draft.pinned else Quantity(self._node(x.node), x.index)

    def _node(self, node: Node) -> Node:
        if node in self._nodes:
            return self._nodes[node]
        if 0 <= node.position < len(self.graph.nodes):  # of this model already, or found by its name in the user's
            found = self.graph.nodes[node.position]
            if found.name == node.name:
                return found
        if node in self._own:
            return node
        raise ModelError(f"variable {node.name!r} was made in a way that cannot be repeated at other hyper-parameters")

    def has(self, x: Quantity) -> bool:
        """Whether a variable of the user's model is part of this one."""
        self.catch_up()
        return x.node in self._nodes

    def number(self, x: Quantity) -> np.ndarray | None:
        """What a variable of the user's model is here, if it is a number."""
        self.catch_up()
        node = x.node if x.node in self.draft.pinned else self._nodes.get(x.node)
        value = None if node is None else self.draft.pinned.get(node)
        return value if value is None or x.index is None else value.reshape(-1)[x.index]

    def variable(self, x: Quantity) -> Variable:
        """This model's variable for one of the user's model."""
        self.catch_up()
        return Variable(self, self._node(x.node), x.index)


def _handle(x: Quantity) -> _Handle:
    return x.node, x.index, x.shape


def _point(x: Quantity, to: _Handle) -> None:
    x.node, x.index, x.shape = to
