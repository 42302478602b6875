"""SciPy's special functions with type annotations, which SciPy lacks: import any of them from here."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import special


def __getattr__(name: str) -> Callable[..., np.ndarray]:
    return getattr(special, name)
