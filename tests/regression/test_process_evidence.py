"""Widths of a process by evidence: as good as what a descent on all labels finds."""

import numpy as np
import pytest
from scipy.optimize import minimize

from heliograph.regression.labelled_rows import LabelledRows
from heliograph.regression.process_evidence import fit_widths, negative_log_evidence
from heliograph.regression.squared_exponential import NOISE_BOUNDS, start_widths


@pytest.mark.parametrize("seed", range(3))
def test_starts_that_were_tried_on_a_part_of_the_labels_lead_to_the_evidence_of_all(seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((240, 2 + seed))
    y = np.stack([np.tanh(x[:, 0]) * np.cos(x[:, 1]), np.log1p(np.exp(x.sum(axis=1)))], axis=1)
    found, start = fit_widths(LabelledRows(x, y)), start_widths(x, 2)
    log_base = np.log(start.widths)

    def minus(theta):
        return negative_log_evidence(theta, x - start.centre, y, None, log_base)

    bounds = [(b - 2.3, b + 3.9) for b in log_base] + [tuple(np.log(NOISE_BOUNDS))]
    others = [
        minimize(
            minus, np.append(log_base + shift, np.log(start.noise)), jac=True, method="L-BFGS-B", bounds=bounds
        ).fun
        for shift in (0.0, np.log(2))
    ]
    assert minus(np.append(np.log(found.widths), np.log(found.noise)))[0] <= min(others) + 0.1
