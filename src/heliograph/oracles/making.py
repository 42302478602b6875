"""An oracle by its name."""

from __future__ import annotations

from typing import Any

from heliograph.errors import ModelError
from heliograph.oracles.answer import Oracle
from heliograph.oracles.automatic import AutomaticOracle
from heliograph.oracles.importance.abc_oracle import AbcOracle
from heliograph.oracles.importance.importance_oracle import ImportanceOracle
from heliograph.oracles.quadrature.quadrature_oracle import QuadratureOracle

__all__ = ["make_oracle"]

_NAMES = {"auto": AutomaticOracle, "importance": ImportanceOracle, "quadrature": QuadratureOracle, "abc": AbcOracle}


def make_oracle(oracle: str | Oracle = "auto", **options: Any) -> Oracle:
    """The oracle of that name with these options; an object that can be asked is returned as it is.

    >>> make_oracle("importance", n_samples=1000, draws="random").n_samples
    1000
    """
    if isinstance(oracle, str):
        if oracle not in _NAMES:
            raise ModelError(f"there is no oracle {oracle!r}; there are {sorted(_NAMES)}, or give an object with `ask`")
        return _NAMES[oracle](**options)
    if options:
        raise ModelError(f"options {sorted(options)} go with an oracle's name, not with an object")
    if not callable(getattr(oracle, "ask", None)):
        raise ModelError(f"an oracle needs a method `ask`; {type(oracle).__name__} has none")
    return oracle
