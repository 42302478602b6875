"""Discrete blocks: categories that known tables join are summed over exactly, in chains, trees and small loops.

Start reading at `compile.py` (a graph's tables become log tables over variables), then `plate.py` (a block as a factor that the
engine sends messages to). `graph.py` puts blocks in the place of the plates. The sums themselves are in `numerics.elimination`.
"""
