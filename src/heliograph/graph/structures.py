"""The methods of a model that arrange variables: chains and mixtures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from heliograph.families import Family
from heliograph.graph.language import chains
from heliograph.graph.language.children import Entries
from heliograph.graph.language.mixture import mixture as mixture_of
from heliograph.graph.language.spread import Spread
from heliograph.graph.quantity import Argument
from heliograph.graph.variable import ModelLike, Variable, build

__all__ = ["chain", "mixture"]


def mixture(
    self: ModelLike,
    name: str,
    selector: Variable,
    means: Variable,
    variance: Argument | None = None,
    *,
    sd: Argument | None = None,
    precision: Argument | None = None,
    observed: Any = None,
    missing: Any = None,
) -> Variable:
    """A Gaussian variable whose component (mean, and variance, sd or precision) is chosen by a Categorical or Bernoulli.

    `means` is an array of K scalar Gaussian variables; `precision` may be one of K Gamma variables. A Bernoulli
    selector chooses component 1 when it is true and component 0 otherwise.
    """
    spread = Spread(variance, sd, precision)
    return build(self, mixture_of, name, selector, means, spread, Entries(None, observed, missing))


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
