"""Plates as a run uses them: one small protocol, and the kinds of plates that implement it.

Start with `protocol`: what any kind of plate can be asked. `plain` is a factor with formulas, `learned` a black box that
asks and learns, `block` what is jointly Gaussian, `discrete` and `counts` what is summed over. `exchange` holds what all of them
write to, and `delivery` the way of a new message into the tables. `compiling` chooses the kind of every plate, once per run.
"""

from heliograph.engine.plates.compiling import compile_plates
from heliograph.engine.plates.exchange import Counts, Exchange
from heliograph.engine.plates.protocol import EvidencePoint, PlateKind

__all__ = ["Counts", "EvidencePoint", "Exchange", "PlateKind", "compile_plates"]
