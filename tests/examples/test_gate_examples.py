"""The examples with gates beside conjugate formulas and a grid."""

import importlib.util
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binom, gamma, multivariate_normal, poisson

FOLDER = Path(__file__).parent.parent.parent / "examples"


def load(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_clinical_trial_has_the_probability_that_quadrature_gives():
    trial = load("clinical_trial")
    n, k = np.array(trial.PATIENTS), np.array(trial.CURED)
    apart = np.prod([quad(lambda r, i=i: binom.pmf(k[i], n[i], r), 0, 1, epsabs=1e-14)[0] for i in (0, 1)])
    same = quad(lambda r: np.prod(binom.pmf(k, n, r)), 0, 1, epsabs=1e-14)[0]
    posterior = trial.model().infer()
    assert float(posterior["effective"].p) == pytest.approx(apart / (apart + same), abs=1e-6)
    assert posterior.log_evidence == pytest.approx(np.log(0.5 * (apart + same)), abs=1e-6)
    assert posterior["rates"].mean == pytest.approx((k + 1) / (n + 2), abs=1e-8)


def test_the_change_point_has_the_years_and_rates_of_a_grid():
    example = load("change_point")
    y = example.data()
    grid = np.linspace(1e-4, 25.0, 25_001)
    prior = gamma.pdf(grid, 2.0) * (grid[1] - grid[0])
    logs = poisson.logpmf(y[:, None], grid)  # (year, rate)
    first = np.cumsum(logs, axis=0)[:-1]
    second = np.cumsum(logs[::-1], axis=0)[::-1][1:]
    left, right = np.exp(first) * prior, np.exp(second) * prior
    weights = left.sum(axis=1) * right.sum(axis=1)
    posterior = example.model(y).infer()
    assert posterior.log_evidence == pytest.approx(np.log(weights.mean()), abs=1e-5)
    weights /= weights.sum()
    assert posterior["year"].p == pytest.approx(weights, abs=1e-5)
    old = weights @ (left @ grid / left.sum(axis=1))
    square = weights @ (left @ grid**2 / left.sum(axis=1))
    assert posterior["old"].mean == pytest.approx(old, abs=1e-4)
    assert posterior["old"].sd == pytest.approx(np.sqrt(square - old**2), abs=1e-4)


def test_spike_and_slab_needs_the_columns_that_dense_algebra_says():
    example = load("spike_and_slab")
    x, y = example.data()
    subsets = np.array(list(product((0, 1), repeat=4)))
    logs = np.array(
        [
            multivariate_normal.logpdf(y, np.zeros(25), (x * k) @ (x * k).T + np.eye(25))
            + np.log(np.where(k, 0.3, 0.7)).sum()
            for k in subsets
        ]
    )
    posterior = example.model((x, y)).infer()
    whole = np.logaddexp.reduce(logs)
    assert posterior.log_evidence == pytest.approx(whole, abs=1e-8)
    found = [float(posterior[f"needed {j}"].p) for j in range(4)]
    assert found == pytest.approx(np.exp(logs - whole) @ subsets, abs=1e-8)
