"""Experiment 4: the compound gamma.

`parts.py` is what is run, `words.py` what is said of it, `figures.py` what is drawn.
"""

from heliograph.paper.exp4.figures import draw
from heliograph.paper.exp4.parts import FULL, QUICK, assemble, headlines, parts_of
from heliograph.paper.exp4.words import claims, sentences, tables
from heliograph.paper.running.experiment import Experiment

__all__ = ["EXPERIMENT"]

EXPERIMENT = Experiment(
    "exp4",
    "The compound gamma, problem after problem",
    "The precision of a Gaussian under a compound gamma prior: one message a problem, over many problems.",
    QUICK,
    FULL,
    parts_of,
    assemble,
    headlines,
    tables,
    sentences,
    claims,
    draw,
)
