"""Experiment 1: learning in batch."""

from heliograph.paper.exp1 import figures, parts, words
from heliograph.paper.running.experiment import experiment_of

__all__ = ["EXPERIMENT"]

EXPERIMENT = experiment_of("exp1", (parts, words, figures), seeds=0.5)
