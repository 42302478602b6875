"""Tables of products whose unknowns are all alike: drawn apart with the seed, they predict what Gibbs sampling predicts."""

import importlib.util
import warnings
from pathlib import Path

import numpy as np
import pytest

import heliograph as hg

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "matrix_factorisation.py"


def load():
    spec = importlib.util.spec_from_file_location("matrix_factorisation", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def gibbs(rng, d, rows, columns, rank, steps=1500, first=300):
    """The mean and sd of every entry of the table: rows given columns, and columns given rows, each Gaussian."""
    u, v, kept = rng.standard_normal((rows, rank)), rng.standard_normal((columns, rank)), []

    def drawn(other, mine, others, n):
        found = np.empty((n, rank))
        for k in range(n):
            x = other[others[mine == k]]
            cov = np.linalg.inv(np.eye(rank) + x.T @ x / 0.09)
            found[k] = cov @ (x.T @ d["y"][mine == k]) / 0.09 + np.linalg.cholesky(cov) @ rng.standard_normal(rank)
        return found

    for step in range(steps):
        u = drawn(v, d["i"], d["j"], rows)
        v = drawn(u, d["j"], d["i"], columns)
        if step >= first:
            kept.append(u @ v.T)
    return np.mean(kept, axis=0), np.std(kept, axis=0)


def test_a_table_of_products_is_predicted_as_by_gibbs_sampling_from_every_seed():
    module = load()
    d = module.data()
    mean, sd = gibbs(np.random.default_rng(0), d, module.ROWS, module.COLUMNS, module.RANK)
    for seed in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # modes along a circle: it settles slowly, and says so
            p = module.model(d).infer(seed=seed, max_sweeps=60)
        off = np.abs(p["u"].mean @ p["v"].mean.T - mean) / sd
        assert np.median(off) < 0.25
        assert off.max() < 1.5


@pytest.mark.parametrize("n", [1, 5])
def test_two_unknowns_that_meet_in_one_product_keep_both_modes(n):
    """The posterior is the same under a change of both signs, and so is the belief: only tables are drawn aside."""
    model = hg.Model()
    a, b = model.gaussian("a", 0.0, sd=1.0), model.gaussian("b", 0.0, sd=1.0)
    model.gaussian("y", a * b, sd=1.0, observed=np.full(n, 0.5))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hg.AccuracyWarning)
        posterior = model.infer()
    assert posterior[a].mean == pytest.approx(0.0, abs=1e-9)
    assert posterior[b].mean == pytest.approx(0.0, abs=1e-9)
