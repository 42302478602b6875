"""Models with gates: a run for every branch, weighed by its evidence.

Start with `inference`, which runs the branches that `graph.gates` writes; `posterior` is what a user reads.
"""
