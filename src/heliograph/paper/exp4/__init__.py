"""Experiment 4: the compound gamma."""

from heliograph.paper.exp4 import figures, parts, words
from heliograph.paper.running.experiment import experiment_of

__all__ = ["EXPERIMENT"]

EXPERIMENT = experiment_of("exp4", (parts, words, figures))
