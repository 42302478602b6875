"""Experiment 2: whether the doubt is worth anything.

`parts.py` is what is run, `words.py` what is said of it, `figures.py` what is drawn.
"""

from heliograph.paper.exp2.figures import draw
from heliograph.paper.exp2.parts import FULL, QUICK, assemble, headlines, parts_of
from heliograph.paper.exp2.words import claims, sentences, tables
from heliograph.paper.running.experiment import Experiment

__all__ = ["EXPERIMENT"]

EXPERIMENT = Experiment(
    "exp2",
    "Uncertainty of kernels and forests",
    "How doubt behaves along two curves through the space of messages, and whether small doubt means small error.",
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
