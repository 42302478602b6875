"""What an integration over hyper-parameters leaves for a reader."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from heliograph.engine.nested.plotting import plot_integration

__all__ = ["Error", "Integration"]


class Error(NamedTuple):
    """What the integration itself may be off by, as the uncertainty of the log density between and beyond the points has it."""

    log_evidence: float  # nats
    mean: float  # of a hyper-parameter's mean, in its standard deviations (unconstrained scale)
    sd: float  # of a hyper-parameter's standard deviation, relative


@dataclass(frozen=True, eq=False)
class Integration:
    """Where the evidence was evaluated, and what was noticed.

    Attributes
    ----------
    names
        The hyper-parameters that were integrated over.
    fixed
        The others, at their best value.
    points
        Their values at the points that count, by name, the points along the first axis.
    u, log_density
        The points on the unconstrained scale, ``(P, d)``, and log evidence plus log prior there.
    weights
        The share of each point in the posterior, as the surrogate gives it; a share may be slightly negative.
    n_evaluations, n_failed, n_sweeps, n_frozen
        Runs of EP, those without an answer, sweeps of all of them, and evidences at fixed messages (two per dimension for a
        gradient).
    error
        An estimate of what the integration is off by, EP's own error aside.
    n_modes
        Modes that were found and integrated over.
    remarks
        What a reader should know: several modes, a scale that may be zero, hyper-parameters of which the data say nothing.
    """

    names: tuple[str, ...]
    fixed: dict[str, np.ndarray]
    points: dict[str, np.ndarray]
    u: np.ndarray
    log_density: np.ndarray
    weights: np.ndarray
    n_evaluations: int
    n_failed: int
    n_sweeps: int
    n_frozen: int
    error: Error
    n_modes: int
    remarks: tuple[str, ...]

    def plot(self, axes: Any = None) -> Any:
        """Draw the points that were explored, coloured by log density, for every pair of unconstrained coordinates."""
        return plot_integration(self, axes)

    def __repr__(self) -> str:
        over = ", ".join(self.names) if self.names else "nothing"
        return (
            f"Integration(over {over}: {self.n_evaluations} evaluations, {self.n_modes} mode{'s' * (self.n_modes != 1)}, "
            f"log evidence within {self.error.log_evidence:.2g})"
        )
