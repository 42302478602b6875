"""Experiment 3: just-in-time learning over 30 logistic regressions.

`parts.py` is what is run, `words.py` what is said of it, `figures.py` what is drawn.
"""

from heliograph.paper.exp3 import figures, parts, words
from heliograph.paper.running.experiment import experiment_of

__all__ = ["EXPERIMENT"]

EXPERIMENT = experiment_of(
    "exp3",
    "Just-in-time learning of the logistic factor",
    "Logistic regressions, one after another, while the operator learns the logistic factor's "
    "messages as it goes and asks an oracle when it is in doubt.",
    (parts, words, figures),
    first_seed_only=("sampling",),
)
