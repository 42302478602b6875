"""The words of the modelling language for processes; they are methods of `Builder`."""

from __future__ import annotations

from typing import Any

from heliograph.graph.language import processes
from heliograph.graph.language.processes import Kernel
from heliograph.graph.variable import ModelLike, Variable, build

__all__ = ["gp"]


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
