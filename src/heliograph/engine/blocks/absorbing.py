"""Sums of a black box's output and other unknowns, rewritten as the output of a larger black box.

In ``y = c + f(a, b) + noise`` the offset c depends on a and b, and f's output is on a loop with f's inputs. The oracles can
treat several inputs jointly, but no input jointly with the output. So c becomes an input, and the box computes
``s = f(a, b) + c``. Its old output becomes a leaf, which is computed only when somebody reads it (docs/decisions/0054).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, cast

from heliograph.engine.blocks.joining import ports_on_loops
from heliograph.engine.blocks.records import Block
from heliograph.factors import Difference, Sum
from heliograph.factors.black_box import BlackBox, BoxWithTerm
from heliograph.factors.black_box.terms import TERMS
from heliograph.families import Gaussian
from heliograph.graph.records import Edge, Graph, Node, Plate

__all__ = ["with_absorbed_terms"]


class _Absorbed(NamedTuple):
    """A plate of a black box, the sum that its output is part of, and the port of the sum that the output is at."""

    box: Plate
    sum: Plate
    port: str


def with_absorbed_terms(graph: Graph, blocks: Sequence[Block]) -> Graph:
    """The graph with one more input at black boxes whose output is on a loop and is added to another unknown."""
    found = _candidates(graph)
    if not found:
        return graph
    on_loops = ports_on_loops(graph, blocks)
    chosen = {a.box.position: a for a in found if a.box.factor.child in on_loops.get(a.box.position, ())}
    if not chosen:
        return graph
    sums = {a.sum.position: a for a in chosen.values()}  # of two outputs that are added, one is the other's term
    chosen = {a.box.position: a for a in sums.values()}
    made = replace(graph, plates=[])
    for plate in graph.plates:
        if plate.position in chosen:
            plate = _with_term(chosen[plate.position])
        elif plate.position in sums:
            plate = sums[plate.position].box  # a leaf now, for whoever reads the function's own value
        made.plates.append(replace(plate, position=len(made.plates)))
    return made


def _candidates(graph: Graph) -> list[_Absorbed]:
    boxes = [p for p in graph.plates if isinstance(p.factor, BlackBox) and _plain(p)]
    met = graph.meetings() if boxes else {}
    found: list[_Absorbed] = []
    for plate in boxes:
        edge = plate.edges[plate.factor.child]
        others = [(p, port) for p, port in met[edge.node] if p is not plate]
        if len(others) == 1 and _whole(graph.nodes[edge.node], edge, plate):
            sum_, port = others[0]
            if isinstance(sum_.factor, (Sum, Difference)) and port in "ab" and _fits(graph, plate, sum_, port):
                found.append(_Absorbed(plate, sum_, port))
    return found


def _plain(plate: Plate) -> bool:
    """Whether a black box has one output, which is a number, and no input of a term's name."""
    sampler = cast(BlackBox, plate.factor).sampler
    plain = sampler.output is Gaussian and not sampler.more and sampler.counted is None
    return plain and plate.factor.child in plate.edges and not set(TERMS) & set(sampler.inputs)


def _whole(node: Node, edge: Edge, plate: Plate) -> bool:
    """Whether the elements of a plate are the entries of a node, none of them observed."""
    return edge.index is None and node.size == plate.size and node.dimension is None and node.observed is None


def _fits(graph: Graph, box: Plate, sum_: Plate, port: str) -> bool:
    """Whether a sum adds one unknown to each element of a black box, and its result is not observed itself."""
    other = sum_.edges.get("b" if port == "a" else "a")
    if other is None or sum_.size != box.size or sum_.edges[port].index is not None:
        return False
    term = graph.nodes[other.node]
    free = term.family is Gaussian and term.dimension is None and not term.fully_observed
    return free and _whole(graph.nodes[sum_.edges["out"].node], sum_.edges["out"], sum_)


def _with_term(one: _Absorbed) -> Plate:
    box, sum_, port = one
    name = "added" if isinstance(sum_.factor, Sum) else "subtracted" if port == "a" else "minuend"
    edges = {p: e for p, e in box.edges.items() if p != box.factor.child}
    edges[name] = sum_.edges["b" if port == "a" else "a"]
    factor = BoxWithTerm(box.factor, name)  # type: ignore[arg-type]
    return replace(box, factor=factor, edges={**edges, factor.child: sum_.edges["out"]})
