"""Experiment 5: four real data sets in sequence.

`parts.py` is what is run, `words.py` what is said of it, `figures.py` what is drawn.
"""

from heliograph.paper.exp5 import figures, parts, words
from heliograph.paper.running.experiment import experiment_of

__all__ = ["EXPERIMENT"]

EXPERIMENT = experiment_of(
    "exp5",
    "Four real data sets in sequence",
    "Four real data sets in a row: the messages change with each, and the operator should notice and ask.",
    (parts, words, figures),
    first_seed_only=("sampling",),
)
