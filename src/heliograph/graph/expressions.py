"""Variables made from variables: functions, arithmetic, comparisons, and black boxes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse

from heliograph.errors import ModelError, UnsupportedError
from heliograph.factors import (
    Between,
    Difference,
    Dot,
    Exp,
    Factor,
    Logistic,
    Maximum,
    Positive,
    Product,
    Scale,
    Select,
    Shift,
    Stack,
    Sum,
)
from heliograph.families import (
    Bernoulli,
    Beta,
    Gamma,
    Gaussian,
    MultivariateGaussian,
)
from heliograph.graph.assembly import Assembly
from heliograph.graph.check import (
    check_number,
)
from heliograph.graph.records import Edge, Plate
from heliograph.graph.variable import Variable

__all__ = ["Expressions"]


class Expressions(Assembly):
    """What can be written with variables that are already there."""

    # ---- expressions --------------------------------------------------------------------------------------------
    def exp(self, z: Variable) -> Variable:
        """``exp(z)``, a positive variable with Gamma messages."""
        self._want("exp", "argument", z, Gaussian)
        return self._derive(f"exp({z.name})", Exp(), {"z": z}, {}, Gamma)

    def sigmoid(self, z: Variable) -> Variable:
        """``1 / (1 + exp(-z))``, a probability with Beta messages."""
        self._want("sigmoid", "argument", z, Gaussian)
        return self._derive(f"sigmoid({z.name})", Logistic(), {"z": z}, {}, Beta)

    def maximum(self, a: Variable, b: Variable) -> Variable:
        """The larger of two Gaussian variables."""
        a, b = self._as_gaussian("maximum", a), self._as_gaussian("maximum", b)
        return self._derive(f"max({a.name}, {b.name})", Maximum(), {"a": a, "b": b}, {}, Gaussian)

    def between(self, x: Variable, lower: Any, upper: Any) -> Variable:
        """The event ``lower < x < upper`` as a Bernoulli variable; the bounds may be infinite."""
        self._want("between", "x", x, Gaussian)
        lower, upper = np.asarray(lower, dtype=float), np.asarray(upper, dtype=float)
        if np.isnan(lower).any() or np.isnan(upper).any() or not (lower < upper).all():
            raise ModelError(f"between({x.name!r}): every lower bound must be below its upper bound")
        data = {"lower": lower, "upper": upper}
        return self._derive(f"lower < {x.name} < upper", Between(), {"x": x}, data, Bernoulli)

    def select(self, switch: Variable, a: Variable, b: Variable) -> Variable:
        """``a`` where the Bernoulli `switch` is 1, else ``b``."""
        self._want("select", "switch", switch, Bernoulli)
        a, b = self._as_gaussian("select", a), self._as_gaussian("select", b)
        return self._derive(
            f"{a.name} if {switch.name} else {b.name}", Select(), {"a": a, "b": b, "s": switch}, {}, Gaussian
        )

    def stack(self, x: Variable | Sequence[Variable]) -> Variable:
        """The last axis of scalar Gaussian variables as one vector, so that their posterior is joint."""
        if not isinstance(x, Variable):
            raise ModelError("stack takes one array-shaped variable")
        self._want("stack", "argument", x, Gaussian)
        if not x.shape:
            raise ModelError(f"stack({x.name!r}): a scalar has no axis to stack")
        k, shape = x.shape[-1], x.shape[:-1]
        ports = {f"x{i}": x[..., i] for i in range(k)}
        return self._derive(f"stack({x.name})", Stack(k), ports, {}, MultivariateGaussian, dimension=k, shape=shape)

    def _black_box(self, factor: Factor, arguments: dict[str, Any]) -> Variable:
        """The output of a black-box factor called on variables; plain arrays are data."""
        ports, data = {}, {}
        for port, value in arguments.items():
            if isinstance(value, Variable):
                families = factor.families.get(port, ())
                self._want(factor.name, port, value, families)
                ports[port] = value
            else:
                data[port] = check_number(factor.name, port, value)
        out = factor.families[factor.child][0]
        return self._derive(f"{factor.name}({', '.join(v.name for v in ports.values())})", factor, ports, data, out,
                            dimension=getattr(factor, "dimension", None))  # fmt: skip

    # ---- operators used by `Variable` ---------------------------------------------------------------------------
    def _add(self, a: Any, b: Any) -> Variable:
        if not isinstance(b, Variable):
            return self._constant(a, b, Shift, "+")
        return self._linear(a, b, Sum(), "+")

    def _subtract(self, a: Any, b: Any) -> Variable:
        if not isinstance(b, Variable):
            return self._constant(a, -np.asarray(b, dtype=float), Shift, "+")
        return self._linear(a, b, Difference(), "-")

    def _linear(self, a: Variable, b: Variable, factor: Factor, sign: str) -> Variable:
        for x in (a, b):
            self._want(f"{a.name} {sign} {b.name}", "argument", x, (Gaussian, MultivariateGaussian))
        if a.family is not b.family or a.node.dimension != b.node.dimension:
            raise UnsupportedError(f"{a.name!r} {sign} {b.name!r}: both must be scalars or vectors of one dimension")
        return self._derive(
            f"({a.name} {sign} {b.name})", factor, {"a": a, "b": b}, {}, a.family, dimension=a.node.dimension
        )

    def _scale(self, a: Variable, constant: Any) -> Variable:
        return self._constant(a, constant, Scale, "*")

    def _constant(self, a: Variable, constant: Any, kind: Any, sign: str) -> Variable:
        label = f"({a.name} {sign} constant)"
        self._want(label, "argument", a, (Gaussian, MultivariateGaussian))
        constant = check_number(label, "constant", constant)
        if kind is Scale and (constant == 0).any():
            raise ModelError(f"variable {a.name!r} is multiplied by zero; leave such entries out of the model")
        d = a.node.dimension
        if d is not None and kind is Scale and constant.ndim:
            raise ModelError(f"vector {a.name!r} can be scaled by a number only; use a matrix product for more")
        factor = kind()
        if d is not None and kind is Shift:
            constant = np.broadcast_to(constant, np.broadcast_shapes(constant.shape, (d,)))
            factor.data_ranks = {"constant": 1}  # type: ignore[misc]  # one vector per element
        return self._derive(label, factor, {"x": a}, {"constant": constant}, a.family, dimension=d)

    def _multiply(self, a: Variable, b: Any) -> Variable:
        if not isinstance(b, Variable):
            return self._scale(a, b)
        a, b = self._as_gaussian("*", a), self._as_gaussian("*", b)
        return self._derive(f"({a.name} * {b.name})", Product(), {"a": a, "b": b}, {}, Gaussian)

    def _greater(self, a: Any, b: Any) -> Variable:
        gap = a - b
        self._want("comparison", "argument", gap, Gaussian)
        left, right = (x.name if isinstance(x, Variable) else "constant" for x in (a, b))
        return self._derive(f"{left} > {right}", Positive(), {"x": gap}, {}, Bernoulli)

    def _dot(self, x: Any, w: Variable) -> Variable:
        if w.family is Gaussian and w.shape:
            w = self.stack(w)
        self._want("X @ w", "right side", w, MultivariateGaussian)
        if w.shape not in ((), (1,)):
            raise ModelError(f"X @ {w.name!r}: the right side must be one vector, not an array of shape {w.shape}")
        d = w.node.dimension
        if scipy.sparse.issparse(x):
            x = scipy.sparse.csr_array(x).astype(float)
            finite = np.isfinite(x.data).all()
        else:
            x = np.asarray(x, dtype=float)
            finite = np.isfinite(x).all()
        if not finite:
            raise ModelError(f"X @ {w.name!r}: X holds NaN or infinite values; fill them in or drop those rows")
        rows = x if x.ndim == 2 else x.reshape(1, -1) if x.ndim == 1 else None
        if rows is None or rows.shape[1] != d:
            raise ModelError(
                f"X @ {w.name!r}: X has shape {x.shape}, but {w.name!r} has {d} entries; X must be (n, {d})"
            )
        shape = x.shape[:-1]
        out = self._node(f"X @ {w.name}", Gaussian, shape, None, given=False)
        index = np.asarray(w.entries().ravel())
        edges = {
            "w": Edge(w.node.position, None if w.node.size == 1 else index, True),
            "out": Edge(out.position, None, True),
        }
        self.graph.plates.append(Plate(len(self.graph.plates), "dot", Dot(), shape, edges, {"x": rows}))
        return self._variable(out)
