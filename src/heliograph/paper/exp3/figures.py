"""Figures of experiment 3."""

from __future__ import annotations

from typing import Any

from heliograph.paper.report.style import Picture
from heliograph.paper.sequences.figures import draw_sequence

__all__ = ["draw"]


def draw(result: dict[str, Any], series: dict[str, Any]) -> list[Picture]:
    """Temporal uncertainty, then error, time, posterior KL and asks per problem."""
    return draw_sequence(result, series, "exp3")
