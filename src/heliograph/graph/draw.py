"""A graph for people: a table, graphviz' language, and a picture where graphviz is installed."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from heliograph.errors import ModelError
from heliograph.families.tables import html_table, shortened, text_table
from heliograph.graph.hyper import Hyper
from heliograph.graph.records import Graph, Node, Plate

__all__ = ["draw_graph", "layers_of", "render_dot", "render_html", "render_line", "render_png", "render_summary"]


_VARIABLES = ("variable", "family", "shape", "observed")
_FACTORS = ("factor", "elements", "between")


def _rows(graph: Graph) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """The rows of the tables of variables and of factors."""
    nodes = [
        (n.name, n.family.__name__ + (f"({n.dimension})" if n.dimension else ""), str(n.shape), _seen(n))
        for n in graph.nodes
    ]
    plates = [(plate.factor.name, str(plate.size), _between(graph, plate)) for plate in graph.plates]
    return cast("list[tuple[str, ...]]", nodes), cast("list[tuple[str, ...]]", plates)


def render_summary(graph: Graph, hypers: Sequence[Hyper] = (), gates: Sequence[str] = ()) -> str:
    """Variables and hyper-parameters, then factors, as two tables, and what is under gates."""
    nodes, plates = _rows(graph)
    nodes += [(h.name, h.prior.words, str(h.prior.shape), "") for h in hypers if not h.variable]
    return "\n".join(
        [*text_table(_VARIABLES, nodes), "", *text_table(_FACTORS, plates), *(["", *gates] if gates else [])]
    )


def render_html(graph: Graph, gates: Sequence[str] = ()) -> str:
    """The same for a notebook."""
    nodes, plates = _rows(graph)
    return html_table(_VARIABLES, nodes) + html_table(_FACTORS, plates, gates)


def render_line(graph: Graph, gates: Sequence[str] = ()) -> str:
    """The names of the variables, those that were observed marked, in one line."""
    names = [n.name + (" (observed)" if n.fully_observed else "") for n in graph.nodes if n.given]
    under = "; and what is under gates, see summary()" if gates else ""
    return shortened(f"Model({', '.join(names)}{under})", 300)


def _seen(node: Node) -> str:
    return "" if node.observed is None else f"{int(node.observed.is_point.sum())} of {node.size}"


def _between(graph: Graph, plate: Plate) -> str:
    names = {port: graph.nodes[edge.node].name for port, edge in plate.edges.items()}
    made = ", ".join(names.pop(port) for port in plate.factor.children if port in names)
    parents = ", ".join(dict.fromkeys(names.values()))
    return " -> ".join(part for part in (parents, made) if part)


def render_dot(graph: Graph) -> str:
    """The factor graph in graphviz' language: ellipses are variables (grey: observed), squares are factors."""
    lines = ["graph model {", "  rankdir=TB;", '  node [fontname="Helvetica", fontsize=11];']
    for node in graph.nodes:
        fill = ', style=filled, fillcolor="gray85"' if node.observed is not None else ""
        shape = "" if node.shape == () else f"\\n{'x'.join(map(str, node.shape))}"
        lines.append(f'  v{node.position} [label="{_quote(node.name)}{shape}"{fill}];')
    for plate in graph.plates:
        many = f" x{plate.size}" if plate.size > 1 else ""
        lines.append(
            f'  f{plate.position} [label="{_quote(plate.factor.name)}{many}", shape=box, style=filled, fillcolor="lightyellow"];'
        )
        for port, edge in plate.edges.items():
            lines.append(f'  f{plate.position} -- v{edge.node} [label="{_quote(port)}", fontsize=8];')
    return "\n".join([*lines, "}"])


def _quote(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def render_png(graph: Graph, path: str | Path) -> Path:
    """Draw with graphviz' ``dot`` program."""
    program = shutil.which("dot")
    if program is None:
        raise ModelError(
            "drawing a PNG needs the graphviz program 'dot', which is not installed; model.to_dot() gives its input as text"
        )
    path = Path(path)
    subprocess.run([program, "-Tpng", "-o", str(path)], input=render_dot(graph).encode(), check=True)
    return path


_MOST = 60  # nodes and factors, beyond which a picture shows nothing
_LABEL = 16  # letters of a name


def layers_of(graph: Graph) -> tuple[list[int], list[int]]:
    """The layer of every node and of every plate: a plate is below its parents, and a node below what makes it."""
    node = [0] * len(graph.nodes)
    plate = [0] * len(graph.plates)
    for _ in range(len(graph.plates) + 1):
        before = list(node)
        for k, p in enumerate(graph.plates):
            parents = [node[e.node] for port, e in p.edges.items() if port not in p.factor.children]
            plate[k] = 1 + max(parents, default=-2)
            for child in (e for port, e in p.edges.items() if port in p.factor.children and parents):
                node[child.node] = max(node[child.node], plate[k] + 1)
        if node == before:
            break
    return node, plate


def draw_graph(graph: Graph, ax: Any = None) -> Any:
    """Draw variables as circles (grey: observed) and factors as squares, with lines between; returns the axes."""
    if len(graph.nodes) + len(graph.plates) > _MOST:
        raise ModelError(
            f"a picture of {len(graph.nodes)} variables and {len(graph.plates)} factors would show nothing; see model.summary()"
        )
    if ax is None:
        from matplotlib import pyplot

        ax = pyplot.subplots(figsize=(8, 6))[1]
    nodes, plates = layers_of(graph)
    places = _places([*nodes, *plates])
    at_node, at_plate = places[: len(nodes)], places[len(nodes) :]
    for p, here in zip(graph.plates, at_plate, strict=True):
        for edge in p.edges.values():
            there = at_node[edge.node]
            ax.plot([here[0], there[0]], [here[1], there[1]], color="0.6", linewidth=1, zorder=1)
    box = {"boxstyle": "square", "facecolor": "lightyellow", "edgecolor": "0.4"}
    for p, (x, y) in zip(graph.plates, at_plate, strict=True):
        many = f" x{p.size}" if p.size > 1 else ""
        ax.text(x, y, shortened(p.factor.name, _LABEL) + many, ha="center", va="center", fontsize=7, bbox=box, zorder=2)
    for n, (x, y) in zip(graph.nodes, at_node, strict=True):
        round_ = {"boxstyle": "round", "facecolor": "0.85" if n.observed is not None else "white", "edgecolor": "0.2"}
        size = f"\n{'x'.join(map(str, n.shape))}" if n.shape else ""
        ax.text(x, y, shortened(n.name, _LABEL) + size, ha="center", va="center", fontsize=8, bbox=round_, zorder=3)
    ax.set_axis_off()
    ax.margins(0.15)
    return ax


def _places(layers: list[int]) -> np.ndarray:
    """Every layer spread evenly from side to side, parents on top."""
    found = np.zeros((len(layers), 2))
    for layer in sorted(set(layers)):
        inside = [k for k, l in enumerate(layers) if l == layer]
        found[inside, 0] = (np.arange(len(inside)) + 0.5) / len(inside)
        found[inside, 1] = -float(layer)
    return found
