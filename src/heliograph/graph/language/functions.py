"""Variables made from variables by functions: exp, sigmoid, maximum, products, comparisons."""

from __future__ import annotations

from typing import Any

import numpy as np

from heliograph.errors import ModelError, UnsupportedError
from heliograph.factors import (
    AbsoluteValue,
    Between,
    Exp,
    GammaScale,
    Log,
    Logistic,
    Maximum,
    Positive,
    Product,
    ScaledGaussian,
    Select,
    Square,
)
from heliograph.families import Bernoulli, Beta, Gamma, Gaussian, MultivariateGaussian
from heliograph.graph.affine import combine
from heliograph.graph.check import check_bound, check_number, check_positive
from heliograph.graph.draft import Draft
from heliograph.graph.language.arrays import components, total
from heliograph.graph.language.children import Kind, as_gaussian, derived, fit, want
from heliograph.graph.language.linear import add, express, known_rows, scale, shown, subtract, whole_of
from heliograph.graph.overlaps import resolve
from heliograph.graph.quantity import Argument, Quantity
from heliograph.graph.records import Affine

__all__ = [
    "absolute",
    "between",
    "exp",
    "greater",
    "inner",
    "log",
    "maximum",
    "minimum",
    "multiply",
    "power",
    "select",
    "sigmoid",
    "square",
    "within",
]


def exp(draft: Draft, z: Quantity) -> Quantity:
    """``exp(z)`` of a Gaussian variable: a positive variable with Gamma messages."""
    x = want("exp", "argument", z, Gaussian)
    return derived(draft, f"exp({x.name})", Exp(), {"z": x}, {}, Kind(Gamma))


def sigmoid(draft: Draft, z: Quantity) -> Quantity:
    """``1 / (1 + exp(-z))`` of a Gaussian variable: a probability with Beta messages."""
    x = want("sigmoid", "argument", z, Gaussian)
    return derived(draft, f"sigmoid({x.name})", Logistic(), {"z": x}, {}, Kind(Beta))


def square(draft: Draft, x: object) -> Quantity:
    """``x ** 2``, with Gaussian messages."""
    z = want("x ** 2", "argument", components(draft, x) if isinstance(x, Quantity) else x, Gaussian)
    return derived(draft, f"({z.name} ** 2)", Square(), {"x": z}, {}, Kind(Gaussian))


def absolute(draft: Draft, x: object) -> Quantity:
    """``abs(x)``, with Gaussian messages."""
    z = want("abs(x)", "argument", components(draft, x) if isinstance(x, Quantity) else x, Gaussian)
    return derived(draft, f"abs({z.name})", AbsoluteValue(), {"x": z}, {}, Kind(Gaussian))


def maximum(draft: Draft, a: Argument, b: Argument) -> Quantity:
    """The larger of two Gaussian variables."""
    a, b = as_gaussian(draft, "maximum", a), as_gaussian(draft, "maximum", b)
    label = f"max({a.name}, {b.name})"
    fit(label, a.shape, b.shape)
    gap = resolve(combine(whole_of(a), whole_of(b), -1.0))
    if gap.constant_rows.all():  # one is the other and a constant: so is the larger
        higher = Affine(gap.shape, (), np.maximum(gap.constant, 0.0))
        return express(draft, label, combine(whole_of(b), higher, 1.0))
    return derived(draft, label, Maximum(), {"a": a, "b": b}, {}, Kind(Gaussian))


def between(draft: Draft, x: Quantity, lower: Any, upper: Any) -> Quantity:
    """The event ``lower < x < upper`` as a Bernoulli variable; the bounds may be infinite.

    Parameters
    ----------
    x
        A Gaussian variable.
    lower, upper
        Numbers or arrays.
    """
    z = want("between", "x", x, Gaussian)
    for word, bound in (("lower", lower), ("upper", upper)):
        if isinstance(bound, Quantity):
            raise UnsupportedError(
                f"between({z.name!r}): the {word} bound {bound.name!r} is random, and two random bounds of one quantity have no "
                f"factor; for one bound write model.constrain({z.name} > {bound.name}), for cut points of an ordered label "
                "model.ordinal(name, z, cuts=...)"
            )
    low, high = check_bound(z.name, "lower", lower), check_bound(z.name, "upper", upper)
    fit(f"between({z.name!r})", low.shape, high.shape)
    if not (low < high).all():
        raise ModelError(f"between({z.name!r}): every lower bound must be below its upper bound")
    return _inside(draft, z, low, high)


def within(draft: Draft, x: object, bound: np.ndarray) -> Quantity:
    """The event ``abs(x) < bound``, which a bound of 0 leaves empty."""
    z = want("abs(x)", "argument", x, Gaussian)
    limit = check_bound(z.name, "upper", bound)
    return _inside(draft, z, 0.0 - limit, limit)


def _inside(draft: Draft, z: Quantity, low: np.ndarray, high: np.ndarray) -> Quantity:
    label = f"{_bound(low, 'lower')} < {z.name} < {_bound(high, 'upper')}"
    return derived(draft, label, Between(), {"x": z}, {"lower": low, "upper": high}, Kind(Bernoulli))


def _bound(value: np.ndarray, word: str) -> str:
    return word if value.ndim else f"{float(value):g}"


def select(draft: Draft, switch: Quantity, a: Argument, b: Argument) -> Quantity:
    """``a`` where the Bernoulli `switch` is 1, else ``b``.

    Parameters
    ----------
    switch
        A Bernoulli variable.
    a, b
        Gaussian variables, or numbers.
    """
    s = want("select", "switch", switch, Bernoulli)
    a, b = as_gaussian(draft, "select", a), as_gaussian(draft, "select", b)
    label = f"{a.name} if {s.name} else {b.name}"
    return derived(draft, label, Select(), {"a": a, "b": b, "s": s}, {}, Kind(Gaussian))


