"""The appendix on random features."""

from heliograph.paper.features import figures, parts, words
from heliograph.paper.running.experiment import experiment_of

__all__ = ["EXPERIMENT"]

EXPERIMENT = experiment_of("features", (parts, words, figures), seeds=0.5)
