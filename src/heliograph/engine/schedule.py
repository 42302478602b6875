"""The order of messages: which are sent once, which in every sweep, which only at the end.

A task is one direction of one plate. Task t reads task u when u's message is an input of t's factor. Tasks
that lie on a cycle are sent in every sweep; those that only feed the cycles are sent once before, those that only hang
from them once after. A tree of exact factors has no cycle, so one pass is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from heliograph.graph.records import Graph, Node
from heliograph.graph.sparse import connected_parts
from heliograph.numerics.joined_sets import joined_sets

__all__ = ["Schedule", "Task", "TiedPlates", "plan", "silent_tasks", "tied_plates", "visits_of"]


_LONG = 64  # entries of a vector beyond which its covariance costs more than the rest of a sweep


class Task(NamedTuple):
    """One direction of one plate."""

    plate: int
    to: str


class TiedPlates(NamedTuple):
    """Plates of one size tied together entry by entry, which the sequential schedule visits element by element."""

    size: int
    tasks: tuple[Task, ...]  # for one element: down to the children, then back to the parents


class Schedule(NamedTuple):
    """All tasks of a graph, by phase."""

    once: tuple[Task, ...]
    sweep: tuple[Task, ...]
    final: tuple[Task, ...]


Reads = Callable[[Task], tuple[str, ...]]  # the ports whose messages a direction depends on


def plan(graph: Graph, reads_of: Reads) -> Schedule:
    """Sort every direction of every plate into its phase; `reads_of` gives the ports that each depends on."""
    silent = silent_tasks(graph)
    tasks = [
        Task(plate.position, port)
        for plate in graph.plates
        for port, edge in plate.edges.items()
        if not graph.nodes[edge.node].fully_observed and (plate.position, port) not in silent
    ]
    into: dict[int, list[int]] = {}  # node -> tasks that send to it
    for k, t in enumerate(tasks):
        into.setdefault(graph.plates[t.plate].edges[t.to].node, []).append(k)
    reads = [_reads(graph, t, reads_of(t), tasks, into) for t in tasks]
    looped, before, after = _phases(reads)
    once = _in_order([k for k in range(len(tasks)) if before[k]], reads)
    final = _in_order([k for k in range(len(tasks)) if after[k]], reads)
    # what a block says of the user's variables belongs to the sweep, though nothing in it reads that
    in_loop = {tasks[k].plate for k in range(len(tasks)) if looped[k] and _joint(graph, tasks[k])}
    shown = {k for k in final if tasks[k].plate in in_loop and _is_shown(_receiver(graph, tasks[k]))}
    while early := {k for k in shown if any(u in final and u not in shown for u in reads[k])}:
        shown -= early  # what they read is itself sent only at the end
    sweep = _down_and_back(graph, [tasks[k] for k in range(len(tasks)) if looped[k] or k in shown])
    final = [k for k in final if k not in shown]
    return Schedule(tuple(tasks[k] for k in once), sweep, tuple(tasks[k] for k in final))


def silent_tasks(graph: Graph) -> set[Task]:
    """What black boxes would say to their inputs where nobody knows anything of their outputs: nothing.

    Such a box is there to be predicted. Whatever its function, its distribution integrates to one, unless it is a partial one.
    """
    learning = [p for p in graph.plates if p.factor.learns and not p.factor.partial]
    met = graph.meetings() if learning else {}
    found: set[Task] = set()
    for plate in learning:
        outputs = set(plate.edges) & set(plate.factor.children)
        ends = [plate.edges[port].node for port in outputs]
        if ends and all(len(met[k]) == 1 and graph.nodes[k].observed is None for k in ends):
            found |= {Task(plate.position, port) for port in plate.edges if port not in outputs}
    return found


def _reads(
    graph: Graph, task: Task, ports: tuple[str, ...], tasks: list[Task], into: dict[int, list[int]]
) -> list[int]:
    """The tasks whose messages a task reads: all that meet at its ports, less its own where elements do not share entries."""
    plate = graph.plates[task.plate]
    found: list[int] = []
    for port in ports:
        for k in into.get(plate.edges[port].node, ()):
            if tasks[k] != (task.plate, port) or not plate.separate(port):
                found.append(k)
    return found


def _phases(reads: list[list[int]]) -> tuple[list[bool], list[bool], list[bool]]:
    """Masks of the tasks that are sent in every sweep, once before, and once after."""
    n = len(reads)
    cyclic = _on_a_cycle(reads)
    readers: list[list[int]] = [[] for _ in range(n)]
    for k, r in enumerate(reads):
        for u in r:
            readers[u].append(k)
    downstream, upstream = _reach(cyclic, readers), _reach(cyclic, reads)
    looped = [k in downstream and k in upstream for k in range(n)]
    before = [k not in downstream for k in range(n)]
    return looped, before, [k in downstream and not looped[k] for k in range(n)]


def _on_a_cycle(reads: list[list[int]]) -> set[int]:
    n = len(reads)
    if n <= 32:  # SciPy's components cost more than this until a graph has dozens of directions
        return {k for k in range(n) if k in _reach(set(reads[k]), reads)}
    rows = np.repeat(np.arange(n), [len(r) for r in reads])
    cols = np.array([k for r in reads for k in r], dtype=int)
    label = connected_parts(n, rows, cols, strongly=True)
    shared = np.bincount(label)[label] > 1
    return {k for k in range(n) if shared[k] or k in reads[k]}


def _reach(start: set[int], edges: list[list[int]]) -> set[int]:
    """Everything that can be reached from `start`, itself included."""
    seen, stack = set(start), list(start)
    while stack:
        for k in edges[stack.pop()]:
            if k not in seen:
                seen.add(k)
                stack.append(k)
    return seen


def _in_order(chosen: list[int], reads: list[list[int]]) -> list[int]:
    """Readers after what they read (the chosen tasks have no cycle among them)."""
    inside = set(chosen)
    done: set[int] = set()
    order: list[int] = []
    for start in chosen:
        stack = [(start, iter(reads[start]))]
        if start in done:
            continue
        done.add(start)
        while stack:
            k, rest = stack[-1]
            for u in rest:
                if u in inside and u not in done:
                    done.add(u)
                    stack.append((u, iter(reads[u])))
                    break
            else:
                order.append(k)
                stack.pop()
    return order


def _down_and_back(graph: Graph, tasks: list[Task]) -> tuple[Task, ...]:
    """Plates in the order they were made, each to its child; then in reverse, each to its parents."""
    plain = [t for t in tasks if not _joint(graph, t)]
    down = sorted((t for t in plain if t.to in graph.plates[t.plate].factor.children), key=lambda t: t.plate)
    back = sorted((t for t in plain if t.to not in graph.plates[t.plate].factor.children), key=lambda t: -t.plate)
    return (*down, *back, *(t for t in tasks if _joint(graph, t)))  # a block answers all that was said in a sweep


def _is_shown(node: Node) -> bool:
    """Whether the belief of a variable is worth having in every sweep: the user's, unless it is a long vector."""
    return node.given and (node.dimension or 1) <= _LONG


