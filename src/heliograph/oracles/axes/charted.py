"""Base classes of axes: values by the family's chart, and default methods."""

# ruff: noqa: D102 (what the methods do is said once, at `Axis`)
from __future__ import annotations

from typing import Any

import numpy as np

from heliograph.families.charts import Chart

__all__ = ["ChartedAxis", "NumberAxis"]


class ChartedAxis:
    """The chart's coordinates, of which there are several."""

    chart: Chart
    discrete, linear = False, False
    scale_is_log_gap, edge_depth, largest = False, 0.0, np.inf

    def value(self, u: np.ndarray) -> np.ndarray:
        return self.chart.value(u)

    def coordinates(self, x: np.ndarray) -> np.ndarray:
        return self.chart.coordinates(self.chart.inside(x))

    def log_message(self, message: Any, u: np.ndarray) -> np.ndarray:
        return message.reshape((message.size, 1)).log_density(self.value(u))

    def log_jacobian(self, u: np.ndarray) -> np.ndarray:
        return self.chart.log_jacobian(u)

    def edge(self, x: np.ndarray) -> np.ndarray:
        return np.zeros(x.shape[:-1], dtype=np.int8)

    def log_highest(self, message: Any) -> np.ndarray:
        return np.full(message.shape, np.inf)

    def falls_off(self, message: Any) -> np.ndarray:
        return np.zeros(message.shape, dtype=bool)


class NumberAxis(ChartedAxis):
    """The chart's only coordinate, kept along a last axis of length 1."""

    n_coordinates = 1

    def value(self, u: np.ndarray) -> np.ndarray:
        return self.chart.value(u[..., 0])

    def coordinates(self, x: np.ndarray) -> np.ndarray:
        return super().coordinates(x)[..., None]

    def log_jacobian(self, u: np.ndarray) -> np.ndarray:
        return self.chart.log_jacobian(u[..., 0])

    def edge(self, x: np.ndarray) -> np.ndarray:
        return np.zeros(np.shape(x), dtype=np.int8)

    def moments(self, message: Any) -> tuple[np.ndarray, np.ndarray]:
        mean, variance = message.chart_moments()
        return mean[:, None], variance[:, None, None]
