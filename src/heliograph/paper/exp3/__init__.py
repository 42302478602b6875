"""Experiment 3: just-in-time learning over 30 logistic regressions.

`parts.py` is what is run, `words.py` what is said of it, `figures.py` what is drawn.
"""

from heliograph.paper.exp3.figures import draw
from heliograph.paper.exp3.parts import FULL, QUICK, assemble, headlines, parts_of
from heliograph.paper.exp3.words import claims, sentences, tables
from heliograph.paper.running.experiment import Experiment

__all__ = ["EXPERIMENT"]

EXPERIMENT = Experiment(
    "exp3",
    "Just-in-time learning of the logistic factor",
    "Logistic regressions, one after another, while the operator learns the logistic factor's "
    "messages as it goes and asks an oracle when it is in doubt.",
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
