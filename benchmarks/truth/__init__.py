"""The truth machine: random models whose answer is known by other means, and a verdict on what heliograph says.

    python -m benchmarks.truth --models 2000 --jobs 2

prints a table of verdicts per kind and every model that was silently wrong or crashed, as source that can be pasted.
`make(kind, seed)` gives one model, `judge(world)` its verdict; `tests/truth` runs a few of each kind.
"""

from benchmarks.truth.kinds import KINDS, make
from benchmarks.truth.verdict import CRASHED, REFUSED, RIGHT, SAID, SILENT, Result, judge
from benchmarks.truth.world import Truth, World

__all__ = ["CRASHED", "KINDS", "REFUSED", "RIGHT", "SAID", "SILENT", "Result", "Truth", "World", "judge", "make"]
