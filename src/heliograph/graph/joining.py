"""Several variables as one array: what ``hg.concatenate`` and ``hg.stack`` do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from heliograph.errors import ModelError
from heliograph.families import concatenate as concatenate_messages
from heliograph.graph.language.arrays import join, pile
from heliograph.graph.variable import Variable, build

__all__ = ["concatenate", "stack"]


def concatenate(parts: Sequence[Any], axis: int = 0) -> Any:
    """Join arrays of Gaussian variables (and numbers) along an axis, as ``np.concatenate``; or batches of messages.

    Parameters
    ----------
    parts
        Variables of one model, numbers among them if need be; or messages of one family.
    axis
        The axis of variables along which they are joined.

    Examples
    --------
    >>> import heliograph as hg
    >>> model = hg.Model()
    >>> a, b = model.gaussian("a", [0.0, 1.0], sd=1.0), model.gaussian("b", [2.0], sd=1.0)
    >>> posterior = model.infer()
    >>> posterior[hg.concatenate([a, b, [7.0]])].mean
    array([0., 1., 2., 7.])
    """
    found = _first(parts)
    if found is None:
        return concatenate_messages(parts)
    return build(found.model, join, list(parts), axis)


def stack(parts: Sequence[Any], axis: int = 0) -> Variable:
    """Put variables (and numbers) of one shape side by side along a new axis, as ``np.stack``.

    Parameters
    ----------
    parts
        Variables of one model, numbers among them if need be; shapes are broadcast.
    axis
        The place of the new axis.

    Examples
    --------
    >>> import heliograph as hg
    >>> model = hg.Model()
    >>> a, b = model.gaussian("a", 0.0, sd=1.0), model.gaussian("b", 0.0, sd=1.0)
    >>> ([[1.0, 2.0], [1.0, 3.0]] @ hg.stack([a, b])).shape
    (2,)
    """
    found = _first(parts)
    if found is None:
        raise ModelError("stack takes a list of variables, for example hg.stack([a, b])")
    return build(found.model, pile, list(parts), axis)


def _first(parts: Any) -> Variable | None:
    """The first variable of a list."""
    if isinstance(parts, Variable):
        return parts
    if not isinstance(parts, (list, tuple)):
        return None
    return next((p for p in cast("Sequence[object]", parts) if isinstance(p, Variable)), None)
