"""A learned message: what is learned, when to ask, and the just-in-time loop; an operator is given `ask`, no oracle."""

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
