"""A new factor of what a file holds."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from heliograph.factors.black_box.box import BlackBox
from heliograph.factors.black_box.saving import WHAT, take
from heliograph.families.packing import family_named
from heliograph.oracles import sampler_of
from heliograph.storage import read_archive, understanding

__all__ = ["load_factor"]


def load_factor(path: str | os.PathLike[str], function: Callable[..., Any] | BlackBox) -> BlackBox:
    """A factor of `function` that knows what the file holds.

    `function` is the plain function, or a factor made of it (which is left as it is).
    """
    arrays, header = read_archive(path, WHAT)
    with understanding(path):
        described = header["factor"]
        if isinstance(function, BlackBox):
            old, sampler = function, function.sampler
            new = BlackBox(sampler, dimension=old.dimension, data_ranks=old.data_ranks, oracle=old.oracle)
        else:
            output = family_named(described["output"])
            sampler = sampler_of(
                function,
                output,
                name=str(described["name"]),
                vectorized=bool(described["vectorized"]),
                expensive=bool(described["expensive"]),
                partial=bool(described.get("partial", False)),  # older files have none
            )
            ranks = {str(k): int(v) for k, v in described["data_ranks"].items() if k in sampler.inputs}
            new = BlackBox(sampler, dimension=described["dimension"], data_ranks=ranks)
        take(new, arrays, header)
    return new
