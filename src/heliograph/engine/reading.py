"""Beliefs of expressions that were no part of a run, from the beliefs of their parts."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

from heliograph.errors import AccuracyWarning, ModelError
from heliograph.factors import dot_forward
from heliograph.families import Family, Gaussian, MultivariateGaussian
from heliograph.graph.affine import substitute, whole
from heliograph.graph.overlaps import distribute, resolve
from heliograph.graph.records import Affine, Graph, Inner, Node, Stacked, Term
from heliograph.graph.sparse import connected_parts

__all__ = ["belief_of_expression", "dependent_groups", "groups_of", "in_run", "readable_form"]

Belief = Callable[[Node], Family]  # of a node of the run
JointBelief = Callable[[Affine], Family | None]  # of an expression, where one block holds all of it


def belief_of_expression(
    graph: Graph,
    belief: Belief,
    joint: JointBelief,
    groups: Callable[[], list[np.ndarray]],
    node: Node,
    entries: np.ndarray,
) -> Family:
    """The belief of some entries of an expression, from the beliefs of what it is made of.

    Exact where all parts are of one block (`joint` knows), where at most one part of a row is uncertain, or where the parts
    are independent; otherwise a warning says that their dependence was left out. `groups` gives `dependent_groups` of the
    run's graph.
    """
    form = readable_form(graph, node, entries)
    known = joint(form)
    if known is not None:
        return known
    parts = [_moments(graph, belief, t) for t in form.terms]
    if _dependent(graph, groups, form):
        warnings.warn(
            f"the belief of {node.name!r} is computed as if {_names(form)} were independent, which they are not: its standard "
            "deviation may be wrong; let a factor use the expression, or make them one vector, before the run",
            AccuracyWarning,
            stacklevel=4,
        )
    mean, spread = form.constant.copy(), np.zeros(())
    for term, (m, v) in zip(form.terms, parts, strict=True):
        c = term.coefficients
        mean += (c[:, None] if m.ndim == 2 else c) * m
        spread = spread + c.reshape((-1,) + (1,) * (v.ndim - 1)) ** 2 * v
    if form.constant.ndim == 1:
        return Gaussian(mean, np.broadcast_to(spread, mean.shape)).reshape(form.shape)
    if not np.any(spread):
        return MultivariateGaussian.point_mass(mean).reshape(form.shape)
    return MultivariateGaussian(mean, np.broadcast_to(spread, (*mean.shape, mean.shape[1]))).reshape(form.shape)


def readable_form(graph: Graph, node: Node, entries: np.ndarray) -> Affine:
    """Some entries of a node as an affine expression of nodes that were part of the run."""
    form = whole(node, entries)
    while True:
        form = resolve(form)
        k = next((k for k, t in enumerate(form.terms) if not _readable(graph, t.node)), None)
        if k is None:
            return form
        form = _taken_apart(graph, form, k)


def in_run(graph: Graph, node: Node) -> bool:
    """Return whether a node of the live model was part of the run."""
    return 0 <= node.position < len(graph.nodes)


def _readable(graph: Graph, node: Node) -> bool:
    if in_run(graph, node):
        return True
    if isinstance(node.made, Inner):
        return _readable(graph, node.made.node)
    return isinstance(node.made, Stacked) and all(in_run(graph, part) for part, _ in node.made.parts)


def _taken_apart(graph: Graph, form: Affine, k: int) -> Affine:
    node = form.terms[k].node
    if isinstance(node.made, Affine):
        return substitute(form, k)
    if isinstance(node.made, Inner) and isinstance(node.made.node.made, Affine):
        return distribute(form, k)
    raise ModelError(
        f"variable {node.name!r} was added to the model after this posterior was computed; run infer again"
    )


def _moments(graph: Graph, belief: Belief, term: Term) -> tuple[np.ndarray, np.ndarray]:
    """Means and variances (or covariances) of the entries of a term."""
    node, entries, _ = term
    if in_run(graph, node):
        found = belief(graph.nodes[node.position])[entries]
        _check_proper(node, found)
        return found.mean, found.covariance if isinstance(found, MultivariateGaussian) else found.variance
    if isinstance(node.made, Inner):
        x, vector, entry = node.made
        one = Term(vector, np.array([entry]), np.ones(1))
        mean, covariance = _moments(graph, belief, one)
        if not covariance.any():  # a known vector
            return np.asarray(x[entries] @ mean[0]), np.zeros(len(entries))
        return dot_forward(x[entries], mean[0], covariance[0])
    assert isinstance(node.made, Stacked)
    columns = [_moments(graph, belief, Term(part, at[entries], np.ones(len(entries)))) for part, at in node.made.parts]
    mean, variance = (np.stack(c, axis=-1) for c in zip(*columns, strict=True))
    return mean, variance[..., None] * np.eye(len(columns))


def _check_proper(node: Node, found: Family) -> None:
    if not np.all(found.proper):
        raise ModelError(f"the belief of {node.name!r} is improper, and so is that of every expression of it")


# ---- dependence -------------------------------------------------------------------------------------------------
def dependent_groups(graph: Graph) -> list[np.ndarray]:
    """Number the groups of dependent entries, for every node; entries of different groups are independent, observed ones -1."""
    starts = np.cumsum([0, *(n.size for n in graph.nodes)])
    seen = [np.zeros(n.size, bool) if n.observed is None else n.observed.is_point for n in graph.nodes]
    rows: list[np.ndarray] = [np.zeros(0, int)]
    columns: list[np.ndarray] = [np.zeros(0, int)]
    n = int(starts[-1])
    for plate in graph.plates:
        for port, edge in plate.edges.items():
            index, element = plate.touches(port)
            free = ~seen[edge.node][index]
            rows.append(n + element[free])
            columns.append(starts[edge.node] + index[free])
        n += plate.n_elements
    label = connected_parts(n, np.concatenate(rows), np.concatenate(columns))
    return [np.where(s, -1, label[a:b]) for s, a, b in zip(seen, starts[:-1], starts[1:], strict=True)]


def _dependent(graph: Graph, groups: Callable[[], list[np.ndarray]], form: Affine) -> bool:
    """Return whether some row has two uncertain parts of one group."""
    columns = [c for t in form.terms for c in _sources(graph, t)]
    if len(columns) < 2:
        return False
    found = groups()
    labels = np.stack([np.where(on, found[node.position][entries], -1) for node, entries, on in columns], axis=1)
    labels.sort(axis=1)
    return bool(((labels[:, 1:] == labels[:, :-1]) & (labels[:, 1:] >= 0)).any())


def groups_of(graph: Graph, groups: list[np.ndarray], form: Affine) -> np.ndarray:
    """The groups of dependent entries that an expression has uncertain parts of."""
    found = [groups[node.position][entries[on]] for t in form.terms for node, entries, on in _sources(graph, t)]
    every = np.concatenate([np.zeros(0, dtype=int), *found])
    return np.unique(every[every >= 0])


def _sources(graph: Graph, term: Term) -> list[tuple[Node, np.ndarray, np.ndarray]]:
    """The nodes of the run that a term is made of, their entries, and in which rows they count."""
    node, entries, c = term
    if in_run(graph, node):
        return [(node, entries, c != 0)]
    if isinstance(node.made, Inner):
        return _sources(graph, Term(node.made.node, np.full(len(entries), node.made.entry), c))
    assert isinstance(node.made, Stacked)
    return [(part, at[entries], c != 0) for part, at in node.made.parts]


def _names(form: Affine) -> str:
    return " and ".join(dict.fromkeys(repr(t.node.name) for t in form.terms))
