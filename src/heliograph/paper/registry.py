"""Every experiment by its name."""

from __future__ import annotations

from heliograph.paper.exp1 import parts as exp1
from heliograph.paper.exp2 import parts as exp2
from heliograph.paper.exp3 import parts as exp3
from heliograph.paper.exp4 import parts as exp4
from heliograph.paper.exp5 import parts as exp5
from heliograph.paper.features import parts as features
from heliograph.paper.running.experiment import Experiment

__all__ = ["EXPERIMENTS"]

EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT for module in (exp1, exp2, exp3, exp4, exp5, features)
}
