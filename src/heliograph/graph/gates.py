"""Gates: parts of a model that hold only if a switch has a certain value (decision 0052).

The calls inside ``with model.when(switch == k):`` are kept on the tape with their gate. A branch is the model with the calls of
one combination of the switches' values, written by a `Replay` in which the switches are observed.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import cast

import numpy as np

from heliograph.errors import ContradictionError, ModelError, UnsupportedError
from heliograph.families import Bernoulli, Categorical
from heliograph.graph.language.logic import compare, connect, negate
from heliograph.graph.language.statements import observe
from heliograph.graph.quantity import Quantity
from heliograph.graph.records import Condition, Gate, Node
from heliograph.graph.replay import Replay
from heliograph.graph.tape import Call, Taped
from heliograph.graph.variable import ModelLike, Variable

__all__ = ["branches_of", "gate_lines", "has_gates", "switches_of", "when", "write_branch"]

_MOST = 64  # branches, each of which is a run of its own


@contextmanager
def when(self: ModelLike, condition: Variable) -> Generator[None, None, None]:
    """Make what is written in the block conditional: ``with model.when(switch == k):``.

    The condition is a Bernoulli variable or its negation, ``switch == k`` or ``switch != k`` of a Categorical or
    Bernoulli, or several of these joined by ``&``. A switch is one scalar for the whole model. `infer` runs every
    branch by itself and weights the branches by their evidence. Variables that are made in the block can only be
    used in it; blocks that exclude each other may use the same names.

    >>> from heliograph.graph import Builder
    >>> model = Builder()
    >>> biased = model.bernoulli("biased", 0.5)
    >>> with model.when(biased):
    ...     p = model.beta("p", 1.0, 1.0)
    ...     heads = model.bernoulli("heads", p, observed=[1, 1, 0, 1])
    >>> with model.when(~biased):
    ...     heads = model.bernoulli("heads", 0.5, observed=[1, 1, 0, 1])
    """
    if not isinstance(condition, Variable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ModelError(
            f"when takes a condition on a variable, as in model.when(switch == 1), not {type(condition).__name__}"
        )
    if condition.model is not self:
        raise ModelError(f"when: variable {condition.name!r} belongs to another model")
    if self.draft.busy:
        raise ModelError(
            "when: a gate cannot be opened inside a function that the language calls, such as a chain's step"
        )
    self.draft.check_open(condition)
    with self.draft.under(Gate(tuple(_conditions(self, condition)), condition.name)):
        yield


def _conditions(model: ModelLike, x: Quantity) -> list[Condition]:
    """What a condition says of the switches: comparisons, negations and conjunctions are taken apart."""
    call = next((c for c in cast("list[Call]", model.draft.tape) if c.made is x), None)
    if call is not None and call.function is compare and not isinstance(call.args[2], Quantity):
        sign, switch, value = call.args
        node = _switch(switch)
        if np.ndim(value) != 0:
            raise ModelError(f"when: the switch {switch.name!r} is compared with one value at a time")
        other = set(range(node.dimension or 2)) - {int(value)}
        return [Condition(node, frozenset({int(value)} if sign == "==" else other))]
    if call is not None and call.function is negate:
        return [Condition(_switch(call.args[0]), frozenset({0}))]
    if call is not None and call.function is connect and call.args[0] == "&" and isinstance(call.args[2], Quantity):
        return [*_conditions(model, call.args[1]), *_conditions(model, call.args[2])]
    if x.family is Categorical:
        raise ModelError(f"when: say which value the Categorical {x.name!r} has, as in model.when({x.name} == 0)")
    return [Condition(_switch(x), frozenset({1}))]


def _switch(x: Quantity) -> Node:
    """The node of a switch."""
    if x.family not in (Bernoulli, Categorical):
        raise UnsupportedError(
            f"when: a switch is a Bernoulli or a Categorical variable, but {x.name!r} is {x.family.__name__}"
        )
    if x.shape != () or x.index is not None:
        raise UnsupportedError(
            f"when: the switch {x.name!r} has the shape {x.node.shape}, and a gate needs one scalar variable for the whole "
            "model; for a switch per row use model.mixture(name, selector, ...) or model.select(switch, a, b)"
        )
    return x.node


# ---- branches ----------------------------------------------------------------------------------------------------
def has_gates(model: Taped) -> bool:
    """Whether parts of a model hold under a condition only."""
    return any(call.gates for call in model.draft.tape)


def gate_lines(model: Taped) -> list[str]:
    """What is written under every gate, a line for each."""
    found: dict[tuple[Gate, ...], list[str]] = {}
    for call in cast("list[Call]", model.draft.tape):
        if call.gates:
            name = call.name if call.made is None or call.name is not None else call.made.name
            found.setdefault(call.gates, []).append(name or call.function.__name__)
    return [f"when {' and '.join(map(str, gates))}: {', '.join(names)}" for gates, names in found.items()]


def switches_of(model: Taped) -> dict[Node, tuple[Gate, ...]]:
    """The switches in the order of their gates, each with the gates that it was made under itself."""
    calls = cast("list[Call]", model.draft.tape)
    made = {c.made.node: c.gates for c in reversed(calls) if c.made is not None}
    found = [c.switch for call in calls for gate in call.gates for c in gate.conditions]
    return {node: made.get(node, ()) for node in dict.fromkeys(found)}


def branches_of(model: Taped) -> list[dict[Node, int]]:
    """The values of the switches in every branch; a switch that was made under a gate has one only where the gate holds."""
    branches: list[dict[Node, int]] = [{}]
    for switch, gates in switches_of(model).items():
        grown: list[dict[Node, int]] = []
        for branch in branches:
            there = all(g.holds(branch) for g in gates)
            grown += [{**branch, switch: v} for v in range(switch.dimension or 2)] if there else [branch]
        branches = grown
        if len(branches) > _MOST:
            names = ", ".join(repr(s.name) for s in switches_of(model))
            raise UnsupportedError(
                f"the switches {names} make more than {_MOST} branches, each of which is a run of its own; use fewer switches "
                "or values, or model.mixture and model.select, which need no branches"
            )
    return branches


def write_branch(model: Taped, values: Mapping[Node, int]) -> Replay | None:
    """The model of one branch, its switches observed; None where the model says that it is impossible."""

    def chosen(call: Call) -> bool:
        return all(gate.holds(values) for gate in call.gates)

    try:
        branch = Replay(model, {}, frozenset(), chosen)
        for switch, value in values.items():
            here = branch.variable(Quantity(switch))
            seen = here.node.observed
            if seen is None:
                with branch.draft.transaction():
                    observe(branch.draft, here, value, None)
            elif seen.point is None or int(seen.point.reshape(-1)[0]) != value:
                return None
    except ContradictionError:  # what the branch says cannot be: its probability is 0
        return None
    except ModelError as error:  # each gate was right by itself
        where = " and ".join(f"{switch.name} = {value}" for switch, value in values.items())
        raise ModelError(
            f"in the branch where {where}: {error} (these gates hold together there; make them exclude each other)"
        ) from None
    return branch
