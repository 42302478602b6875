"""Nodes and plates under construction: what every sentence of the modelling language comes down to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from heliograph.errors import ModelError, UnsupportedError
from heliograph.factors import (
    Factor,
    Prior,
)
from heliograph.families import (
    Family,
    Gaussian,
)
from heliograph.graph.check import (
    check_number,
    check_observed,
)
from heliograph.graph.records import Edge, Graph, Node, Plate
from heliograph.graph.variable import Variable

if TYPE_CHECKING:
    from heliograph.graph.builder import Builder

__all__ = ["Assembly"]


class Assembly:
    """A graph that grows by a node or a plate at a time; names are taken once, and shapes are made to agree."""

    def __init__(self) -> None:
        self.graph = Graph()
        self._names: set[str] = set()

    def _variable(self, node: Node, index: np.ndarray | None = None) -> Variable:
        # only a whole `Builder` is ever made; its parts are files, not models of their own
        return Variable(cast("Builder", self), node, index)

    # ---- making nodes and plates --------------------------------------------------------------------------------
    def _node(
        self, name: str, family: type[Family], shape: tuple[int, ...], dimension: int | None, given: bool
    ) -> Node:
        if given:
            if not isinstance(name, str) or not name:
                raise ModelError("a variable needs a name, for example model.gaussian('w', ...)")
            if name in self._names:
                raise ModelError(f"a variable called {name!r} exists already; choose another name")
        else:
            base, k = name, 2
            while name in self._names:
                name, k = f"{base} #{k}", k + 1
        self._names.add(name)
        node = Node(len(self.graph.nodes), name, family, shape, dimension, given)
        self.graph.nodes.append(node)
        return node

    def _plate(
        self, name: str, factor: Factor, ports: dict[str, Any], data: dict[str, Any], shape: Any = None
    ) -> Plate:
        """One plate over the broadcast shape of its ports; constants at a family's port become point masses."""
        label = f"factor {factor.name!r} ({name})"
        shapes = [v.shape for v in ports.values() if isinstance(v, Variable)]
        shapes += [
            self._data_shape(factor, port, v) for port, v in {**ports, **data}.items() if not isinstance(v, Variable)
        ]
        try:
            full = np.broadcast_shapes(*shapes, *(() if shape is None else (shape,)))
        except ValueError:
            told = {p: getattr(v, "shape", np.shape(v)) for p, v in {**ports, **data}.items()}
            raise ModelError(f"{label}: shapes do not fit together: {told}") from None
        edges: dict[str, Edge] = {}
        constants: dict[str, Any] = {}
        for port, value in ports.items():
            if isinstance(value, Variable):
                if value.model is not self:
                    raise ModelError(f"{label}: variable {value.name!r} belongs to another model")
                edges[port] = _edge(value, full)
            else:
                kind = factor.families[port][0]
                constants[port] = kind.point_mass(np.broadcast_to(value, full).reshape(-1))  # type: ignore[attr-defined]
        for port, value in data.items():
            value = np.asarray(value)
            rank = value.ndim - len(self._data_shape(factor, port, value))
            event = value.shape[value.ndim - rank :]
            constants[port] = np.ascontiguousarray(np.broadcast_to(value, (*full, *event)).reshape(-1, *event))
        plate = Plate(len(self.graph.plates), factor.name, factor, full, edges, constants)
        self.graph.plates.append(plate)
        return plate

    @staticmethod
    def _data_shape(factor: Factor, port: str, value: Any) -> tuple[int, ...]:
        rank = factor.data_ranks.get(port, 0)
        shape = np.shape(value)
        return shape[: len(shape) - rank]

    def _derive(
        self,
        label: str,
        factor: Factor,
        ports: dict[str, Any],
        data: dict[str, Any],
        family: type[Family],
        dimension: int | None = None,
        shape: Any = None,
    ) -> Variable:
        """A node that is the result of an expression, and the plate that makes it."""
        return self._attach_child(label, factor, ports, data, family, dimension, shape, given=False)

    def _child(
        self,
        name: str,
        factor: Factor,
        ports: dict[str, Any],
        data: dict[str, Any],
        family: type[Family],
        size: Any,
        observed: Any,
        missing: Any,
        dimension: int | None = None,
    ) -> Variable:
        """A named node whose parents are variables."""
        shape = None if size is None else _as_shape(name, size)
        if observed is not None and shape is None:
            event = 1 if family.point_rank else 0
            seen = np.shape(observed)
            shape = seen[: len(seen) - event]
        x = self._attach_child(name, factor, ports, data, family, dimension, shape, given=True)
        if observed is not None:
            x.node.observed = check_observed(name, family, x.shape, dimension, observed, missing)
        return x

    def _attach_child(
        self,
        name: str,
        factor: Factor,
        ports: dict[str, Any],
        data: dict[str, Any],
        family: type[Family],
        dimension: int | None,
        shape: Any,
        given: bool,
    ) -> Variable:
        n_plates = len(self.graph.plates)
        plate = self._plate(name, factor, ports, data, shape)
        try:
            node = self._node(name, family, plate.shape, dimension, given)
        except ModelError:
            del self.graph.plates[n_plates:]
            raise
        plate.edges[factor.child] = Edge(node.position, None, True)
        return self._variable(node)

    def _likelihood(self, name: str, factor: Factor, port: str, x: Variable, data: dict[str, np.ndarray]) -> None:
        """Counts observed on a variable; entries where the count is missing say nothing and are left out."""
        if name in self._names:
            raise ModelError(f"a variable called {name!r} exists already; choose another name")
        counts = data["count"]
        try:
            full = np.broadcast_shapes(x.shape, *(v.shape for v in data.values()))
        except ValueError:
            raise ModelError(
                f"variable {name!r}: observed has shape {counts.shape}, but {x.name!r} has shape {x.shape}"
            ) from None
        seen = ~np.isnan(np.broadcast_to(counts, full))
        self._names.add(name)
        part = self._variable(x.node, np.broadcast_to(x.entries(), full)[seen]) if not seen.all() else x
        if not seen.all():
            data = {k: np.broadcast_to(v, full)[seen] for k, v in data.items()}
        self._plate(name, factor, {port: part}, data)

    def _from_parameters(
        self, name: str, family: Any, parameters: tuple[np.ndarray, ...], size: Any, observed: Any, missing: Any
    ) -> Variable:
        try:
            plate = np.broadcast_shapes(*(p.shape for p in parameters))
        except ValueError:
            raise ModelError(
                f"variable {name!r}: parameters of shapes {[p.shape for p in parameters]} do not fit together"
            ) from None
        if observed is not None and size is None:
            plate = np.broadcast_shapes(plate, np.shape(observed)) if plate == () else plate
        shape = self._shape(name, plate, size)
        message = family(*(np.broadcast_to(p, shape) for p in parameters))
        return self._with_prior(name, message, shape, None, observed, missing)

    def _from_message(
        self, name: str, message: Family, families: tuple[type[Family], ...], size: Any, observed: Any, missing: Any
    ) -> Variable:
        if not isinstance(message, families):
            wanted = " or ".join(f.__name__ for f in families)
            raise UnsupportedError(
                f"variable {name!r}: a {type(message).__name__} message cannot be its prior; give a {wanted}"
            )
        if not np.all(message.proper):
            raise ModelError(f"variable {name!r}: its prior message is improper; multiply it with a proper one first")
        shape = self._shape(name, message.shape, size)
        event = message.naturals[0].shape[len(message.shape) :]
        return self._with_prior(
            name, message.broadcast_to(shape), shape, event[0] if event else None, observed, missing
        )

    def _with_prior(
        self, name: str, message: Family, shape: tuple[int, ...], dimension: int | None, observed: Any, missing: Any
    ) -> Variable:
        seen = None
        if observed is not None:
            seen = check_observed(name, type(message), shape, dimension, observed, missing)
        node = self._node(name, type(message), shape, dimension, given=True)
        node.observed = seen
        x = self._variable(node)
        self._plate(name, Prior(message.reshape((node.size,))), {"x": x}, {})
        return x

    def _shape(self, name: str, plate: tuple[int, ...], size: Any) -> tuple[int, ...]:
        if size is None:
            return plate
        shape = _as_shape(name, size)
        try:
            fits = np.broadcast_shapes(plate, shape) == shape
        except ValueError:
            fits = False
        if not fits:
            raise ModelError(f"variable {name!r}: its parameters have shape {plate}, which does not fit size={size}")
        return shape

    def _want(self, name: str, what: str, x: Any, families: Any, hint: str = "") -> None:
        families = families if isinstance(families, tuple) else (families,)
        wanted = " or ".join(f.__name__ for f in families)
        if not isinstance(x, Variable):
            raise ModelError(f"{name!r}: its {what} must be a {wanted} variable, not {type(x).__name__}")
        if x.family not in families:
            raise UnsupportedError(
                f"{name!r}: its {what} must be a {wanted} variable, but {x.name!r} is {x.family.__name__}{hint}; "
                "heliograph.supported() lists every combination"
            )

    def _as_gaussian(self, name: str, x: Any) -> Variable:
        """A Gaussian variable; a plain number becomes an observed one."""
        if isinstance(x, Variable):
            self._want(name, "argument", x, Gaussian)
            return x
        value = check_number(name, "argument", x)
        node = self._node(
            f"constant {value}" if value.ndim == 0 else "constant", Gaussian, value.shape, None, given=False
        )
        node.observed = Gaussian.point_mass(value.reshape(-1))
        return self._variable(node)


def _as_shape(name: str, size: Any) -> tuple[int, ...]:
    shape = tuple(size) if isinstance(size, (tuple, list)) else (size,)
    if not all(isinstance(n, (int, np.integer)) and n > 0 for n in shape):
        raise ModelError(f"variable {name!r}: size must be a positive whole number or a tuple of them, not {size!r}")
    return tuple(int(n) for n in shape)


def _edge(x: Variable, shape: tuple[int, ...]) -> Edge:
    """How a variable meets a plate of that shape."""
    if x.index is None and x.shape == shape:
        return Edge(x.node.position, None, True)
    index = np.broadcast_to(x.entries(), shape).reshape(-1)
    if index.size == x.node.size and np.array_equal(index, np.arange(x.node.size)):
        return Edge(x.node.position, None, True)
    return Edge(x.node.position, np.ascontiguousarray(index), len(np.unique(index)) == index.size)
