"""Operators: what sends a black box's messages, asking an oracle when it does not know. An operator is given `ask`, no oracle.

Start reading at `protocol.py` (what an operator is). `learned/` is the default, `kjit/` the paper's, `forest.py` and
`neural.py` those of earlier papers, `asking.py` the one that always asks; `registry.py` finds them by name. `chart.py` and
`vector_chart.py` are the targets of the default operator, `coordinates.py` and `summaries.py` are messages as rows of
numbers for the others, and `packing.py` turns plates of messages into arrays.
"""

from heliograph.operators.asking import AlwaysAsk
from heliograph.operators.forest import Forest
from heliograph.operators.kjit import (
    BeliefLogs,
    BeliefStatistics,
    Direction,
    JustInTime,
    KernelLearner,
    Kjit,
    OutgoingMessage,
    OutgoingRate,
    Target,
    target_named,
)
from heliograph.operators.learned import Learned
from heliograph.operators.neural import Neural
from heliograph.operators.protocol import Learner, Operator, Reply, Setting
from heliograph.operators.registry import make_operator, operator_from_state, operator_names, register

__all__ = [
    "AlwaysAsk",
    "BeliefLogs",
    "BeliefStatistics",
    "Direction",
    "Forest",
    "JustInTime",
    "KernelLearner",
    "Kjit",
    "Learned",
    "Learner",
    "Neural",
    "Operator",
    "OutgoingMessage",
    "OutgoingRate",
    "Reply",
    "Setting",
    "Target",
    "make_operator",
    "operator_from_state",
    "operator_names",
    "register",
    "target_named",
]
