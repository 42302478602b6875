"""Where a run begins: near the mode, if many sites say much about few unknowns; by mean-field messages of precisions."""

from __future__ import annotations

import numpy as np

from heliograph.engine.array_start import Early, start_on_arrays
from heliograph.engine.compiled import CompiledModel
from heliograph.engine.plates import Exchange
from heliograph.engine.tables import Snapshot, Tables
from heliograph.families import Family, Gamma
from heliograph.graph.records import Graph, Plate

__all__ = ["start", "warm_messages"]


_STEPS = 8  # of Newton's method, at most
_CLOSE = 0.1  # of a standard deviation: a step this short is followed by one that moves less than the first sweep does
_PASSES = 3  # of mean-field messages


def start(compiled: CompiledModel, exchange: Exchange, early: Early | None = None) -> None:
    """Give a run better messages to begin with than uniform ones; with `early`, its first sweeps may be rough ones on arrays.

    They are an ordinary state of the run: whatever they are, the sweeps that follow have the same fixed points. Where the graph
    has unknown precisions or rates (docs/decisions/0042), whose messages by EP need what a prior alone does not have (a
    Gamma of shape 1 has no expected inverse), factors begin by their rules of mean-field inference, which are always proper.
    Black boxes are spared: their operators would learn messages that no sweep sends.
    """
    exchange.beginning = _with_rules(compiled)
    _near_the_mode(compiled, exchange, early)
    if exchange.beginning:
        _mean_field(compiled, exchange)
    exchange.beginning = frozenset()


def _with_rules(compiled: CompiledModel) -> frozenset[int]:
    """The plates that begin by mean-field messages: all that have a rule, if one of them has an unknown precision or rate."""
    graph = compiled.graph
    plates = {t.plate for t in compiled.schedule.sweep if graph.plates[t.plate].factor.begins}
    nodes = [graph.nodes[e.node] for k in plates for e in graph.plates[k].edges.values()]
    return frozenset(plates) if any(n.family is Gamma and not n.fully_observed for n in nodes) else frozenset()


def _mean_field(compiled: CompiledModel, exchange: Exchange) -> None:
    """Send every message of a sweep a few times, those of black boxes excepted; undo it where that breaks a belief."""
    tables, watched = exchange.tables, compiled.watched()
    kept, proper = tables.snapshot(copy=False), [tables.belief(node).proper for node in watched]
    for _ in range(_PASSES):
        for task in compiled.schedule.sweep:
            if not compiled.plates[task.plate].n_learned:
                compiled.send(exchange, task)
    if any((was & ~tables.belief(node).proper).any() for node, was in zip(watched, proper, strict=True)):
        tables.restore(kept, copy=False)


def _near_the_mode(compiled: CompiledModel, exchange: Exchange, early: Early | None) -> None:
    """Give the sites of blocks messages from near the mode of the whole model, where that is better than uniform ones."""
    blocks, tables = compiled.blocks, exchange.tables
    if compiled.learning_plates or all(block.starts_uniform for block in blocks):
        return
    on_arrays = exchange.power == 1.0 and not exchange.beginning and start_on_arrays(compiled, tables, early)
    if on_arrays or _by_narrow_cavities(compiled, exchange):
        for task in compiled.joint_tasks:
            compiled.send(exchange, task)


def _by_narrow_cavities(compiled: CompiledModel, exchange: Exchange) -> bool:
    """Give the sites of blocks the messages of narrow cavities at the mode of the whole model.

    From uniform sites, a hundred thousand labels that answer to a broad prior all overshoot at once. Where a step fails
    the sites start uniform, and the answer is False.
    """
    blocks, tables = compiled.blocks, exchange.tables
    kept = tables.snapshot(copy=False)
    joint = set(compiled.joint_tasks)
    others = [task for task in compiled.schedule.sweep if task not in joint]
    before: list[np.ndarray | None] = [None] * len(blocks)
    for _ in range(_STEPS):
        found = [block.narrow(tables) for block in blocks]
        if all(f is None for f in found):
            tables.restore(kept, copy=False)
            return False
        moving = False
        for k, f in enumerate(found):
            old = before[k]
            if f is not None:
                moving |= old is None or bool((np.abs(f.mean - old) > _CLOSE * np.sqrt(f.variance)).any())
                before[k] = f.mean
        if not moving:
            break
        for task in others:
            compiled.send(exchange, task)
    if any(block.joint(tables) is None for block in blocks):
        tables.restore(kept, copy=False)
        return False
    return True


# ---- by an earlier run ------------------------------------------------------------------------------------------------
def warm_messages(graph: Graph, earlier: Graph, messages: Snapshot) -> Snapshot:
    """The messages that a run over `graph` begins with, where an `earlier` run had messages of the same kind.

    Plates are matched by their factors and by the names of their variables, rows by their numbers: rows that were added at the end
    begin uniform. What has no match begins uniform too.
    """
    tables = Tables(graph)
    waiting: dict[tuple[str, ...], list[Plate]] = {}
    for plate in earlier.plates:
        waiting.setdefault(_key(earlier, plate), []).append(plate)
    for plate in graph.plates:
        found = waiting.get(_key(graph, plate))
        if not found or any(edge.joint for edge in plate.edges.values()):
            continue
        before = found.pop(0)
        for port in plate.edges:
            message = _fitted(messages.sent[before.position, port], tables.sent[plate.position, port])
            if message is not None:
                tables.store(plate, port, message, None)
    return tables.snapshot(copy=False)


def _key(graph: Graph, plate: Plate) -> tuple[str, ...]:
    return (plate.factor.name, *(f"{port}: {graph.nodes[e.node].name}" for port, e in plate.edges.items()))


def _fitted(old: Family, uniform: Family) -> Family | None:
    """The old messages, with uniform ones for rows that were added; None where they do not fit."""
    if type(old) is not type(uniform) or old.size > uniform.size:
        return None
    if any(a.shape[1:] != b.shape[1:] for a, b in zip(old.naturals, uniform.naturals, strict=True)):
        return None
    return old if old.size == uniform.size else Family.join([old, uniform[old.size :]])
