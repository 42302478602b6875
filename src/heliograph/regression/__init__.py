"""From features or kernel values to numbers with error bars; rows and numbers, and no word of messages.

Start with `bayesian_linear` (features) or `gaussian_process` (a kernel, `squared_exponential`; its widths by
`process_evidence`). `landmarks` and `neighbours` stand in for the process beyond a few hundred labels. `ridge`, `forests`,
`eslami2014` (with `leaves`) and `heess2013` are the rivals of the paper's experiments.
"""

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
