"""Hyper-parameters integrated over EP's evidence.

Start with `integrating`, the algorithm. `points` runs EP at a value of the hyper-parameters; `numerics.exploring` decides where;
`posterior` is what a user reads.
"""
