"""The paper's operator, learned just in time with random features: start reading at `just_in_time.py`.

`just_in_time.py` is the loop (section 3.3 of the paper), `kernel_learner.py` the paper's regression and `Kjit`, `targets.py` what
is learned, `directions.py` what is known and how it is kept. The loop also serves the forest of `paper/rivals/forest.py`.
"""

from heliograph.operators.kjit.directions import Direction
from heliograph.operators.kjit.just_in_time import JustInTime
from heliograph.operators.kjit.kernel_learner import KernelLearner, Kjit, columns
from heliograph.operators.kjit.targets import (
    BeliefLogs,
    BeliefStatistics,
    OutgoingMessage,
    OutgoingRate,
    Target,
    target_named,
)

__all__ = [
    "BeliefLogs",
    "BeliefStatistics",
    "Direction",
    "JustInTime",
    "KernelLearner",
    "Kjit",
    "OutgoingMessage",
    "OutgoingRate",
    "Target",
    "columns",
    "target_named",
]
