"""Affine expressions as nodes and plates: what ``+``, ``-``, ``*`` with numbers and ``X @ w`` come down to.

An expression is a node outside the graph until a factor uses it; then its plates are made from its merged form, in
which every random quantity counts once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from heliograph.errors import ModelError, UnsupportedError
from heliograph.factors import Difference, Dot, Factor, Scale, Shift, Stack, Sum
from heliograph.families import Family, Gaussian, MultivariateGaussian
from heliograph.graph.affine import Affine, Inner, Stacked, combine, expand, product_node, scaled, take, whole
from heliograph.graph.assembly import Assembly
from heliograph.graph.check import check_matrix, check_number
from heliograph.graph.overlaps import resolve
from heliograph.graph.records import Edge, Node, Plate
from heliograph.graph.support import makers_first, shared_nodes
from heliograph.graph.transaction import building
from heliograph.graph.variable import Variable

__all__ = ["Linear", "shown"]

_LONGEST = 100  # characters of an expression's name

Step = tuple[Factor, dict[str, Any], dict[str, Any]]  # a factor, its ports and its data


class Linear(Assembly):
    """The operators that make affine expressions of Gaussian variables."""

    # ---- operators used by `Variable` ---------------------------------------------------------------------------
    @building
    def _add(self, a: Any, b: Any) -> Variable:
        return self._sum(a, b, 1.0, "+")

    @building
    def _subtract(self, a: Any, b: Any) -> Variable:
        return self._sum(a, b, -1.0, "-")

    @building
    def _scale(self, a: Variable, constant: Any) -> Variable:
        label = f"({a.name} * {shown(constant)})"
        self._want(label, "argument", a, (Gaussian, MultivariateGaussian))
        constant = check_number(label, "constant", constant)
        if constant.size and not constant.any():
            raise ModelError(f"variable {a.name!r} is multiplied by zero; leave it out of the model")
        if a.node.dimension is not None and constant.ndim:
            raise ModelError(f"vector {a.name!r} can be scaled by a number only; use a matrix product for more")
        shape = self._fit(label, a.shape, constant.shape)
        form = whole(a.node, np.broadcast_to(a.entries(), shape))
        return self._express(label, resolve(scaled(form, np.broadcast_to(constant, shape).reshape(-1))))

    def _sum(self, a: Any, b: Any, sign: float, word: str) -> Variable:
        left, right = self._form(a, b, word), self._form(b, a, word)
        label = f"({shown(a)} {word} {shown(b)})"
        self._fit(label, left.shape, right.shape)
        return self._express(label, resolve(combine(left, right, sign)))

    def _form(self, x: Any, other: Any, word: str) -> Affine:
        """A variable or a constant as an affine expression, to be added to `other`."""
        if isinstance(x, Variable):
            label = f"{shown(x)} {word} {shown(other)}"
            self._want(label, "argument", x, (Gaussian, MultivariateGaussian))
            if isinstance(other, Variable) and (x.family, x.node.dimension) != (other.family, other.node.dimension):
                raise UnsupportedError(
                    f"{x.name!r} {word} {other.name!r}: both must be scalars or vectors of one dimension"
                )
            return whole(x.node, x.entries())
        label = f"({other.name} {word} constant)"
        value = check_number(label, "constant", x)
        d = other.node.dimension
        if d is None:
            return Affine(value.shape, (), value.reshape(-1))
        if value.ndim and value.shape[-1] not in (1, d):
            raise ModelError(f"{label}: a constant of shape {value.shape} does not fit vectors of {d} entries")
        value = np.broadcast_to(value, np.broadcast_shapes(value.shape, (d,)))
        return Affine(value.shape[:-1], (), value.reshape(-1, d))

    @staticmethod
    def _fit(label: str, a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
        try:
            return np.broadcast_shapes(a, b)
        except ValueError:
            raise ModelError(f"{label}: shapes do not fit together: {a} and {b}") from None

    # ---- inner products -----------------------------------------------------------------------------------------
    @building
    def stack(self, x: Variable) -> Variable:
        """The last axis of scalar Gaussian variables as one vector, so that their posterior is joint."""
        if not isinstance(x, Variable):
            raise ModelError("stack takes one array-shaped variable")
        self._want("stack", "argument", x, Gaussian)
        if not x.shape:
            raise ModelError(f"stack({x.name!r}): a scalar has no axis to stack")
        k, shape = x.shape[-1], x.shape[:-1]
        if not k:
            raise ModelError(f"stack({x.name!r}): its last axis is empty")
        entries = x.entries()
        parts = tuple((x.node, np.asarray(entries[..., i]).reshape(-1)) for i in range(k))
        self._check_distinct(Stack(k), {f"x{i}": x[..., i] for i in range(k)}, shape)
        return self._stacked(f"stack({x.name})", parts, shape)

    def _stacked(self, name: str, parts: tuple[tuple[Node, np.ndarray], ...], shape: tuple[int, ...]) -> Variable:
        """One vector for the same scalars, however often they are stacked: what uses it is then joint."""
        key = shape, *((node.order, entries.tobytes()) for node, entries in parts)
        if key not in self._stacks:
            node = Node(-1, name, MultivariateGaussian, shape, len(parts), False, made=Stacked(parts))
            self._number(node)
            self._stacks[key] = node
        return self._variable(self._stacks[key])

    @building
    def _dot(self, x: Any, w: Variable) -> Variable:
        x = check_matrix(f"X @ {w.name!r}", x)
        if w.family is Gaussian and len(w.shape) == 1:
            parts = [(w.node, w.entries()[i : i + 1]) for i in range(w.size)]
            if shared_nodes(parts) and x.shape[-1:] == w.shape:
                return self._dot_with_repeats(x, w)
            w = self.stack(w)
        elif w.family is Gaussian and w.shape:
            w = self.stack(w)
        self._want("X @ w", "right side", w, MultivariateGaussian)
        if w.shape not in ((), (1,)):
            raise ModelError(f"X @ {w.name!r}: the right side must be one vector, not an array of shape {w.shape}")
        d = w.node.dimension
        if x.ndim not in (1, 2) or x.shape[-1] != d or 0 in x.shape:
            raise ModelError(
                f"X @ {w.name!r}: X has shape {x.shape}, but {w.name!r} has {d} entries; X must be (n, {d})"
            )
        rows = x if x.ndim == 2 else x.reshape(1, -1)
        known = self._known(w)
        if known is not None and not np.isnan(known).any():
            return self._express(f"X @ {w.name}", Affine(x.shape[:-1], (), np.asarray(rows @ known[0]).reshape(-1)))
        node = product_node(Inner(rows, w.node, int(w.entries().ravel()[0])), f"X @ {w.name}", x.shape[:-1])
        self._number(node)
        return self._variable(node)

    def _dot_with_repeats(self, x: Any, w: Variable) -> Variable:
        """``X @ w`` where entries of w are made of the same quantities: ``(X A) @ u + X c`` with ``w = A u + c``."""
        form = expand(whole(w.node, w.entries()))
        column: dict[tuple[int, int], int] = {}
        parts: list[tuple[Node, np.ndarray]] = []
        a: dict[tuple[int, int], float] = {}
        for term in form.terms:
            for row in np.flatnonzero(term.coefficients):
                key = term.node.order, int(term.entries[row])
                if key not in column:
                    column[key] = len(parts)
                    parts.append((term.node, term.entries[row : row + 1]))
                a[int(row), column[key]] = a.get((int(row), column[key]), 0.0) + term.coefficients[row]
        shift = np.asarray(x @ form.constant).reshape(-1)
        shape = x.shape[:-1]
        if not parts:
            return self._express(f"X @ {w.name}", Affine(shape, (), shift))
        matrix = np.zeros((w.size, len(parts)))
        for (row, k), value in a.items():
            matrix[row, k] = value
        u = self._stacked(f"stack({w.name})", tuple(parts), ())
        product = self._dot(x @ matrix, u)
        return self._add(product, shift.reshape(shape)) if shift.any() else product

    # ---- from expressions to the graph --------------------------------------------------------------------------
    def _express(self, label: str, form: Affine) -> Variable:
        """A variable for an expression; some entries of a node, as they are, need no node of their own."""
        if len(form.terms) == 1 and not form.constant.any() and (form.terms[0].coefficients == 1).all():
            node, entries, _ = form.terms[0]
            same = node.shape == form.shape and np.array_equal(entries, np.arange(node.size))
            return self._variable(node, None if same else entries.reshape(form.shape))
        vector = form.constant.ndim == 2
        family: type[Family] = MultivariateGaussian if vector else Gaussian
        dimension = form.constant.shape[1] if vector else None
        if len(label) > _LONGEST:
            label = f"{label[: _LONGEST // 2]}...{label[-_LONGEST // 4 :]}"
        node = Node(-1, label, family, form.shape, dimension, False, made=form)
        self._number(node)
        return self._variable(node)

    def _known(self, x: Variable) -> np.ndarray | None:
        """The constant rows of a variable that is an expression, NaN in the others; None where there can be none."""
        form = x.node.made
        if not isinstance(form, Affine) or not form.constant_rows.any():
            return None
        known = form.constant_rows.reshape(-1, *(1,) * (form.constant.ndim - 1))
        values = np.where(known, form.constant, np.nan)
        return values if x.index is None else values[x.index.ravel()]

    def _place(self, node: Node) -> None:
        """Put an expression into the graph, and what it is made of before it."""
        for one in makers_first(node, lambda n: n.position >= 0):
            if isinstance(one.made, Inner):
                self._place_product(one, one.made)
            elif isinstance(one.made, Stacked):
                self._place_stack(one, one.made)
            elif one.made is not None:
                self._place_sum(one, one.made)

    def _place_product(self, node: Node, inner: Inner) -> None:
        self._enter(node)
        entry = None if inner.node.size == 1 else np.array([inner.entry])
        edges = {"w": Edge(inner.node.position, entry, True, shared=True), "out": Edge(node.position, None, True)}
        self._add_plate(Plate(len(self.graph.plates), "dot", Dot(), node.shape, edges, {"x": inner.x}))

    def _place_stack(self, node: Node, stacked: Stacked) -> None:
        ports = {
            f"x{k}": self._variable(part, entries.reshape(node.shape))
            for k, (part, entries) in enumerate(stacked.parts)
        }
        plate = self._plate(node.name, Stack(len(ports)), ports, {}, node.shape, distinct=True)
        self._enter(node)
        plate.edges["out"] = Edge(node.position, None, True)

    def _place_sum(self, node: Node, form: Affine) -> None:
        """Rows with the same variables in them share a plate; rows with none are known."""
        held = np.array([t.coefficients != 0 for t in form.terms]).reshape(len(form.terms), form.size)
        patterns, which = np.unique(held, axis=1, return_inverse=True)
        last: list[tuple[np.ndarray | None, Step, tuple[int, ...]]] = []
        for k in range(patterns.shape[1]):
            if not patterns[:, k].any():
                continue
            rows = None if patterns.shape[1] == 1 else np.flatnonzero(which.reshape(-1) == k)
            part = form if rows is None else take(form, rows)
            part = part._replace(terms=tuple(t for t, on in zip(part.terms, patterns[:, k], strict=True) if on))
            last.append((rows, self._last_step(node.name, part), part.shape))
        self._enter(node)
        for rows, (factor, ports, data), shape in last:
            plate = self._plate(node.name, factor, ports, data, shape, distinct=True)
            plate.edges[factor.child] = Edge(node.position, rows, True)
        known = form.constant_rows
        if known.any():
            values = np.where(known[:, None] if form.constant.ndim == 2 else known, form.constant, np.nan)
            self._set_observed(node, node.family.point_mass(values))  # type: ignore[attr-defined]

    def _last_step(self, name: str, form: Affine) -> Step:
        """The factor that makes the rows of a form, and before it the plates that make its ports."""
        # a term that is there as it is goes first: the others are added to it or taken from it
        first, *rest = sorted(form.terms, key=lambda t: not (t.coefficients == 1).all())
        made = self._variable(first.node, first.entries.reshape(form.shape))
        step: Step | None = None if (first.coefficients == 1).all() else _scaling(made, first.coefficients)
        for term in rest:
            made = made if step is None else self._step(name, step)
            x = self._variable(term.node, term.entries.reshape(form.shape))
            if (term.coefficients == -1).all():
                step = Difference(), {"a": made, "b": x}, {}
            else:
                if not (term.coefficients == 1).all():
                    x = self._step(f"({x.name} * constant)", _scaling(x, term.coefficients))
                step = Sum(), {"a": made, "b": x}, {}
        if step is not None and not form.constant.any():
            return step
        made = made if step is None else self._step(name, step)
        shift = Shift()
        if form.constant.ndim == 2:
            shift.data_ranks = {"constant": 1}  # type: ignore[misc]  # one vector per element
        return shift, {"x": made}, {"constant": form.constant.reshape((*form.shape, *form.constant.shape[1:]))}

    def _step(self, name: str, step: Step) -> Variable:
        """The result of one step of a longer sum, as a node of its own."""
        factor, ports, data = step
        x = ports["x"] if "x" in ports else ports["a"]
        plate = self._plate(name, factor, ports, data, distinct=True)
        node = self._node(name, x.family, plate.shape, x.node.dimension, given=False)
        plate.edges[factor.child] = Edge(node.position, None, True)
        return self._variable(node)


def _scaling(x: Variable, coefficients: np.ndarray) -> Step:
    return Scale(), {"x": x}, {"constant": coefficients.reshape(x.shape)}


def shown(x: Any) -> str:
    """A variable's name, a number, or the word constant."""
    if isinstance(x, Variable):
        return x.name
    return f"{float(x):g}" if isinstance(x, (int, float, np.number)) else "constant"
