"""Factors with several ports in one connected part of a block: the expressions at these ports become one vector.

A factor that sees two expressions of one block through two ports would take them for independent. So the expressions are
stacked, and the factor is replaced by a form of it with one vector port (`engine/forms`), which sees their joint cavity and
sends one message of several numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from heliograph.engine.blocks.connections import parts_of_rows, parts_of_scalars
from heliograph.engine.blocks.grouping import is_gaussian_prior, is_linear
from heliograph.engine.blocks.records import Block
from heliograph.engine.blocks.rows import Rows
from heliograph.engine.forms.choosing import Form, joint_form
from heliograph.factors import Stack
from heliograph.families import MultivariateGaussian
from heliograph.graph.loops import links_on_loops
from heliograph.graph.records import Edge, Graph, Node, Plate

__all__ = ["ports_on_loops", "stacked", "with_joint_ports"]


def with_joint_ports(graph: Graph, blocks: Sequence[Block]) -> Graph:
    """The graph with a vector port in place of several ports of one factor that are on a loop through Gaussian variables.

    These may be in a block already, or have a Gaussian prior and no linear relation to any other: the stack makes them a block.
    Factors that have no joint form stay as they are: a loop, of which `infer` warns.
    """
    on_loops = ports_on_loops(graph, blocks)
    if not on_loops:
        return graph
    made = replace(graph, nodes=list(graph.nodes), plates=[])
    forms: dict[tuple[int, tuple[str, ...]], Form | None] = {}
    for plate in graph.plates:
        ports = on_loops.get(plate.position, ())
        key = id(plate.factor), ports
        if len(ports) > 1 and key not in forms:
            forms[key] = joint_form(graph, plate, ports)
        form = forms.get(key)
        if form is not None:
            edge = stacked(made, [plate.edges[p] for p in form.joined], plate.size)
            rest = {p: e for p, e in plate.edges.items() if p not in form.joined}
            joined = {p: plate.edges[p] for p in form.joined}
            plate = replace(plate, factor=form.factor, edges={form.port: edge, **rest}, joined=joined)
        made.plates.append(replace(plate, position=len(made.plates)))
    return made


def ports_on_loops(graph: Graph, blocks: Sequence[Block]) -> dict[int, tuple[str, ...]]:
    """The ports at Gaussian scalars that several of a plate's have on one loop, by the plate's position."""
    inside = {k for block in blocks for k in block.nodes}
    lone = _lone_nodes(graph, inside)
    chosen = {p.position: _candidate_ports(graph, p, inside | lone) for p in graph.plates}
    if not any(len(ports) > 1 for ports in chosen.values()):
        return {}
    return _plates_on_loops(graph, blocks, lone, chosen)


def stacked(graph: Graph, edges: list[Edge], size: int) -> Edge:
    """Add vectors of the scalars at some edges to a graph, and give the edge to them."""
    name = f"({', '.join(graph.nodes[e.node].name for e in edges)})"
    node = Node(len(graph.nodes), name, MultivariateGaussian, (size,), len(edges), False)
    graph.nodes.append(node)
    out = Edge(node.position, None, True)
    ends = {**{f"x{k}": e for k, e in enumerate(edges)}, "out": out}
    graph.plates.append(Plate(len(graph.plates), "stack", Stack(len(edges)), (size,), ends))
    return out


def _lone_nodes(graph: Graph, inside: set[int]) -> set[int]:
    """The scalar nodes in no block all of whose entries have a proper Gaussian prior."""
    priors = {p.edges["x"].node for p in graph.plates if is_gaussian_prior(p) and p.edges["x"].index is None}
    return {k for k in priors - inside if graph.nodes[k].dimension is None and not graph.nodes[k].fully_observed}


def _candidate_ports(graph: Graph, plate: Plate, inside: set[int]) -> tuple[str, ...]:
    """The ports at Gaussian scalars, in a block or alone, of a plate that is no part of a block."""
    if is_linear(graph, plate) or is_gaussian_prior(plate):
        return ()
    return tuple(port for port, e in plate.edges.items() if e.node in inside and graph.nodes[e.node].dimension is None)


def _plates_on_loops(
    graph: Graph, blocks: Sequence[Block], lone: set[int], chosen: dict[int, tuple[str, ...]]
) -> dict[int, tuple[str, ...]]:
    """The ports of each plate that some element has on one loop through parts of blocks and nodes in none."""
    part, n_parts = _parts(graph, blocks, lone)
    entries: list[np.ndarray] = []
    elements: list[np.ndarray] = []
    owners: list[tuple[int, str]] = []
    n = 0
    for plate in graph.plates:
        for port in chosen[plate.position]:
            edge = plate.edges[port]
            at = part[edge.node][edge.entries(plate.size)]
            met = np.flatnonzero(at >= 0)
            entries.append(at[met])
            elements.append(n + met)
            owners += [(plate.position, port)]
        n += plate.size
    links = links_on_loops(np.concatenate(entries), np.concatenate(elements), n_parts, n)
    owner = np.repeat(np.arange(len(owners)), [len(e) for e in entries])
    found: dict[int, tuple[str, ...]] = {}
    for k in np.unique(owner[links]):
        position, port = owners[int(k)]
        found[position] = (*found.get(position, ()), port)
    return {position: ports for position, ports in found.items() if len(ports) > 1}


def _parts(graph: Graph, blocks: Sequence[Block], lone: set[int]) -> tuple[dict[int, np.ndarray], int]:
    """The connected part that each entry of each node belongs to (-1: known), counted over all blocks and lone nodes."""
    found: dict[int, np.ndarray] = {}
    n = 0
    for block in blocks:
        label = parts_of_scalars(_groups(graph, block), block.n_columns)
        for k, rows in block.rows.items():
            own = parts_of_rows(rows, label).reshape(-1, graph.nodes[k].dimension or 1).max(axis=1)
            found[k] = np.where(own >= 0, own + n, -1)
        n += int(label.max(initial=-1)) + 1
    for k in sorted(lone):
        node = graph.nodes[k]
        known = np.zeros(node.size, dtype=bool) if node.observed is None else node.observed.is_point
        found[k] = np.where(known, -1, n + np.arange(node.size))
        n += node.size
    return found, n


def _groups(graph: Graph, block: Block) -> list[tuple[Rows, int]]:
    """The rows that join scalars of a block: those of known weight, and what other factors meet."""
    met = {e.node for p in graph.plates if p.position not in block.plates for e in p.edges.values()}
    sites = [(block.rows[k], graph.nodes[k].dimension or 1) for k in block.nodes if k in met]
    return [*((known.rows, 1) for known in block.known), *sites]
