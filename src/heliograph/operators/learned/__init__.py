"""The default operator: learned corrections to a cheap reference. Start reading at `operator.py`, which is the algorithm.

Data goes one way: `view.py` (what is seen of messages), `predict.py` (what a process says of them), `decide.py` (every
tolerance, limit and reason to ask), `learn.py` (labels from an oracle's answer). What flows between them is in `records.py`.
`memory.py` holds what was learned, `references.py` gives the cheap beliefs that it corrects, `calibration.py` says how
expected errors fared, and `outcome.py` puts a reply together. Where one message alone moves, predictions are kept:
`shortcut.py` (when), `spacing.py` (how fine), `lattice.py` and `cells.py`.
"""

from heliograph.operators.learned.calibration import Calibration, CalibrationTable
from heliograph.operators.learned.memory import LOG_Z
from heliograph.operators.learned.operator import Learned

__all__ = ["LOG_Z", "Calibration", "CalibrationTable", "Learned"]