def _joint(graph: Graph, task: Task) -> bool:
    return graph.plates[task.plate].edges[task.to].joint


def _receiver(graph: Graph, task: Task) -> Node:
    return graph.nodes[graph.plates[task.plate].edges[task.to].node]


def tied_plates(graph: Graph, sweep: tuple[Task, ...]) -> tuple[TiedPlates, ...]:
    """Group the tasks of a sweep for the sequential schedule."""
    sweep = tuple(t for t in sweep if not _joint(graph, t))  # a block has no elements to visit
    plates = sorted({t.plate for t in sweep})
    by_node: dict[int, list[int]] = {}
    for p in plates:
        plate = graph.plates[p]
        for edge in plate.edges.values():
            node = graph.nodes[edge.node]
            if edge.index is None and node.size == plate.size > 1 and not node.fully_observed:
                by_node.setdefault(edge.node, []).append(p)
    tied = joined_sets([*([p] for p in plates), *by_node.values()])
    return tuple(TiedPlates(graph.plates[min(s)].size, tuple(t for t in sweep if t.plate in s)) for s in tied)


def visits_of(size: int, most: int) -> list[slice]:
    """The elements of tied plates in their order: one at a time, or in equal groups where there would be too many."""
    ends = np.linspace(0, size, min(size, most) + 1).astype(int)
    return [slice(int(a), int(b)) for a, b in pairwise(ends)]
