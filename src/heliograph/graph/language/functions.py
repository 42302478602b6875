"""Variables made from variables by functions: exp, sigmoid, maximum, products, comparisons, black boxes."""

from __future__ import annotations

from typing import Any

import numpy as np

from heliograph.errors import ModelError
from heliograph.factors import Between, Exp, Factor, Logistic, Maximum, Positive, Product, Select
from heliograph.families import Bernoulli, Beta, Gamma, Gaussian
from heliograph.graph.affine import combine
from heliograph.graph.check import check_bound, check_number
from heliograph.graph.draft import Draft
from heliograph.graph.language.children import Kind, as_gaussian, derived, fit, want
from heliograph.graph.language.linear import express, known_rows, scale, shown, subtract, whole_of
from heliograph.graph.overlaps import resolve
from heliograph.graph.quantity import Quantity
from heliograph.graph.records import Affine

__all__ = ["between", "black_box", "exp", "greater", "maximum", "multiply", "select", "sigmoid"]


def exp(draft: Draft, z: object) -> Quantity:
    """``exp(z)``, with Gamma messages."""
    x = want("exp", "argument", z, Gaussian)
    return derived(draft, f"exp({x.name})", Exp(), {"z": x}, {}, Kind(Gamma))


def sigmoid(draft: Draft, z: object) -> Quantity:
    """``1 / (1 + exp(-z))``, with Beta messages."""
    x = want("sigmoid", "argument", z, Gaussian)
    return derived(draft, f"sigmoid({x.name})", Logistic(), {"z": x}, {}, Kind(Beta))


def maximum(draft: Draft, a: Any, b: Any) -> Quantity:
    """The larger of two Gaussian variables."""
    a, b = as_gaussian(draft, "maximum", a), as_gaussian(draft, "maximum", b)
    label = f"max({a.name}, {b.name})"
    fit(label, a.shape, b.shape)
    gap = resolve(combine(whole_of(a), whole_of(b), -1.0))
    if gap.constant_rows.all():  # one is the other and a constant: so is the larger
        higher = Affine(gap.shape, (), np.maximum(gap.constant, 0.0))
        return express(draft, label, combine(whole_of(b), higher, 1.0))
    return derived(draft, label, Maximum(), {"a": a, "b": b}, {}, Kind(Gaussian))


def between(draft: Draft, x: object, lower: Any, upper: Any) -> Quantity:
    """The event ``lower < x < upper``."""
    z = want("between", "x", x, Gaussian)
    low, high = check_bound(z.name, "lower", lower), check_bound(z.name, "upper", upper)
    fit(f"between({z.name!r})", low.shape, high.shape)
    if not (low < high).all():
        raise ModelError(f"between({z.name!r}): every lower bound must be below its upper bound")
    label = f"{_bound(low, 'lower')} < {z.name} < {_bound(high, 'upper')}"
    return derived(draft, label, Between(), {"x": z}, {"lower": low, "upper": high}, Kind(Bernoulli))


def _bound(value: np.ndarray, word: str) -> str:
    return word if value.ndim else f"{float(value):g}"


def select(draft: Draft, switch: object, a: Any, b: Any) -> Quantity:
    """``a`` where the Bernoulli `switch` is 1, else ``b``."""
    s = want("select", "switch", switch, Bernoulli)
    a, b = as_gaussian(draft, "select", a), as_gaussian(draft, "select", b)
    label = f"{a.name} if {s.name} else {b.name}"
    return derived(draft, label, Select(), {"a": a, "b": b, "s": s}, {}, Kind(Gaussian))


def multiply(draft: Draft, a: Quantity, b: Any) -> Quantity:
    """``a * b``, of two variables or of a variable and constants."""
    if not isinstance(b, Quantity):
        return scale(draft, a, b)
    for x in (a, b):
        want(f"{a.name} * {b.name}", "argument", x, Gaussian)
    return derived(draft, f"({a.name} * {b.name})", Product(), {"a": a, "b": b}, {}, Kind(Gaussian))


def greater(draft: Draft, a: Any, b: Any, less: bool = False) -> Quantity:
    """The event ``a > b``, written ``b < a`` if `less`."""
    label = f"{shown(b)} < {shown(a)}" if less else f"{shown(a)} > {shown(b)}"
    for x in (a, b):
        if isinstance(x, Quantity):
            want(label, "argument", x, Gaussian)
    gap = subtract(draft, a, b)
    known = known_rows(gap)
    if known is not None and (known == 0).any():
        raise ModelError(f"{label}: both sides are the same random quantity, so neither is greater; leave it out")
    return derived(draft, label, Positive(), {"x": gap}, {}, Kind(Bernoulli))


def black_box(draft: Draft, factor: Factor, arguments: dict[str, Any]) -> Quantity:
    """The output of a black-box factor called on variables; plain arrays are data."""
    ports: dict[str, Quantity | np.ndarray] = {}
    data: dict[str, np.ndarray] = {}
    for port, value in arguments.items():
        if isinstance(value, Quantity):
            ports[port] = want(factor.name, port, value, factor.families.get(port, ()))
        else:
            data[port] = check_number(factor.name, port, value)
    out = factor.families[factor.child][0]
    names = ", ".join(v.name for v in ports.values() if isinstance(v, Quantity))
    return derived(draft, f"{factor.name}({names})", factor, ports, data, Kind(out, getattr(factor, "dimension", None)))
