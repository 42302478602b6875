"""What is read at every value of the hyper-parameters and averaged: numbers, covariances, likelihoods of the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from heliograph.engine.nested.integrating import Whole
from heliograph.engine.nested.points import Point
from heliograph.engine.posterior import Posterior
from heliograph.families import Gamma
from heliograph.graph.variable import Variable

__all__ = ["at", "covariance_of", "likelihood_of", "number_of"]


def at(point: Point) -> Posterior:
    """What EP found at a value."""
    assert point.posterior is not None
    return point.posterior


def number_of(whole: Whole, values: Mapping[str, np.ndarray], x: Variable) -> np.ndarray | None:
    """A variable at the nodes where it is a number there: it is integrated over, or was computed from such; else None."""
    if x.name in values:
        each = values[x.name]
        return each if x.index is None else each.reshape(len(each), -1)[:, x.index]
    known = [None if p.model is None else p.model.number(x) for p in whole.points]
    if any(k is None for k in known):
        return None
    each = np.stack([k for k in known if k is not None])
    if x.family is Gamma:  # between the values where EP ran, on the scale on which it is unconstrained
        return np.exp(np.tensordot(whole.spread, np.log(each), axes=1))
    return np.tensordot(whole.spread, each, axes=1)


def covariance_of(
    whole: Whole, numbers: Callable[[Variable], np.ndarray | None], a: Variable, b: Variable
) -> np.ndarray:
    """The covariance at each value, and that of the means between values."""
    spread, weights = whole.spread, whole.weights
    known = {x: numbers(x) for x in (a, b)}
    inside: list[np.ndarray] = []
    means: dict[Variable, list[np.ndarray]] = {a: [], b: []}
    for p in whole.points:
        assert p.model is not None
        there = {x: p.model.variable(x) for x in (a, b) if known[x] is None}
        for x, y in there.items():
            means[x].append(np.asarray(at(p)[y].mean))
        if len(there) == len(means):
            inside.append(at(p).covariance(there[a], there[b]))
    found: list[np.ndarray] = []
    for x in (a, b):
        number = known[x]
        each = np.tensordot(spread, np.stack(means[x]), axes=1) if number is None else number
        found.append(each.reshape(len(weights), -1) - weights @ each.reshape(len(weights), -1))
    between = found[0].T @ (weights[:, None] * found[1])
    if not inside:
        return between.reshape((*_entries(a), *_entries(b)))
    return np.tensordot(weights @ spread, np.stack(inside), axes=1) + between.reshape(inside[0].shape)


def _entries(x: Variable) -> tuple[int, ...]:
    return x.shape if x.node.dimension is None else (*x.shape, x.node.dimension)


def likelihood_of(whole: Whole) -> dict[str, np.ndarray]:
    """``log E p(y_i | ...)`` of every observed variable, over the hyper-parameters, too."""
    each = [at(p).log_likelihood(pointwise=True) for p in whole.points]
    return {
        name: np.logaddexp.reduce(
            np.tensordot(whole.spread, np.stack([e[name] for e in each]), axes=1).T
            + np.log(np.maximum(whole.weights, 1e-300)),
            axis=-1,
        ).T
        for name in each[0]
    }
