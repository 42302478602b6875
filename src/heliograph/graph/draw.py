"""A graph for people: a table, graphviz' language, and a picture where graphviz is installed."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from heliograph.errors import ModelError
from heliograph.graph.hyper import Hyper
from heliograph.graph.records import Graph, Node, Plate

__all__ = ["render_dot", "render_png", "render_summary"]


def render_summary(graph: Graph, hypers: Sequence[Hyper] = ()) -> str:
    """Variables and hyper-parameters, then factors, as two tables."""
    rows = [("variable", "family", "shape", "observed")]
    for node in graph.nodes:
        family = node.family.__name__ + (f"({node.dimension})" if node.dimension else "")
        rows.append((node.name, family, str(node.shape), _seen(node)))
    for hyper in hypers:
        if not hyper.variable:
            rows.append((hyper.name, hyper.prior.words, str(hyper.prior.shape), ""))
    below = [("factor", "elements", "between")]
    below += [(plate.factor.name, str(plate.size), _between(graph, plate)) for plate in graph.plates]
    return _table(rows) + "\n\n" + _table(below)


def _seen(node: Node) -> str:
    return "" if node.observed is None else f"{int(node.observed.is_point.sum())} of {node.size}"


def _between(graph: Graph, plate: Plate) -> str:
    names = {port: graph.nodes[edge.node].name for port, edge in plate.edges.items()}
    child = names.pop(plate.factor.child, None)
    parents = ", ".join(dict.fromkeys(names.values()))
    return " -> ".join(part for part in (parents, child) if part)


def _table(rows: list[tuple[str, ...]]) -> str:
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows)


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