def multiply(draft: Draft, a: Quantity, b: Any) -> Quantity:
    """``a * b``, of two variables or of a variable and constants."""
    if not isinstance(b, Quantity):
        if a.family is Gamma:
            return _scaled_gamma(draft, a, b)
        if a.node.dimension is not None and a.family is MultivariateGaussian and check_number(a.name, "factor", b).ndim:
            return scale(draft, components(draft, a), b)
        return scale(draft, a, b)
    a, b = components(draft, a), components(draft, b)
    if {a.family, b.family} == {Gamma, Gaussian}:
        positive, x = (a, b) if a.family is Gamma else (b, a)
        ports = {"scale": positive, "x": x}
        return derived(draft, f"({a.name} * {b.name})", ScaledGaussian(), ports, {}, Kind(Gaussian))
    if a.family is Gamma and b.family is Gamma:
        raise UnsupportedError(
            f"{a.name} * {b.name}: a product of two Gamma variables has no factor; write their logarithms as Gaussian variables "
            "and add them: log_rate=log_a + log_b of a Poisson, or model.exp(log_a + log_b)"
        )
    for x in (a, b):
        want(f"{a.name} * {b.name}", "argument", x, Gaussian)
    squared = _as_square(draft, a, b)
    if squared is not None:
        return squared
    return derived(draft, f"({a.name} * {b.name})", Product(), {"a": a, "b": b}, {}, Kind(Gaussian))


def _as_square(draft: Draft, a: Quantity, b: Quantity) -> Quantity | None:
    """``a * b`` where the two differ, or add up, to a number: a square and numbers. None where they do not."""
    label = f"({a.name} * {b.name})"
    shape = fit(label, a.shape, b.shape)
    for sign in (1.0, -1.0):
        gap = resolve(combine(whole_of(b), whole_of(a), -sign))
        if gap.size and gap.constant_rows.all():  # b = sign a + c, so that a b is sign ((a + sign c / 2)^2 - c^2 / 4)
            c = gap.constant.reshape(shape)
            middle = express(draft, label, combine(whole_of(a), Affine(shape, (), 0.5 * sign * gap.constant), 1.0))
            product = scale(draft, square(draft, middle if c.any() else a), sign)
            return add(draft, product, -0.25 * sign * c**2) if c.any() else product
    return None


def inner(draft: Draft, a: Quantity, b: Quantity) -> Quantity:
    """``a @ b`` of random vectors, a sum of products."""
    left, right = components(draft, a), components(draft, b)
    if left.shape[-1:] != right.shape[-1:] or not left.shape or len(right.shape) > 1:
        raise ModelError(
            f"{a.name!r} @ {b.name!r}: shapes {left.shape} and {right.shape}; write products of random arrays entry by entry, "
            "for example (U[i] * V[j]).sum(axis=-1)"
        )
    return total(draft, multiply(draft, left, right), -1)


def power(draft: Draft, base: Any, x: Quantity) -> Quantity:
    """``base ** x`` for a positive base."""
    value = check_positive(f"base ** {x.name}", "base", base)
    return exp(draft, scale(draft, x, np.log(value)))


def _scaled_gamma(draft: Draft, a: Quantity, constant: Any) -> Quantity:
    label = f"({a.name} * {shown(constant)})"
    value = check_number(label, "constant", constant)
    if (value <= 0).any():
        raise ModelError(
            f"{label}: {a.name!r} is a Gamma variable, greater than 0, and can be multiplied by numbers greater than 0 only; "
            "leave out the rows where the constant is 0"
        )
    fit(label, a.shape, value.shape)
    return derived(draft, label, GammaScale(), {"x": a}, {"scale": value}, Kind(Gamma))


def minimum(draft: Draft, a: Argument, b: Argument) -> Quantity:
    """The smaller of two Gaussian variables, ``-max(-a, -b)``."""
    a, b = (
        scale(draft, x, -1.0) if isinstance(x, Quantity) else -check_number("minimum", "argument", x) for x in (a, b)
    )
    return scale(draft, maximum(draft, a, b), -1.0)


def log(draft: Draft, x: Quantity) -> Quantity:
    """``log(x)`` of a positive (Gamma) variable, with Gaussian messages."""
    g = want("log", "argument", x, Gamma)
    return derived(draft, f"log({g.name})", Log(), {"x": g}, {}, Kind(Gaussian))


_DRAW = ' (for the probability of it, draw: s = posterior.sample(10_000); (s["a"] > s["b"]).mean())'


def greater(draft: Draft, a: Any, b: Any, less: bool = False) -> Quantity:
    """The event ``a > b``, written ``b < a`` if `less`."""
    label = f"{shown(b)} < {shown(a)}" if less else f"{shown(a)} > {shown(b)}"
    for x in (a, b):
        if isinstance(x, Quantity):
            if x.family is Gamma:
                raise UnsupportedError(
                    f"{label}: {x.name!r} is a Gamma variable, and comparisons take Gaussian ones; compare its logarithm, "
                    f"model.log({x.name}) > np.log(bound), which is the same event"
                )
            want(label, "argument", x, Gaussian, _DRAW if x.family is Beta else "")
    gap = subtract(draft, a, b)
    known = known_rows(gap)
    if known is not None and (known == 0).any():
        raise ModelError(f"{label}: both sides are the same random quantity, so neither is greater; leave it out")
    return derived(draft, label, Positive(), {"x": gap}, {}, Kind(Bernoulli))
