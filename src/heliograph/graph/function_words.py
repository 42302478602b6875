"""The words of the modelling language for functions of variables; they are methods of `Builder`."""

from __future__ import annotations

from heliograph.graph.language import functions
from heliograph.graph.quantity import Argument
from heliograph.graph.variable import ModelLike, Variable, build

__all__ = ["exp", "log", "maximum", "minimum", "sigmoid"]


def exp(self: ModelLike, z: Variable) -> Variable:
    """``exp(z)``, a positive variable with Gamma messages."""
    return build(self, functions.exp, z)


def log(self: ModelLike, x: Variable) -> Variable:
    """``log(x)`` of a positive (Gamma) variable, with Gaussian messages."""
    return build(self, functions.log, x)


def sigmoid(self: ModelLike, z: Variable) -> Variable:
    """``1 / (1 + exp(-z))``, a probability with Beta messages."""
    return build(self, functions.sigmoid, z)


def maximum(self: ModelLike, a: Argument, b: Argument) -> Variable:
    """The larger of two Gaussian variables."""
    return build(self, functions.maximum, a, b)


def minimum(self: ModelLike, a: Argument, b: Argument) -> Variable:
    """The smaller of two Gaussian variables."""
    return build(self, functions.minimum, a, b)
