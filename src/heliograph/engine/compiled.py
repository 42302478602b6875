"""A model made ready to run: a graph that no longer changes, the kind of every plate, and the order of messages."""

from __future__ import annotations

from typing import NamedTuple

from heliograph.engine.plates import Exchange, PlateKind, compile_plates
from heliograph.engine.schedule import Schedule, Task, plan
from heliograph.engine.tables import Rows
from heliograph.graph.records import Graph, Node

__all__ = ["CompiledModel", "compile_model"]


class CompiledModel(NamedTuple):
    """The part of a run that stays the same, shared with the posteriors that it gives."""

    graph: Graph
    plates: tuple[PlateKind, ...]
    schedule: Schedule
    late: frozenset[int]  # nodes to which some messages are sent only when a posterior is read

    def send(self, exchange: Exchange, task: Task, damping: float = 0.0, rows: Rows = None) -> None:
        """Send one direction of one plate."""
        self.plates[task.plate].send(exchange, task, damping, rows)

    @property
    def n_learned(self) -> int:
        """The number of messages of black boxes in a sweep, all directions counted."""
        tasks = (*self.schedule.once, *self.schedule.sweep) or self.schedule.final
        return sum(self.plates[t.plate].n_learned for t in tasks)

    @property
    def learning_plates(self) -> list[int]:
        """The positions of the plates whose messages are learned."""
        return [k for k, plate in enumerate(self.plates) if plate.n_learned]

    def watched(self) -> list[Node]:
        """The nodes whose beliefs show whether the run has settled: the user's, or all where none is the user's."""
        free = [n for n in self.graph.nodes if not n.fully_observed and n.position not in self.late]
        return [n for n in free if n.given] or free


def compile_model(graph: Graph) -> CompiledModel:
    """Choose the kind of every plate and the phase of every message."""
    plates = compile_plates(graph)
    schedule = plan(graph, lambda task: plates[task.plate].reads(task.to))
    in_loop = {*schedule.once, *schedule.sweep}
    every = {Task(p.position, port) for p in graph.plates for port in p.edges}
    late = frozenset(graph.plates[t.plate].edges[t.to].node for t in every - in_loop)
    return CompiledModel(graph, plates, schedule, late)
