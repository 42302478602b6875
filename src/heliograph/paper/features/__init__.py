"""The appendix on random features.

`parts.py` is what is run, `words.py` what is said of it, `figures.py` what is drawn.
"""

from heliograph.paper.features import figures, parts, words
from heliograph.paper.running.experiment import experiment_of

__all__ = ["EXPERIMENT"]

EXPERIMENT = experiment_of(
    "features",
    "Random features against kernels",
    "How many random features the kernel on messages needs.",
    (parts, words, figures),
    seeds=0.5,
)
