"""EP-ABC (Barthelme and Chopin 2011): an observed output matched within a tolerance.

No draw of a continuous output equals an observation, so a draw counts if it comes near: |f - y| <= epsilon, or by a
Gaussian kernel of that width. Everything else is importance sampling.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import gammaln

from heliograph.errors import ModelError
from heliograph.oracles.answer import Answer
from heliograph.oracles.importance.importance_oracle import ImportanceOracle
from heliograph.oracles.importance.weighing import log_output
from heliograph.oracles.problem import Port
from heliograph.oracles.sampler import Sampler

__all__ = ["AbcOracle"]


@dataclass(frozen=True)
class AbcOracle:
    """Sample the inputs from the cavity, accept where the output is within `epsilon` of what was observed.

    `kernel` is "uniform" (accept or reject) or "gaussian". Vectors are compared by their Euclidean norm. The belief is that of
    the factor blurred by the kernel: it has a bias of order ``epsilon^2`` that no standard error shows. Rows whose
    output is not a point mass, and discrete outputs, are weighted as usual.
    """

    epsilon: float = 0.1
    kernel: str = "uniform"
    sampling: ImportanceOracle = field(
        default_factory=lambda: ImportanceOracle(65_536, proposal="cavity", draws="random", adapt=False)
    )

    def ask(self, rng: np.random.Generator, sampler: Sampler, incoming: Mapping[str, Any]) -> Answer:
        """The beliefs of every direction, one row for each incoming tuple."""
        if self.kernel not in ("uniform", "gaussian"):
            raise ModelError(f"a kernel is 'uniform' or 'gaussian', not {self.kernel!r}")
        if not self.epsilon > 0:
            raise ModelError(f"epsilon must be positive, not {self.epsilon}")
        return self.sampling.ask(rng, sampler, incoming, self._log_match)

    def _log_match(self, output: Port, v: np.ndarray) -> np.ndarray:
        observed = output.message.is_point
        if output.axis.discrete or not observed.any():
            return log_output(output, v)
        value = output.axis.value(v)  # (n, s) or (n, s, d)
        point = np.asarray(output.message.point)
        gap = value - np.where(np.isnan(point), 0.0, point)[:, None]
        d = 1 if gap.ndim == 2 else gap.shape[-1]
        distance = np.abs(gap) if gap.ndim == 2 else np.sqrt((gap**2).sum(axis=-1))
        if self.kernel == "uniform":
            log_volume = d * np.log(self.epsilon) + 0.5 * d * np.log(np.pi) - gammaln(0.5 * d + 1)
            log_near = np.where(distance <= self.epsilon, -log_volume, -np.inf)
        else:
            norm = d * (np.log(self.epsilon) + 0.5 * np.log(2 * np.pi))
            log_near = -0.5 * (distance / self.epsilon) ** 2 - norm
        if observed.all():
            return log_near
        return np.where(observed[:, None], log_near, log_output(output, v))
