"""The examples of mixtures beside Gibbs sampling that starts at EP's labelling."""

import importlib.util
import warnings
from pathlib import Path

import numpy as np
import pytest

import heliograph as hg

FOLDER = Path(__file__).parent.parent.parent / "examples"


def load(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def gibbs(rng, log_likelihood, given, z, k, steps=6000, first=500):
    """Labels, shares and parameters in turns: means and sds of shares and parameters."""
    kept = []
    for step in range(steps):
        shares = rng.dirichlet(1.0 + np.bincount(z, minlength=k))
        parameters = given(rng, z)
        log_p = np.log(shares) + log_likelihood(parameters)
        z = (log_p + rng.gumbel(size=log_p.shape)).argmax(axis=1)
        if step >= first:
            kept.append(np.concatenate([shares[:, None], parameters], axis=1))
    return np.mean(kept, axis=0), np.std(kept, axis=0)


def inferred(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hg.AccuracyWarning)  # mixtures are factorised
        posterior = model.infer()
    assert posterior.converged
    return posterior


def test_the_clouds_of_a_mixture_of_vectors():
    example = load("mixture_of_vectors")
    y = example.data()
    posterior = inferred(example.model(y))
    inverse = np.linalg.inv(example.SPREAD)

    def log_likelihood(centres):
        off = y[:, None] - centres
        return -0.5 * np.einsum("nki,ij,nkj->nk", off, inverse, off)

    def given(rng, z):
        found = []
        for k in range(3):
            cov = np.linalg.inv(np.eye(2) / 25.0 + (z == k).sum() * inverse)
            found.append(rng.multivariate_normal(cov @ inverse @ y[z == k].sum(axis=0), cov))
        return np.array(found)

    mean, sd = gibbs(np.random.default_rng(0), log_likelihood, given, posterior["which"].p.argmax(axis=1), 3)
    centres = posterior["centres"]
    assert np.abs((centres.mean - mean[:, 1:]) / sd[:, 1:]).max() < 0.1
    assert np.sqrt(np.einsum("kii->ki", centres.covariance)) / sd[:, 1:] == pytest.approx(1.0, abs=0.06)
    assert np.abs(posterior["shares"].mean - mean[:, 0]).max() < 0.1 * sd[:, 0].min()


def test_the_lines_of_a_mixture_of_regressions():
    example = load("mixture_of_regressions")
    design, y = example.data()
    posterior = inferred(example.model((design, y)))

    def log_likelihood(w):
        return -0.5 * ((y[:, None] - design @ w.T) / 0.5) ** 2

    def given(rng, z):
        found = []
        for k in range(2):
            x = design[z == k]
            cov = np.linalg.inv(np.eye(2) / 25.0 + x.T @ x / 0.25)
            found.append(rng.multivariate_normal(cov @ x.T @ y[z == k] / 0.25, cov))
        return np.array(found)

    mean, sd = gibbs(np.random.default_rng(1), log_likelihood, given, (posterior["which"].p > 0.5).astype(int), 2)
    w = posterior["w"]
    assert np.abs((w.mean - mean[:, 1:]) / sd[:, 1:]).max() < 0.15
    assert np.sqrt(np.einsum("kii->ki", w.covariance)) / sd[:, 1:] == pytest.approx(1.0, abs=0.1)
    assert posterior["share"].mean == pytest.approx(mean[1, 0], abs=0.1 * sd[1, 0])
