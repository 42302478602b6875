"""Experiment 2: whether the doubt is worth anything."""

from heliograph.paper.exp2 import figures, parts, words
from heliograph.paper.running.experiment import experiment_of

__all__ = ["EXPERIMENT"]

EXPERIMENT = experiment_of("exp2", (parts, words, figures), seeds=0.5)
