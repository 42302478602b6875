"""Data for the paper's experiments: four UCI sets that come with the package, and problems drawn from its models."""

from heliograph.paper.datasets.synthetic import (
    CompoundGammaProblem,
    LogisticProblem,
    compound_gamma_problem,
    logistic_regression_problem,
)
from heliograph.paper.datasets.uci import NAMES, Dataset, Split, load, read_splits, split

__all__ = [
    "NAMES",
    "CompoundGammaProblem",
    "Dataset",
    "LogisticProblem",
    "Split",
    "compound_gamma_problem",
    "load",
    "logistic_regression_problem",
    "read_splits",
    "split",
]
