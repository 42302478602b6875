"""The regression room."""

from heliograph.regression import bayesian_linear, gaussian_process, incomplete_cholesky, ridge
from heliograph.regression.eslami2014 import EslamiForest
from heliograph.regression.forests import ExtraTrees, RandomForest
from heliograph.regression.heess2013 import HeessNetwork
from heliograph.regression.process_evidence import fit_widths

__all__ = [
    "EslamiForest",
    "ExtraTrees",
    "HeessNetwork",
    "RandomForest",
    "bayesian_linear",
    "fit_widths",
    "gaussian_process",
    "incomplete_cholesky",
    "ridge",
]
