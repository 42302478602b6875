"""Experiment 2: whether the doubt is worth anything.

`parts.py` is what is run, `words.py` what is said of it, `figures.py` what is drawn.
"""

from heliograph.paper.exp2 import figures, parts, words
from heliograph.paper.running.experiment import experiment_of

__all__ = ["EXPERIMENT"]

EXPERIMENT = experiment_of(
    "exp2",
    "Uncertainty of kernels and forests",
    "How doubt behaves along two curves through the space of messages, and whether small doubt means small error.",
    (parts, words, figures),
    seeds=0.5,
)
