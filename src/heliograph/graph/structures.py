"""The words of the modelling language that arrange variables: mixtures, chains, processes, and functions of variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from heliograph.errors import ModelError
from heliograph.families import Family
from heliograph.graph.language import chains, functions, processes
from heliograph.graph.language.children import Entries
from heliograph.graph.language.mixture import mixture as gaussian_mixture
from heliograph.graph.language.mixture import mixture_of
from heliograph.graph.language.processes import Kernel
from heliograph.graph.language.spread import Spread
from heliograph.graph.quantity import Argument
from heliograph.graph.variable import ModelLike, Variable, build

__all__ = ["chain", "exp", "gp", "log", "maximum", "minimum", "mixture", "sigmoid"]


def mixture(
    self: ModelLike,
    name: str,
    selector: Variable,
    means: Variable | Callable[[int], Any],
    variance: Argument | None = None,
    *,
    sd: Argument | None = None,
    precision: Argument | None = None,
    observed: Any = None,
    missing: Any = None,
) -> Variable:
    """A variable whose component is chosen by a Categorical, or by a Bernoulli, which chooses component 1 where it is true.

    Of Gaussian components, `means` is an array of K scalar Gaussian variables along its last axis, with a variance, sd or
    precision, one or K of them; `precision` may be a Gamma variable. For any other components `means` is a function of k that
    calls a builder with the mixture's name: ``model.mixture("y", which, lambda k: model.poisson("y", rate[k]), observed=counts)``.
    Every builder that makes one factor can be a component: vectors, counts, lifetimes, labels, regressions
    (``model.gaussian("y", a[k] + b[k] * x, sd=1.0)``), fixed distributions, also different ones for different k.

    >>> from heliograph.engine import Model
    >>> model = Model()
    >>> rate = model.gamma("rate", 1.0, [1.0, 0.05])
    >>> which = model.categorical("which", [0.5, 0.5], size=4)
    >>> y = model.mixture("y", which, lambda k: model.poisson("y", rate[k]), observed=[1, 30, 0, 25])
    >>> model.infer()[which].p.argmax(axis=1)
    array([0, 1, 0, 1])
    """
    entries = Entries(None, observed, missing)
    if callable(means) and not isinstance(means, Variable):
        if any(x is not None for x in (variance, sd, precision)):
            raise ModelError(f"variable {name!r}: its components are given by a function, which says how wide they are")
        return build(self, mixture_of, name, selector, means, entries)
    spread = Spread(variance, sd, precision)
    return build(self, gaussian_mixture, name, selector, means, spread, entries)


def chain(
    self: ModelLike,
    name: str,
    n: int,
    start: Family | Callable[[], Any],
    step: Callable[..., Any],
    *,
    observed: Any = None,
    missing: Any = None,
) -> Variable:
    """A variable of n entries along its first axis, each made from the one before (or the several before) by `step`.

    `start` is a message, or a function that makes the first entry; `step` a function of the entry before (and of those
    before that: as many as it has arguments, the latest first). Both call a builder with the chain's name, once for all:
    ``model.chain("x", 1000, hg.Gaussian(0.0, 1.0), lambda before: model.gaussian("x", 0.9 * before, variance=0.19))``.
    """
    entries = Entries(None, observed, missing)
    return build(self, chains.chain, name, n, start, step, lambda x: Variable(self, x.node, x.index), entries)


def gp(
    self: ModelLike,
    name: str,
    inputs: Any,
    kernel: str = "rbf",
    *,
    length_scale: Any = 1.0,
    amplitude: Any = 1.0,
    period: Any = None,
    mean: Any = 0.0,
) -> Variable:
    """A Gaussian process at given inputs, ``(n,)`` numbers or ``(n, d)`` points: n Gaussian variables, kept joint.

    `kernel` is "rbf", "matern32", "matern52" or "periodic" (with `period`); `length_scale`, `amplitude` (a standard deviation) and
    `period` are numbers or hyper-parameters. A millionth of the variance is added to every variance, so that near inputs do no
    harm.

    >>> import heliograph as hg
    >>> model = hg.Model()
    >>> f = model.gp("f", [0.0, 1.0, 2.0], length_scale=1.0, amplitude=2.0)
    >>> y = model.gaussian("y", f, sd=0.1, observed=[0.0, 1.0, 0.5])
    >>> model.infer()[f].mean.round(2)
    array([0.  , 0.99, 0.5 ])
    """
    return build(self, processes.gp, name, inputs, Kernel(kernel, length_scale, amplitude, period), mean)


# ---- functions of variables -------------------------------------------------------------------------------------------
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
