"""A model made ready to run: a graph that no longer changes, the kind of every plate, and the order of messages."""

from __future__ import annotations

from typing import NamedTuple

from heliograph.engine.blocks.graph import with_blocks, with_products
from heliograph.engine.discrete.counts import with_counts
from heliograph.engine.discrete.graph import with_discrete_blocks
from heliograph.engine.plates import Exchange, PlateKind, compile_plates
from heliograph.engine.plates.block import BlockPlate
from heliograph.engine.pooling import with_pooled_samples
from heliograph.engine.schedule import Schedule, Task, plan, silent_tasks
from heliograph.engine.tables import Rows
from heliograph.graph.records import Graph, Node

__all__ = ["CompiledModel", "compile_model", "with_joint_parts"]


class CompiledModel(NamedTuple):
    """The part of a run that stays the same, shared with the posteriors that it gives."""

    graph: Graph
    plates: tuple[PlateKind, ...]
    schedule: Schedule
    late: frozenset[int]  # nodes to which some messages are sent only when a posterior is read
    hidden: frozenset[int]  # nodes inside blocks that nothing else reads: their beliefs are made when asked for
    met: frozenset[
        int
    ]  # nodes of blocks that other factors touch: when their beliefs have settled, so has the joint one
    blocks: tuple[BlockPlate, ...]  # the Gaussian blocks
    joint_tasks: tuple[Task, ...]  # what blocks send in a sweep
    learning_plates: tuple[int, ...]  # the positions of the plates whose messages are learned

    def send(self, exchange: Exchange, task: Task, damping: float = 0.0, rows: Rows = None) -> None:
        """Send one direction of one plate."""
        self.plates[task.plate].send(exchange, task, damping, rows)

    @property
    def n_learned(self) -> int:
        """The number of messages of black boxes in a sweep, all directions counted."""
        tasks = (*self.schedule.once, *self.schedule.sweep) or self.schedule.final
        return sum(self.plates[t.plate].n_learned for t in tasks)

    def watched(self) -> list[Node]:
        """The nodes whose beliefs show whether the run has settled: the user's, or all where none is the user's."""
        free = [
            n
            for n in self.graph.nodes
            if not n.fully_observed and n.position not in self.late and n.position not in self.hidden
        ]
        # a node of tuples is watched in place of the user's categories that it stands for
        shown = [n for n in free if n.given or n.position in self.met or (n.times is not None and n.family.discrete)]
        return shown if any(n.given for n in shown) else free


def with_joint_parts(graph: Graph, structure: str = "auto", budget: float = 2.0) -> Graph:
    """Put blocks in the place of everything that is kept joint."""
    if structure == "factorised":
        return with_products(graph)
    must = structure == "joint"
    graph = with_blocks(with_pooled_samples(graph), must, budget)
    return with_counts(with_discrete_blocks(graph, must))


def compile_model(graph: Graph, structure: str = "auto", budget: float = 2.0) -> CompiledModel:
    """Choose what is kept joint, the kind of every plate and the phase of every message."""
    graph = with_joint_parts(graph, structure, budget)
    plates = compile_plates(graph)
    schedule = plan(graph, lambda task: plates[task.plate].reads(task.to))
    in_loop = {*schedule.once, *schedule.sweep}
    every = {Task(p.position, port) for p in graph.plates for port in p.edges} - silent_tasks(graph)
    late = frozenset(graph.plates[t.plate].edges[t.to].node for t in every - in_loop)
    seen = {e.node for p in graph.plates for e in p.edges.values()}
    hidden = frozenset(n.position for n in graph.nodes if n.position not in seen)
    joint = {e.node for p in graph.plates for e in p.edges.values() if e.joint}
    met = {e.node for p in graph.plates for e in p.edges.values() if not e.joint} & joint
    met = {
        k for k in met if graph.nodes[k].family.gaussian
    }  # only differences of Gaussians can move while all else has settled
    blocks = tuple(p for p in plates if isinstance(p, BlockPlate))
    met -= {k for kind in blocks for k in _implied(graph, kind, late | hidden)}
    joint_tasks = tuple(t for t in schedule.sweep if graph.plates[t.plate].edges[t.to].joint)
    learning = tuple(k for k, plate in enumerate(plates) if plate.n_learned)
    return CompiledModel(graph, plates, schedule, late, hidden, frozenset(met), blocks, joint_tasks, learning)


def _implied(graph: Graph, kind: BlockPlate, unseen: frozenset[int]) -> frozenset[int]:
    """The nodes of blocks that are one vector whose belief is watched: no expression of it moves by more nats than it does."""
    block = kind.factor.block
    for k, columns in block.base.items():
        node = graph.nodes[k]
        whole = node.dimension is not None and len(columns) == block.n_columns and bool((columns >= 0).all())
        if whole and node.size == 1 and node.given and k not in unseen:
            return frozenset(block.nodes)
    return frozenset()
