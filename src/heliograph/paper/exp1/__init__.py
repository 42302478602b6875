"""Experiment 1: learning in batch.

`parts.py` is what is run, `words.py` what is said of it, `figures.py` what is drawn.
"""

from heliograph.paper.exp1.figures import draw
from heliograph.paper.exp1.parts import FULL, QUICK, assemble, headlines, parts_of
from heliograph.paper.exp1.words import claims, sentences, tables
from heliograph.paper.running.experiment import Experiment

__all__ = ["EXPERIMENT"]

EXPERIMENT = Experiment(
    "exp1",
    "Batch learning, ten methods and ours",
    "A message operator is trained on messages of finished EP runs and asked about others. The error "
    "is KL(label || prediction) of the belief sent to z.",
    QUICK,
    FULL,
    parts_of,
    assemble,
    headlines,
    tables,
    sentences,
    claims,
    draw,
    seeds=0.5,
)
