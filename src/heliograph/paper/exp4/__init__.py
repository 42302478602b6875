"""Experiment 4: the compound gamma.

`parts.py` is what is run, `words.py` what is said of it, `figures.py` what is drawn.
"""

from heliograph.paper.exp4 import figures, parts, words
from heliograph.paper.running.experiment import experiment_of

__all__ = ["EXPERIMENT"]

EXPERIMENT = experiment_of(
    "exp4",
    "The compound gamma, problem after problem",
    "The precision of a Gaussian under a compound gamma prior: one message a problem, over many problems.",
    (parts, words, figures),
)
