"""The choice of a kind for every plate, made once when a run is compiled."""

from __future__ import annotations

from heliograph.engine.blocks.plate import BlockFactor
from heliograph.engine.discrete.counts import CountsFactor
from heliograph.engine.discrete.plate import DiscreteFactor
from heliograph.engine.plates.block import BlockPlate
from heliograph.engine.plates.discrete import CountsPlate, DiscretePlate
from heliograph.engine.plates.learned import LearnedPlate
from heliograph.engine.plates.plain import PlainPlate
from heliograph.engine.plates.protocol import PlateKind
from heliograph.graph.records import Graph, Plate

__all__ = ["compile_plates"]


def compile_plates(graph: Graph) -> tuple[PlateKind, ...]:
    """Choose the kind of every plate of a graph, in its order."""
    return tuple(_kind(graph, plate) for plate in graph.plates)


def _kind(graph: Graph, plate: Plate) -> PlateKind:
    if isinstance(plate.factor, BlockFactor):
        return BlockPlate(plate, plate.factor)
    if isinstance(plate.factor, CountsFactor):
        return CountsPlate(plate, plate.factor)
    if isinstance(plate.factor, DiscreteFactor):
        return DiscretePlate(plate, plate.factor)
    return LearnedPlate(graph, plate) if plate.factor.learns else PlainPlate(graph, plate)
