"""A variable of the model, for new data or once more for the old, under the posterior of what the data leave alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, cast

import numpy as np

from heliograph.engine.predicting.forward import Drawn, Forward
from heliograph.engine.predicting.prediction import Prediction
from heliograph.engine.predicting.script import Script
from heliograph.errors import ModelError
from heliograph.graph.observing import again
from heliograph.graph.quantity import Quantity
from heliograph.graph.records import Graph, Node, Plate
from heliograph.graph.symbols import Values
from heliograph.graph.tape import named_calls, replayed, rewritten, touched
from heliograph.graph.variable import Variable
from heliograph.numerics.checks import generator_of, in_words

__all__ = ["Seed", "Source", "check_draws", "predicted", "predicted_in", "sampled", "summed"]

Seed = int | np.random.Generator | np.random.SeedSequence


class Source(NamedTuple):
    """A posterior as a source of draws."""

    graph: Graph  # of the run
    draw: Callable[[np.random.Generator, Sequence[int], int], dict[int, np.ndarray]]  # nodes of the run, jointly
    script: Script | None
    values: Values | None = None  # of hyper-parameters


def predicted(seed: Seed, source: Source, target: Variable | str, data: Mapping[str, Any], n: int) -> Prediction:
    """Draws of a variable: those that the new data reach are drawn anew from their parents, the others from the posterior.

    Parameters
    ----------
    seed
        A whole number, or the source of everything random.
    source
        The posterior.
    target
        A name, or a variable or expression of the model.
    data
        New values of data that the model names.
    n
        The number of draws.
    """
    rng, script = generator_of(seed), _usable(source.script, target, data)
    with _with_data(script, data), replayed(_owner(script), _open(script, data), False, source.values) as draft:
        return predicted_in(rng, source, draft.graph, target, touched(script.calls, set(data)), n)


def predicted_in(
    rng: np.random.Generator, source: Source, graph: Graph, target: Quantity | str, reached: set[str], n: int
) -> Prediction:
    """Draws of a variable of a graph as it was written; those in `reached` are drawn anew, the others from the posterior."""
    forward = Forward(rng, graph, _kept(source, graph, reached, rng, n), n)
    if isinstance(target, Quantity):
        return _read(forward, target.node, target.entries(), target.shape)
    node = _named(graph, target)
    if isinstance(node, Plate):
        return _shaped(forward.of_plate(node, None), np.arange(node.size), node.shape)
    return _read(forward, node, np.arange(node.size), node.shape)


def sampled(seed: Seed, source: Source, variables: Sequence[str | Variable] | None, n: int) -> dict[str, np.ndarray]:
    """Joint draws of variables by name: all that are unobserved, or those that were asked for, expressions included."""
    if variables is None:
        wanted: list[Any] = [node.name for node in source.graph.nodes if node.given and not node.fully_observed]
    elif isinstance(variables, (str, Variable)):
        wanted = [variables]
    else:
        wanted = list(variables)
    nodes = [node for node in source.graph.nodes if node.given and not node.fully_observed]
    if all(isinstance(v, str) for v in wanted):
        named = {node.name: node for node in source.graph.nodes}
        for name in wanted:
            if name not in named:
                raise ModelError(f"no variable is called {name!r}; there are {[node.name for node in nodes]}")
        nodes = [named[name] for name in wanted]
    rng = generator_of(seed)
    forward = Forward(rng, source.graph, source.draw(rng, [node.position for node in nodes], n), n)
    found: dict[str, np.ndarray] = {}
    for v in wanted:
        node = v.node if isinstance(v, Variable) else next(x for x in source.graph.nodes if x.name == v)
        one = v if isinstance(v, Variable) else Quantity(node)
        values = forward.values(node)[:, one.entries().reshape(-1)]
        found[one.name] = values.reshape(n, *one.shape, *values.shape[2:])
    return found


def summed(found: dict[str, np.ndarray], pointwise: object) -> dict[str, np.ndarray] | float:
    """Log likelihoods by name as they are, or the sum of all that are known."""
    if not isinstance(pointwise, (bool, np.bool_)):
        raise ModelError(
            f"pointwise must be True or False, not {in_words(pointwise)}; the result has every observed variable"
        )
    return found if pointwise else float(sum(np.nansum(a) for a in found.values()))


def check_draws(n: object) -> int:
    """A number of draws."""
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
        raise ModelError(f"the number of draws is a whole number of 1 or more, not {n!r}")
    return int(cast(Any, n))


def _usable(script: Script | None, target: object, data: Mapping[str, Any]) -> Script:
    if script is None or script.model is None:
        raise ModelError(
            "this posterior was read from a file or a pickle without its model, and cannot predict; "
            "write the model, give it the posterior's beliefs as priors, and predict from there"
        )
    for name in data:
        if name not in script.data:
            raise ModelError(
                f"predict: the model has no data called {name!r}; it has {list(script.data)}. Name an array with "
                "model.data(name, values) to give it again"
            )
    if isinstance(target, Variable):
        if target.model is not script.model:
            raise ModelError(f"variable {target.name!r} belongs to another model than this posterior")
    elif not isinstance(target, str):
        raise ModelError(f"predict takes a variable or its name, not {type(target).__name__}")
    return script


def _owner(script: Script) -> Any:
    return script.model


def _open(script: Script, data: Mapping[str, Any]) -> list[Any]:
    """The calls, without observed values where there are new data: those belong to the old."""
    if not data:
        return list(script.calls)
    reached = touched(script.calls, set(data))
    return rewritten(script.calls, dict.fromkeys(reached & named_calls(script.calls).keys()))


@contextmanager
def _with_data(script: Script, data: Mapping[str, Any]) -> Any:
    """The model's data as they were in the run, but for the new ones; afterwards as they are now."""
    named = _owner(script).draft.data
    before = {name: d.value for name, d in named.items()}
    try:
        for name, values in script.data.items():
            named[name].set(again(named[name], data[name]) if name in data else values)
        yield
    finally:
        for name, values in before.items():
            named[name].set(values)


