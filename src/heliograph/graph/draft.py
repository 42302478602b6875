"""A graph under construction: it grows by a node or a plate at a time, and a call that fails leaves it as it was."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from heliograph.errors import ModelError
from heliograph.families import Family
from heliograph.graph.contradictions import Limits, Statement
from heliograph.graph.data import Data
from heliograph.graph.hyper import Hyper
from heliograph.graph.records import Gate, Graph, Node, Plate

__all__ = ["Component", "Draft", "Mixing", "Unfolding"]


@dataclass
class Unfolding:
    """A chain that is being written: builders called with its name make entries of one node, and not a node each."""

    n: int  # entries along its first axis
    n_first: int  # of them that are the start
    node: Node | None = None
    following: np.ndarray | None = None  # the entries that the next call makes; None: the start


class Component:
    """A factor that was written as a component of a mixture; it is no variable and cannot be used further."""

    def __init__(
        self, name: str, factor: Any, ports: Mapping[str, Any], data: Mapping[str, np.ndarray], kind: Any
    ) -> None:
        self.made = name, factor, dict(ports), dict(data), kind  # kind is None for counts, which are data

    def __getattr__(self, what: str) -> Any:
        if what.startswith("__"):
            raise AttributeError(what)
        raise self._refusal()

    def _refused(self, other: object) -> Any:
        raise self._refusal()

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __lt__ = __gt__ = __getitem__ = (
        _refused
    )

    def _refusal(self) -> ModelError:
        return ModelError(
            f"a component of the mixture {self.made[0]!r} is one factor, and cannot be used further: a word that needs several "
            "(censored values, random cut points) cannot be a component, and no expression can be made of one"
        )


@dataclass
class Mixing:
    """A mixture that is being written: builders called with its name make its components."""

    entries: Any  # what was observed of it, of `language.children.Entries`
    found: list[Component]


class Draft:
    """The graph that the functions of the modelling language write to; every model has one.

    Attributes
    ----------
    graph
        Nodes and plates so far.
    names
        The names that are taken.
    stacks
        Vectors of scalars, by the scalars: the same scalars make the same vector.
    calls
        What calls that make expressions made (`graph.repeated`): the same call makes the same.
    chains, mixtures
        The chains and the mixtures that are being written, by name.
    inner
        The arguments of the calls that functions given to the call under way have made.
    limits, statements
        The values that constraints and observations leave to the variables, and these statements, each with the node
        whose observed values make it.
    data
        What the user named, to be given again.
    hypers, values
        The hyper-parameters, and the values of those that are not at their reference.
    pinned
        Variables that are numbers here: hyper-parameters with a prior of their own, and what operators make of them.
    tape
        The calls that made the model, of `graph.tape`.
    gates, inside
        The gates that are open, the outermost first, and for every node that was made in a gate the innermost.
    """

    def __init__(self) -> None:
        self.graph = Graph()
        self.names: set[str] = set()
        self.stacks: dict[Hashable, Node] = {}
        self.limits = Limits()
        self.statements: list[tuple[Node, Statement]] = []
        self.calls: dict[Any, Any] = {}
        self.chains: dict[str, Unfolding] = {}  # by name, while they are written
        self.mixtures: dict[str, Mixing] = {}
        self.inner: list[Any] = []
        self.data: dict[str, Data] = {}
        self.hypers: list[Hyper] = []
        self.values: Mapping[str, np.ndarray] = {}
        self.pinned: dict[Node, np.ndarray] = {}
        self.tape: list[Any] = []
        self.gates: list[Gate] = []
        self.inside: dict[Node, Gate] = {}
        self._repeats: dict[str, int] = {}  # how often a name of an expression was taken
        self._n_written = 0  # nodes, expressions included
        self._n_entries = 0  # of all base nodes
        self._undo: list[Callable[[], object]] = []  # how to take back every change since the outermost call began
        self._depth = 0  # how many calls of the language are inside one another

    # ---- transactions -------------------------------------------------------------------------------------------
    @contextmanager
    def transaction(self) -> Generator[None, None, None]:
        """Take back everything that was changed inside if it ends in an exception."""
        mark = len(self._undo)
        self._depth += 1
        try:
            yield
        except BaseException:
            while len(self._undo) > mark:
                self._undo.pop()()
            raise
        finally:
            self._depth -= 1
            if not self._depth:
                self._undo.clear()

    @property
    def busy(self) -> bool:
        """Whether a call of the language is under way."""
        return self._depth > len(self.gates)

    def record(self, undo: Callable[[], object]) -> None:
        """Note how to take back the change just made."""
        if self._depth:
            self._undo.append(undo)

    # ---- gates --------------------------------------------------------------------------------------------------
    @contextmanager
    def under(self, gate: Gate) -> Generator[None, None, None]:
        """Let the calls inside be of some branches only: they stay on the tape, and what they change is taken back."""
        mark, n_calls, stacks = len(self._undo), len(self.tape), dict(self.stacks)
        gate.start = self._n_written
        self.gates.append(gate)
        self._depth += 1
        try:
            yield
        except BaseException:
            del self.tape[n_calls:]
            raise
        finally:
            while len(self._undo) > mark:
                self._undo.pop()()
            self.stacks = stacks
            self._depth -= 1
            self.gates.pop()
            if not self._depth:
                self._undo.clear()

    def note(self, call: Any) -> None:
        """Put a call on the tape, with the gates that it was made under."""
        self.tape.append(call._replace(gates=tuple(self.gates)) if self.gates else call)
        if call.made is not None:
            for gate in self.gates:
                if call.made.node.order >= gate.start:  # and no entry of what was there before
                    self.inside[call.made.node] = gate

    def check_open(self, x: Any) -> None:
        """Refuse a variable that was made in a gate which is closed."""
        gate = self.inside.get(getattr(x, "node", None))  # type: ignore[arg-type]
        if gate is not None and gate not in self.gates:
            raise ModelError(
                f"variable {x.name!r} was made under the gate {gate} and can only be used inside that `with` block; make it "
                "before the block if other parts of the model need it"
            )

    # ---- nodes --------------------------------------------------------------------------------------------------
    def node(self, name: str, family: type[Family], shape: tuple[int, ...], dimension: int | None, given: bool) -> Node:
        """Make a base node and put it into the graph; `given` says that the user named it."""
        if given:
            self.check_name(name)
        if 0 in shape:
            raise ModelError(f"variable {name!r}: it has no entries, its shape is {shape}; leave it out of the model")
        node = Node(-1, name, family, shape, dimension, given)
        self.number(node)
        self.enter(node)
        return node

    def check_name(self, name: object) -> None:
        """Refuse what is no name, and names that are taken."""
        if not isinstance(name, str) or not name:
            raise ModelError("a variable needs a name, for example model.gaussian('w', ...)")
        if name in self.names:
            raise ModelError(f"a variable called {name!r} exists already; choose another name")

    def unfolds(self, name: object) -> bool:
        """Return whether a chain of this name is being written."""
        return isinstance(name, str) and name in self.chains

    def mixes(self, name: object) -> bool:
        """Return whether a mixture of this name is being written."""
        return isinstance(name, str) and name in self.mixtures

    def component(self, name: str, factor: Any, ports: Any, data: Any, kind: Any) -> Any:
        """Keep a factor as a component of the mixture of this name, which is being written."""
        made = Component(name, factor, ports, data, kind)
        self.mixtures[name].found.append(made)
        return made

    def number(self, node: Node) -> None:
        """Give a new node its place in the order of writing, and its entries theirs among all base entries."""
        node.order, self._n_written = self._n_written, self._n_written + 1
        if node.made is None:
            node.start, self._n_entries = self._n_entries, self._n_entries + node.size

    def enter(self, node: Node) -> None:
        """Put a node into the graph, under a name of its own."""
        base = node.name
        while node.name in self.names:
            self._repeats[base] = self._repeats.get(base, 1) + 1
            node.name = f"{base} #{self._repeats[base]}"
        self.take_name(node.name)
        node.position = len(self.graph.nodes)
        self.graph.nodes.append(node)

        def leave() -> None:
            self.graph.nodes.pop()
            node.position, node.name = -1, base

        self.record(leave)

    def keep_call(self, key: Any, made: Any) -> None:
        """Keep what a call made."""
        self.calls[key] = made
        self.record(lambda: self.calls.pop(key, None))

    def take_name(self, name: str) -> None:
        """Let no other variable have this name."""
        self.names.add(name)
        self.record(lambda: self.names.discard(name))

    def set_observed(self, node: Node, observed: Family | None) -> None:
        """Set what was seen of a node."""
        before = node.observed
        node.observed = observed
        self.record(lambda: setattr(node, "observed", before))

    def add_hyper(self, hyper: Hyper) -> None:
        """Put a hyper-parameter into the model."""
        if self.gates:
            raise ModelError(
                f"hyper-parameter {hyper.name!r}: a model with gates has no hyper-parameters; make scales Gamma variables "
                "given as precision=, or fix their values"
            )
        self.hypers.append(hyper)
        self.record(self.hypers.pop)

    # ---- plates and statements ----------------------------------------------------------------------------------
    def add_plate(self, plate: Plate) -> Plate:
        """Put a plate into the graph."""
        self.graph.plates.append(plate)
        self.record(self.graph.plates.pop)
        return plate

    def note_counts(self, name: str, plate: Plate) -> None:
        """Remember how counts are made, whether they were seen or not."""
        self.graph.counts[name] = plate
        self.record(lambda: self.graph.counts.pop(name, None))

    def limit(self, node: Node, statement: Statement) -> None:
        """Narrow what is left of the variables by a statement that the observed values of `node` make."""
        self.limits.add(statement, self.record)
        self.statements.append((node, statement))
        self.record(self.statements.pop)

    def forget_limits(self) -> list[tuple[Node, Statement]]:
        """Begin without any limits, and return the statements so far."""
        before = self.limits, self.statements
        self.limits, self.statements = Limits(), []

        def back() -> None:
            self.limits, self.statements = before

        self.record(back)
        return before[1]
