"""Values of the hyper-parameters for draws: each an equal share of their posterior mass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from heliograph.engine.nested.integrating import Whole
from heliograph.engine.nested.points import Point

__all__ = ["Share", "shares_of"]

_VALUES = 128  # that draws are made at


class Share(NamedTuple):
    """Some draws at one value of the hyper-parameters."""

    point: Point  # the nearest one at which EP was run
    node: int  # the value's place among the nodes
    values: dict[str, np.ndarray]
    n: int


def shares_of(
    rng: np.random.Generator, whole: Whole, values: Mapping[str, np.ndarray], n: int, varying: set[str]
) -> list[Share]:
    """Divide `n` draws among values of the hyper-parameters.

    Parameters
    ----------
    rng
        The source of the draws.
    whole
        The integration.
    values
        The hyper-parameters: those in `varying` at the nodes, the others at their best value.
    n
        The number of draws.
    varying
        The names of those that were integrated over.
    """
    nodes, weights = whole.u, whole.weights
    order = np.lexsort(nodes.T[::-1])
    most = min(n, len(weights), _VALUES)
    places = (np.arange(most) + rng.random(most)) / most
    chosen = order[np.minimum(np.searchsorted(np.cumsum(weights[order]), places), len(order) - 1)]
    counts = np.full(most, n // most) + (rng.permutation(most) < n % most)
    width = np.sqrt(weights @ (nodes - weights @ nodes) ** 2) + 1e-300  # what does not vary has no distance
    found: list[Share] = []
    for k, count in zip(chosen.tolist(), counts.tolist(), strict=True):
        apart = [float(np.sum(((p.u - nodes[k]) / width) ** 2)) for p in whole.points]
        here = {name: v[k] if name in varying else v for name, v in values.items()}
        found.append(Share(whole.points[int(np.argmin(apart))], k, here, count))
    return found
