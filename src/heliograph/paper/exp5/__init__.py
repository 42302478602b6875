"""Experiment 5: four real data sets in sequence.

`parts.py` is what is run, `words.py` what is said of it, `figures.py` what is drawn.
"""

from heliograph.paper.exp5.figures import draw
from heliograph.paper.exp5.parts import FULL, QUICK, assemble, headlines, parts_of
from heliograph.paper.exp5.words import claims, sentences, tables
from heliograph.paper.running.experiment import Experiment

__all__ = ["EXPERIMENT"]

EXPERIMENT = Experiment(
    "exp5",
    "Four real data sets in sequence",
    "Four real data sets in a row: the messages change with each, and the operator should notice and ask.",
    QUICK,
    FULL,
    parts_of,
    assemble,
    headlines,
    tables,
    sentences,
    claims,
    draw,
    first_seed_only=("sampling",),
)