def _kept(source: Source, graph: Graph, reached: set[str], rng: np.random.Generator, n: int) -> dict[int, np.ndarray]:
    """Draws of the variables that the data do not reach, by their positions in the new graph."""
    old = {node.name: node for node in source.graph.nodes if node.given and not node.fully_observed}
    shared = {
        node.position: old[node.name].position
        for node in graph.nodes
        if node.given and node.name not in reached and node.name in old and node.shape == old[node.name].shape
    }
    draws = source.draw(rng, list(shared.values()), n)
    return {new: draws[position] for new, position in shared.items()}


def _named(graph: Graph, name: str) -> Node | Plate:
    for node in graph.nodes:
        if node.name == name:
            return node
    if name in graph.counts:
        return graph.counts[name]
    names = [*(n.name for n in graph.nodes if n.given), *graph.counts]
    raise ModelError(f"no variable is called {name!r}; there are {names}")


def _read(forward: Forward, node: Node, entries: np.ndarray, shape: tuple[int, ...]) -> Prediction:
    if node.made is None and (node.observed is not None or not forward.has(node)):
        return _shaped(forward.again(node), entries.reshape(-1), shape)
    values = forward.values(node)
    return _shaped(Drawn(values, values, np.zeros(values.shape)), entries.reshape(-1), shape)


def _shaped(drawn: Drawn, entries: np.ndarray, shape: tuple[int, ...]) -> Prediction:
    values, mean, variance = (a[:, entries] for a in drawn)
    total = variance.mean(axis=0) + mean.var(axis=0)
    return Prediction(
        values.reshape((len(values), *shape, *values.shape[2:])),
        mean.mean(axis=0).reshape((*shape, *mean.shape[2:])),
        total.reshape((*shape, *mean.shape[2:])),
    )
