"""The loop: cavity, send, damp, properness policy, stopping, evidence."""

from heliograph.engine.loop import Step, infer, steps
from heliograph.engine.model import Model
from heliograph.engine.posterior import Posterior
from heliograph.engine.stopping import StopRule, after, after_seconds, changed_less_than
from heliograph.engine.trace import Invocation, SweepInfo, Trace

__all__ = [
    "Invocation",
    "Model",
    "Posterior",
    "Step",
    "StopRule",
    "SweepInfo",
    "Trace",
    "after",
    "after_seconds",
    "changed_less_than",
    "infer",
    "steps",
]
