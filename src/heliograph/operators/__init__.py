"""Operators: what sends a black box's messages, asking an oracle when it does not know. An operator is given `ask`, no oracle.

Start reading at `protocol.py` (what an operator is). `learned/` is the default, `kjit/` the paper's, `asking.py` the one that
always asks; `registry.py` finds them by name, and those of earlier papers in `paper/rivals` too.
"""

from heliograph.operators.asking import AlwaysAsk
from heliograph.operators.kjit.just_in_time import JustInTime
from heliograph.operators.kjit.kernel_learner import KernelLearner, Kjit
from heliograph.operators.learned import Learned
from heliograph.operators.protocol import Learner, LogNormalisers, Operator, Reply, Setting
from heliograph.operators.registry import make_operator, operator_names, register

__all__ = [
    "AlwaysAsk",
    "JustInTime",
    "KernelLearner",
    "Kjit",
    "Learned",
    "Learner",
    "LogNormalisers",
    "Operator",
    "Reply",
    "Setting",
    "make_operator",
    "operator_names",
    "register",
]
