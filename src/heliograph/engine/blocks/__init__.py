"""Gaussian blocks: what is jointly Gaussian stays joint.

Start reading at `compile.py` (a graph's linear plates become rows over base scalars), then `plate.py` (a block as a factor that
the engine sends messages to) and `dense.py` (its linear system). `graph.py` puts blocks in the place of the plates.
"""
