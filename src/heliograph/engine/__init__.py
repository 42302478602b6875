"""Inference: what is sent when, sweeps until the beliefs settle, and the posterior with its evidence.

Start with `loop` (`infer` and `steps`), then `run`, which goes through the sweeps of a `compiled` model. `plates` holds the
kinds of plates and the protocol that they share; `tables` the messages; `schedule` their order. `options` lists the settings
of a run. `properness`, `pace`, `convergence` and `stopping` decide what is stored, how far a step goes and when to stop;
`evidence`, `reading`, `status` and `trace` serve the `posterior`. `nested` integrates over hyper-parameters, `gated`
runs the branches of a model with gates, `partition` sweeps a part of the data against a boundary.
"""

from heliograph.engine.gated.branch import Branch
from heliograph.engine.gated.posterior import GatedPosterior
from heliograph.engine.loop import Step, infer, steps
from heliograph.engine.model import Model
from heliograph.engine.nested.posterior import IntegratedPosterior
from heliograph.engine.partition import Part
from heliograph.engine.posterior import Posterior
from heliograph.engine.readable import Comparison, compare
from heliograph.engine.saving import SavedPosterior, load_posterior
from heliograph.engine.stopping import StopRule, after, after_seconds, changed_less_than
from heliograph.engine.sweep_info import Invocation, SweepInfo
from heliograph.engine.trace import Trace

__all__ = [
    "Branch",
    "Comparison",
    "GatedPosterior",
    "IntegratedPosterior",
    "Invocation",
    "Model",
    "Part",
    "Posterior",
    "SavedPosterior",
    "Step",
    "StopRule",
    "SweepInfo",
    "Trace",
    "after",
    "after_seconds",
    "changed_less_than",
    "compare",
    "infer",
    "load_posterior",
    "steps",
]
