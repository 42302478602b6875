"""Messages as rows of numbers: every parameterisation, always finite, nothing essential lost."""

from __future__ import annotations

import numpy as np
import pytest

from heliograph.families import Bernoulli, Beta, Categorical, Dirichlet, Gamma, Gaussian, MultivariateGaussian
from heliograph.paper.rivals.summaries import modes, summarise


def row(incoming, k=0):
    s = summarise(incoming)
    return dict(zip(s.names, s.values[k].tolist(), strict=True))


def test_a_gaussian_is_told_in_four_ways():
    told = row({"z": Gaussian([3.0], 0.5)})
    assert told["z: mean"] == 3.0 and told["z: variance"] == 0.5
    assert told["z: mean x precision"] == 6.0 and told["z: precision"] == 2.0
    assert (told["z: proper"], told["z: uniform"], told["z: point"]) == (1, 0, 0)


def test_a_beta_and_a_gamma_are_told_in_theirs():
    told = row({"p": Beta([2.0], 6.0), "t": Gamma([3.0], 4.0)})
    assert (told["p: a"], told["p: b"], told["p: mean"]) == (2.0, 6.0, 0.25)
    assert told["p: variance"] == pytest.approx(12 / (64 * 9))
    assert (told["t: shape"], told["t: rate"], told["t: scale"]) == (3.0, 4.0, 0.25)
    assert (told["t: mean"], told["t: variance"]) == (0.75, 3 / 16)


def test_a_vector_is_told_component_by_component():
    covariance = np.array([[4.0, 1.0], [1.0, 9.0]])
    told = row({"x": MultivariateGaussian([[1.0, 2.0]], covariance)})
    assert told["x: mean 1"] == pytest.approx(2.0) and told["x: variance 0"] == pytest.approx(4.0)
    assert told["x: correlation"] == pytest.approx(1 / 6)
    precision = np.linalg.inv(covariance)
    assert told["x: precision 1"] == pytest.approx(precision[0, 1])
    assert told["x: mean x precision 0"] == pytest.approx((precision @ [1.0, 2.0])[0])


ODD = {
    "Gaussian": [
        Gaussian.uniform(1),
        Gaussian.point_mass([2.0]),
        Gaussian([1.0], precision=-2.0),
        Gaussian([0.0], 1e-310),
    ],
    "Beta": [Beta.uniform(1), Beta.point_mass([0.3]), Beta.point_mass([1.0]), Beta([0.5], 2.0) / Beta([2.0], 2.0)],
    "Gamma": [Gamma.uniform(1), Gamma.point_mass([3.0]), Gamma([2.0], 1.0) / Gamma([2.0], 5.0)],
    "Bernoulli": [Bernoulli.uniform(1), Bernoulli.point_mass([1]), Bernoulli([0.2])],
    "Categorical": [Categorical.uniform(1, 3), Categorical.point_mass([1], 3), Categorical([[0.2, 0.3, 0.5]])],
    "Dirichlet": [Dirichlet.uniform(1, 3), Dirichlet([[0.2, 0.3, 0.5]]), Dirichlet.point_mass([[0.2, 0.3, 0.5]])],
    "MultivariateGaussian": [
        MultivariateGaussian.uniform(1, 2),
        MultivariateGaussian.point_mass([[1.0, 2.0]]),
        MultivariateGaussian([[1.0, 2.0]], np.eye(2)),
    ],
}


@pytest.mark.parametrize("name", ODD)
def test_nothing_is_ever_infinite_or_missing_and_kinds_are_told_apart(name):
    told = [summarise({"x": m}) for m in ODD[name]]
    assert len({s.names for s in told}) == 1 and len({s.essential for s in told}) == 1
    rows = np.concatenate([s.values for s in told])
    assert np.isfinite(rows).all() and np.isfinite(rows**2).all()
    assert len(np.unique(rows, axis=0)) == len(rows)
    index = told[0].names.index("x: uniform")
    assert rows[0, index] == 1 and not rows[1:, index].any()


def test_the_essential_columns_tell_every_two_messages_apart():
    rng = np.random.default_rng(0)
    incoming = {"z": Gaussian(rng.normal(size=50), rng.gamma(1, size=50)), "p": Beta(*rng.gamma(2, size=(2, 50)))}
    s = summarise(incoming)
    kept = s.values[:, s.essential]
    assert kept.shape == (50, 4) and len(np.unique(kept.round(9), axis=0)) == 50
    z = Gaussian(kept[:, 0], np.exp(kept[:, 1]))
    np.testing.assert_allclose(z.kl(incoming["z"]), 0, atol=1e-12)
    p = Beta.from_chart_moments(kept[:, 2], np.exp(kept[:, 3]))
    np.testing.assert_allclose(p.kl(incoming["p"]), 0, atol=1e-10)


def test_data_join_as_columns():
    incoming = {
        "z": Gaussian([0.0, 1.0], 1.0),
        "anchor": np.array([[1.0, 2.0], [3.0, 4.0]]),
        "s": np.array([5.0, np.inf]),
    }
    s = summarise(incoming)
    names = list(s.names)
    np.testing.assert_array_equal(s.values[:, names.index("anchor: data 1")], [2.0, 4.0])
    np.testing.assert_array_equal(s.values[:, names.index("s: data 0")], [5.0, 1e100])


def test_a_mode_is_where_the_density_is_highest():
    grid = np.linspace(0.0005, 0.9995, 1000)
    beta, gamma = Beta([2.0, 5.0], [3.0, 1.5]), Gamma([2.0, 1.2], [4.0, 3.0])
    at = modes({"p": beta, "t": gamma, "z": Gaussian([1.0, 2.0], 1.0)})
    for m, name in ((beta, "p"), (gamma, "t")):
        np.testing.assert_allclose(at[name], grid[m.log_density(grid[:, None]).argmax(axis=0)], atol=1e-3)  # the grid's
    np.testing.assert_array_equal(at["z"], [1.0, 2.0])


def test_a_mode_is_always_a_value_of_the_variable():
    incoming = {
        "p": Beta.from_naturals(
            (np.array([-0.5, -2.0, 0.0]), np.array([1.0, 1.0, 0.0])), np.array([np.nan, np.nan, 0.3])
        ),
        "t": Gamma.from_naturals(
            (np.array([0.0, -3.0, 0.0]), np.array([0.0, 1.0, 0.0])), np.array([np.nan, np.nan, 7.0])
        ),
        "z": Gaussian.uniform(3),
    }
    at = modes(incoming)
    np.testing.assert_allclose(at["p"], [0.2, 0.5, 0.3])
    np.testing.assert_allclose(at["t"], [1.0, 1.0, 7.0])
    np.testing.assert_array_equal(at["z"], 0.0)
