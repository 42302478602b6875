"""Values that are missing behind a black box, a product or a maximum say nothing, and take nothing from the rows that were seen."""

from __future__ import annotations

import numpy as np
import pytest

import heliograph as hg


def wave():
    @hg.factor(output=hg.Gaussian)
    def box(z):
        return np.sin(z)

    return box


def grid(mean, y):
    """Mean and variance of N(z; mean, .8) N(y; sin z, .1), and of sin z and the log of the integral."""
    z = np.linspace(mean - 11, mean + 11, 40_001)
    log_w = -0.5 * (z - mean) ** 2 / 0.8 - 0.5 * np.log(2 * np.pi * 0.8)
    if not np.isnan(y):
        log_w = log_w - 0.5 * (y - np.sin(z)) ** 2 / 0.1 - 0.5 * np.log(2 * np.pi * 0.1)
    w = np.exp(log_w)
    log_z = np.log(w.sum() * (z[1] - z[0]))
    w /= w.sum()
    u = np.sin(z)
    return w @ z, w @ (z - w @ z) ** 2, w @ u, w @ (u - w @ u) ** 2, log_z


@pytest.mark.parametrize("settings", [{}, {"operator": "ask"}, {"structure": "factorised"}, {"schedule": "sequential"}])
@pytest.mark.parametrize("n", [1, 2, 7, 80])
@pytest.mark.parametrize("which", ["some", "all"])
def test_rows_that_were_seen_are_right_and_the_others_are_predicted(n, which, settings):
    if n == 80 and settings.get("schedule"):
        pytest.skip("row by row takes long, and seven rows show the same")
    rng = np.random.default_rng(n)
    mean = rng.normal(size=n)
    y = np.where(np.arange(n) % 3 != 1 if which == "some" else False, np.sin(mean) + 0.3 * rng.normal(size=n), np.nan)
    model = hg.Model()
    z = model.gaussian("z", mean, variance=0.8)
    seen = model.gaussian("y", wave()(z), variance=0.1, observed=y)
    posterior = model.infer(progress=False, **settings)
    assert posterior.converged
    truth = np.array([grid(*row) for row in zip(mean, y, strict=True)])
    near = {
        "abs": 1e-4 if settings.get("operator") == "ask" else 2e-3
    }  # a mean off by 2e-3 is 1e-5 nats of a tolerance of 1e-3
    assert posterior[z].mean == pytest.approx(truth[:, 0], **near)
    assert posterior[z].variance == pytest.approx(truth[:, 1], rel=1e-3)
    unseen = np.isnan(y)
    if unseen.any():
        assert posterior[seen].mean[unseen] == pytest.approx(truth[unseen, 2], **near)
        assert posterior[seen].variance[unseen] == pytest.approx(truth[unseen, 3] + 0.1, rel=1e-3)
    assert posterior.log_evidence == pytest.approx(truth[:, 4].sum(), abs=1e-3)


@pytest.mark.parametrize("product", [lambda a, b: a * b, None], ids=["built in", "black box"])
def test_missing_products_say_nothing(product):
    if product is None:
        product = hg.factor(output=hg.Gaussian)(lambda a, b: a * b)

    def solve(mean_a, mean_b, y):
        model = hg.Model()
        a = model.gaussian("a", mean_a, variance=0.5)
        b = model.gaussian("b", mean_b, variance=0.5)
        model.gaussian("y", product(a, b), variance=0.1, observed=y)
        return model.infer(progress=False)

    a, b, y = np.array([1.0, 2.0, -1.0]), np.array([0.5, 1.0, 3.0]), np.array([1.0, 1.5, -2.0])
    whole = solve(a, b, np.where([True, False, True], y, np.nan))
    rest = solve(a[[0, 2]], b[[0, 2]], y[[0, 2]])
    assert whole["a"].mean[[0, 2]] == pytest.approx(rest["a"].mean, abs=1e-3)
    assert whole["a"].mean[1] == pytest.approx(2.0, abs=1e-4)
    assert whole["a"].variance[1] == pytest.approx(0.5, rel=1e-3)


def test_a_stochastic_box_and_a_partial_one_have_missing_values():
    @hg.factor(output=hg.Gaussian)
    def noisy(z, rng):
        return z + 0.5 * rng.standard_normal(z.shape)

    model = hg.Model()
    z = model.gaussian("z", np.zeros(3), variance=1.0)
    model.gaussian("y", noisy(z), variance=0.25, observed=[1.0, np.nan, 1.0])
    posterior = model.infer(progress=False, tolerance=1e-2)
    assert posterior["z"].mean == pytest.approx([1 / 1.5, 0.0, 1 / 1.5], abs=0.05)

    @hg.factor(output=hg.Gaussian, partial=True)
    def root(z):
        return np.sqrt(z)

    model = hg.Model()
    z = model.gaussian("z", np.zeros(2), variance=1.0)
    model.gaussian("y", root(z), variance=0.25, observed=[1.0, np.nan])
    posterior = model.infer(progress=False)
    assert posterior["z"].mean[1] == pytest.approx(
        np.sqrt(2 / np.pi), abs=1e-3
    )  # that there is a root is said all the same


def test_components_of_a_vector_may_be_missing_or_never_looked_at():
    @hg.factor(output=hg.MultivariateGaussian, dimension=2)
    def both(z):
        return np.stack([z, z**2], axis=1)

    model = hg.Model()
    z = model.gaussian("z", np.zeros(2), variance=0.8)
    model.gaussian("y", both(z)[:, 0], variance=0.1, observed=[1.0, np.nan])
    posterior = model.infer(progress=False)
    assert posterior.converged
    assert posterior["z"].mean == pytest.approx([0.8 / 0.9, 0.0], abs=1e-4)
    assert posterior["z"].variance == pytest.approx([0.08 / 0.9, 0.8], rel=1e-4)
    assert posterior.log_evidence == pytest.approx(-0.5 / 0.9 - 0.5 * np.log(2 * np.pi * 0.9), abs=1e-3)
