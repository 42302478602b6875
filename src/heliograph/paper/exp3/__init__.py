"""Experiment 3: just-in-time learning over 30 logistic regressions."""

from heliograph.paper.exp3 import figures, parts, words
from heliograph.paper.running.experiment import experiment_of

__all__ = ["EXPERIMENT"]

EXPERIMENT = experiment_of("exp3", (parts, words, figures), first_seed_only=("sampling",))
