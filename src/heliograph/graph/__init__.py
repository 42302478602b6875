"""A model as a graph: variables, factors as plates with index arrays, and the errors a user reads when a model is wrong.

Start with `records`, the data of a graph. `builder` is the modelling language as a user sees it, and `language` its
functions, a file per subject, of which `words` makes methods; they write to a `draft`. `affine`, `overlaps` and `support` are
the algebra of ``2 * x + x``; `plating` and `placing` turn quantities and expressions into plates. `check` and `contradictions`
refuse wrong models; `loops` and `shared` find structure that a run warns of, or needs; `draw` shows a graph.
"""

from heliograph.graph.builder import Builder
from heliograph.graph.records import Edge, Graph, Node, Plate
from heliograph.graph.symbols import Symbol
from heliograph.graph.variable import Variable

__all__ = ["Builder", "Edge", "Graph", "Node", "Plate", "Symbol", "Variable"]
