"""Variables, factors as plates with index arrays, and the sentences a user reads when a graph is wrong."""

from heliograph.graph.builder import Builder
from heliograph.graph.records import Edge, Graph, Node, Plate
from heliograph.graph.variable import Variable

__all__ = ["Builder", "Edge", "Graph", "Node", "Plate", "Variable"]
