"""Experiment 5: four real data sets in sequence."""

from heliograph.paper.exp5 import figures, parts, words
from heliograph.paper.running.experiment import experiment_of

__all__ = ["EXPERIMENT"]

EXPERIMENT = experiment_of("exp5", (parts, words, figures), first_seed_only=("sampling",))
