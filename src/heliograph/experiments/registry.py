"""Every experiment by its name."""

from __future__ import annotations

from heliograph.experiments import exp1, exp2, exp3, exp4, exp5, features
from heliograph.experiments.experiment import Experiment

__all__ = ["EXPERIMENTS"]

EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT for module in (exp1, exp2, exp3, exp4, exp5, features)
}
