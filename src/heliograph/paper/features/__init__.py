"""The appendix on random features.

`parts.py` is what is run, `words.py` what is said of it, `figures.py` what is drawn.
"""

from heliograph.paper.features.figures import draw
from heliograph.paper.features.parts import FULL, QUICK, assemble, headlines, parts_of
from heliograph.paper.features.words import claims, sentences, tables
from heliograph.paper.running.experiment import Experiment

__all__ = ["EXPERIMENT"]

EXPERIMENT = Experiment(
    "features",
    "Random features against kernels",
    "How many random features the kernel on messages needs.",
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
