"""Variables made from variables: functions, arithmetic, comparisons, and black boxes."""

from __future__ import annotations

from typing import Any

import numpy as np

from heliograph.errors import ModelError
from heliograph.factors import Between, Exp, Factor, Logistic, Maximum, Positive, Product, Select
from heliograph.families import Bernoulli, Beta, Gamma, Gaussian
from heliograph.graph.affine import Affine, combine, whole
from heliograph.graph.check import check_bound, check_number
from heliograph.graph.linear import Linear, shown
from heliograph.graph.overlaps import resolve
from heliograph.graph.transaction import building
from heliograph.graph.variable import Variable

__all__ = ["Expressions"]


class Expressions(Linear):
    """What can be written with variables that are already there."""

    # ---- expressions --------------------------------------------------------------------------------------------
    @building
    def exp(self, z: Variable) -> Variable:
        """``exp(z)``, a positive variable with Gamma messages."""
        self._want("exp", "argument", z, Gaussian)
        return self._derive(f"exp({z.name})", Exp(), {"z": z}, {}, Gamma)

    @building
    def sigmoid(self, z: Variable) -> Variable:
        """``1 / (1 + exp(-z))``, a probability with Beta messages."""
        self._want("sigmoid", "argument", z, Gaussian)
        return self._derive(f"sigmoid({z.name})", Logistic(), {"z": z}, {}, Beta)

    @building
    def maximum(self, a: Variable, b: Variable) -> Variable:
        """The larger of two Gaussian variables."""
        a, b = self._as_gaussian("maximum", a), self._as_gaussian("maximum", b)
        self._fit(f"max({a.name}, {b.name})", a.shape, b.shape)
        gap = resolve(combine(whole(a.node, a.entries()), whole(b.node, b.entries()), -1.0))
        if gap.constant_rows.all():  # one is the other and a constant: so is the larger
            higher = Affine(gap.shape, (), np.maximum(gap.constant, 0.0))
            return self._express(f"max({a.name}, {b.name})", combine(whole(b.node, b.entries()), higher, 1.0))
        return self._derive(f"max({a.name}, {b.name})", Maximum(), {"a": a, "b": b}, {}, Gaussian)

    @building
    def between(self, x: Variable, lower: Any, upper: Any) -> Variable:
        """The event ``lower < x < upper`` as a Bernoulli variable; the bounds may be infinite."""
        self._want("between", "x", x, Gaussian)
        lower, upper = check_bound(x.name, "lower", lower), check_bound(x.name, "upper", upper)
        self._fit(f"between({x.name!r})", lower.shape, upper.shape)
        if not (lower < upper).all():
            raise ModelError(f"between({x.name!r}): every lower bound must be below its upper bound")
        data = {"lower": lower, "upper": upper}
        label = f"{_bound(lower, 'lower')} < {x.name} < {_bound(upper, 'upper')}"
        return self._derive(label, Between(), {"x": x}, data, Bernoulli)

    @building
    def select(self, switch: Variable, a: Variable, b: Variable) -> Variable:
        """``a`` where the Bernoulli `switch` is 1, else ``b``."""
        self._want("select", "switch", switch, Bernoulli)
        a, b = self._as_gaussian("select", a), self._as_gaussian("select", b)
        return self._derive(
            f"{a.name} if {switch.name} else {b.name}", Select(), {"a": a, "b": b, "s": switch}, {}, Gaussian
        )

    @building
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
    @building
    def _multiply(self, a: Variable, b: Any) -> Variable:
        if not isinstance(b, Variable):
            return self._scale(a, b)
        for x in (a, b):
            self._want(f"{a.name} * {b.name}", "argument", x, Gaussian)
        return self._derive(f"({a.name} * {b.name})", Product(), {"a": a, "b": b}, {}, Gaussian)

    @building
    def _greater(self, a: Any, b: Any, less: bool = False) -> Variable:
        """The event ``a > b``, written ``b < a`` if `less`."""
        label = f"{shown(b)} < {shown(a)}" if less else f"{shown(a)} > {shown(b)}"
        for x in (a, b):
            if isinstance(x, Variable):
                self._want(label, "argument", x, Gaussian)
        gap = self._subtract(a, b)
        known = self._known(gap)
        if known is not None and (known == 0).any():
            raise ModelError(f"{label}: both sides are the same random quantity, so neither is greater; leave it out")
        return self._derive(label, Positive(), {"x": gap}, {}, Bernoulli)


def _bound(value: np.ndarray, word: str) -> str:
    return word if value.ndim else f"{float(value):g}"
