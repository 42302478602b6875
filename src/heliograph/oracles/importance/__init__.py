"""Importance sampling: the answer for any factor that can be drawn from, with an account of its errors.

Start with `importance_oracle.py`, which reads top to bottom as the algorithm: find a proposal, run it, judge the run.

- Where to draw: `proposal.py` (what a proposal is), `scanning.py` with `segments.py` (one unknown number),
  `lost_modes.py` (two), `adapting.py` with `fitting.py` (pilots, for everything else).
- The run: `uniforms.py`, `weighing.py`, `sums.py`, `running.py`; `plain.py` with `plain_lines.py` is the fast
  way of the paper's own sampler; `pool.py` keeps draws.
- The verdict: `judging.py`, `diagnostics.py`, and `unseen.py` for outcomes too rare to be drawn.
- `abc_oracle.py` compares outputs with observations within a tolerance.
"""

from heliograph.oracles.importance.abc_oracle import AbcOracle
from heliograph.oracles.importance.importance_oracle import ImportanceOracle
from heliograph.oracles.importance.pool import Pool

__all__ = ["AbcOracle", "ImportanceOracle", "Pool"]
