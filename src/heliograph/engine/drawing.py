"""The marginals of a posterior as one picture; matplotlib is loaded when it is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from heliograph.errors import ModelError

__all__ = ["draw_posterior"]

_PANELS = 12  # variables in one picture
_ENTRIES = 10  # of a variable, beyond which means and intervals are drawn in place of densities


def draw_posterior(posterior: Any, variables: Sequence[Any] | None = None, axes: Any = None) -> Any:
    """A panel for every variable: densities of a few entries, means and intervals of many.

    Parameters
    ----------
    posterior
        Any posterior.
    variables
        Names, variables or expressions; all that the user named by default, the first twelve of them.
    axes
        Matplotlib's axes, one per variable; new ones by default.

    Returns
    -------
    The axes.
    """
    wanted = list(posterior)[:_PANELS] if variables is None else list(variables)
    if not wanted:
        raise ModelError("there is nothing to draw: every variable was observed")
    given = _panels(len(wanted)) if axes is None else list(np.ravel(np.asarray(axes, dtype=object)))
    if len(given) < len(wanted):
        raise ModelError(f"{len(wanted)} variables need as many axes, and {len(given)} were given")
    for x, ax in zip(wanted, given, strict=False):
        belief = posterior[x]
        if np.size(belief.mean) > _ENTRIES and not getattr(belief, "discrete", False):
            _whiskers(belief, ax)
        else:
            belief.plot(ax=ax)
        ax.set_title(x if isinstance(x, str) else x.name)
    return given[: len(wanted)]


def _panels(n: int) -> list[Any]:
    from matplotlib import pyplot

    columns = min(n, 3)
    rows = -(-n // columns)
    figure, axes = pyplot.subplots(rows, columns, figsize=(4 * columns, 3 * rows), layout="constrained", squeeze=False)
    flat = list(np.ravel(axes))
    for ax in flat[n:]:
        figure.delaxes(ax)
    return flat


def _whiskers(belief: Any, ax: Any) -> None:
    """Means with their 90 % intervals, entry by entry."""
    lower, upper = (np.ravel(end) for end in belief.interval(0.9))
    at = np.arange(lower.size)
    ax.fill_between(at, lower, upper, alpha=0.3, linewidth=0, label="90 % interval")
    ax.plot(at, np.ravel(belief.mean), linewidth=1, label="mean")
    ax.set_xlabel("entry")
    ax.legend()
