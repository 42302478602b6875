"""Regression from features or kernel values to numbers with error bars; it knows rows and numbers, and no messages.

Start with `bayesian_linear` (features) or `gaussian_process` (a kernel, `squared_exponential`; its widths by
`process_evidence`), which is given `labelled_rows`. `landmarks` and `neighbours` stand in for the process beyond a few hundred
labels. `ridge` serves the paper's batch experiment, whose rivals are in `paper/rivals`.
"""

from heliograph.regression import bayesian_linear, gaussian_process, incomplete_cholesky, ridge
from heliograph.regression.process_evidence import fit_widths

__all__ = [
    "bayesian_linear",
    "fit_widths",
    "gaussian_process",
    "incomplete_cholesky",
    "ridge",
]
