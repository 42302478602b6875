"""Chains: one variable whose entries follow each other, written once for all of them.

The step is called once, with the entries before as slices of the variable; what it makes are the entries after. So a chain of a
million entries is one node and the same few plates as a chain of three.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from heliograph.errors import ModelError
from heliograph.families import Family
from heliograph.graph.draft import Draft, Unfolding
from heliograph.graph.language.children import Entries, from_message
from heliograph.graph.language.statements import observe
from heliograph.graph.quantity import Quantity
from heliograph.numerics.checks import in_words

__all__ = ["chain"]


def chain(
    draft: Draft,
    name: str,
    n: Any,
    start: Any,
    step: Callable[..., Any],
    handle: Callable[[Quantity], Any],
    entries: Entries,
) -> Quantity:
    """A chain of n entries; see `Builder.chain`. `handle` makes of a quantity what a user's function is given."""
    draft.check_name(name)
    lags = _lags(name, step)
    n = int(n) if isinstance(n, np.integer) else n  # type: ignore[arg-type]
    if not isinstance(n, int) or n < lags:
        raise ModelError(f"chain {name!r}: n must be a whole number of at least {lags}, not {in_words(n)}")
    draft.chains[name] = unfolding = Unfolding(n, lags)
    try:
        _start(draft, name, start)
        if unfolding.node is None:
            raise ModelError(
                f"chain {name!r}: its start made no variable called {name!r}; write for example "
                f"start=lambda: model.gaussian({name!r}, 0.0, variance=1.0)"
            )
        whole = Quantity(unfolding.node)
        if n > lags:
            unfolding.following = whole.entries()[lags:]
            step(*(handle(whole.part(slice(lags - k, n - k))) for k in range(1, lags + 1)))
            if draft.chains[name].following is not None:
                raise ModelError(
                    f"chain {name!r}: its step made no variable called {name!r}; write for example "
                    f"step=lambda before: model.gaussian({name!r}, before, variance=1.0)"
                )
    finally:
        del draft.chains[name]
    if entries.observed is not None:
        observe(draft, whole, entries.observed, entries.missing)
    return whole


def _start(draft: Draft, name: str, start: Any) -> None:
    if isinstance(start, Family):
        from_message(draft, name, start, (Family,), Entries())
    elif callable(start):
        start()
    else:
        raise ModelError(
            f"chain {name!r}: its start is a message, for example start=hg.Gaussian(0.0, 1.0), or a function that makes the first "
            f"entry, not {in_words(start)}"
        )


def _lags(name: str, step: Any) -> int:
    """How many entries before the step looks at: its number of arguments."""
    if not callable(step):
        raise ModelError(
            f"chain {name!r}: step= is a function of the entry before, which calls a builder with the name {name!r}"
        )
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    lags = sum(p.kind in kinds and p.default is p.empty for p in inspect.signature(step).parameters.values())
    if not lags:
        raise ModelError(f"chain {name!r}: step= must take the entry before as its argument")
    return lags
