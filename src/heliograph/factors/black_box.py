"""Black-box factors: a node given only as a forward sampler."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Conduct"]


@dataclass
class Conduct:
    """How one run wants its black boxes to behave, handed to `send` with every call."""

    rng: np.random.Generator
    operator: Any
    oracle: Any
    tolerance: float
    executor: Any
    n_factors: int  # black-box elements in the whole model, among which the tolerance is shared

    def error_estimate(self) -> float:
        """Nats that learned messages may have added to the posterior."""
        return 0.0
