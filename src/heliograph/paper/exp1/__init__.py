"""Experiment 1: learning in batch.

`parts.py` is what is run, `words.py` what is said of it, `figures.py` what is drawn.
"""

from heliograph.paper.exp1 import figures, parts, words
from heliograph.paper.running.experiment import experiment_of

__all__ = ["EXPERIMENT"]

EXPERIMENT = experiment_of(
    "exp1",
    "Batch learning, ten methods and ours",
    "A message operator is trained on messages of finished EP runs and asked about others. The error "
    "is KL(label || prediction) of the belief sent to z.",
    (parts, words, figures),
    seeds=0.5,
)
