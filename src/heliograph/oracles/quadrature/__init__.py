"""Adaptive quadrature: the exact answer for deterministic factors of one or two unknown numbers.

Start with `quadrature_oracle.py`: a rough pass finds the belief, a second one resolves it. `cells.py` holds the boxes and their
sums, `evaluation.py` fills them from the user's function, `refinement.py` opens a window and halves cells, and `totals.py` adds
them up to an answer.
"""

from heliograph.oracles.quadrature.quadrature_oracle import QuadratureOracle

__all__ = ["QuadratureOracle"]
