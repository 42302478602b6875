"""Quantiles, intervals and cumulative probabilities against SciPy's distributions and against draws."""

import matplotlib
import numpy as np
import pytest
from scipy import stats

import heliograph as hg
from heliograph.errors import ModelError, UnsupportedError

matplotlib.use("Agg")

SCALARS = {
    "Gaussian": (lambda a, b: hg.Gaussian(a - 5, b), lambda a, b: stats.norm(a - 5, np.sqrt(b))),
    "Gamma": (hg.Gamma, lambda a, b: stats.gamma(a, scale=1 / b)),
    "Beta": (hg.Beta, stats.beta),
}
QUANTILES = np.array([0.001, 0.05, 0.5, 0.9, 0.999])


@pytest.mark.parametrize("name", SCALARS)
def test_quantiles_and_probabilities_are_those_of_scipy(name: str) -> None:
    rng = np.random.default_rng(0)
    a, b = 10.0 ** rng.uniform(-1, 2, (2, 3, 4))
    ours, theirs = (make(a, b) for make in SCALARS[name])
    q = ours.quantile(QUANTILES)
    assert q.shape == (5, 3, 4)
    expected = theirs.ppf(QUANTILES[:, None, None])
    np.testing.assert_allclose(q, expected, rtol=1e-10, atol=1e-300)
    x = theirs.ppf(0.3)
    np.testing.assert_allclose(ours.cdf(x), theirs.cdf(x), rtol=1e-12)
    np.testing.assert_allclose(ours.sd, theirs.std(), rtol=1e-12)
    lower, upper = ours.interval(0.8)
    np.testing.assert_allclose([lower, upper], theirs.interval(0.8), rtol=1e-10)


@pytest.mark.parametrize("name", SCALARS)
def test_values_outside_the_support_have_probability_zero_or_one(name: str) -> None:
    one = SCALARS[name][0](2.0, 3.0)
    assert one.cdf(-1e300) == 0.0
    assert one.cdf(1e300) == 1.0


def test_vectors_are_read_component_by_component() -> None:
    rng = np.random.default_rng(1)
    root = rng.normal(size=(4, 3, 3))
    covariance = root @ np.swapaxes(root, 1, 2) + np.eye(3)
    vector = hg.MultivariateGaussian(rng.normal(size=(4, 3)), covariance)
    sd = np.sqrt(np.einsum("nii->ni", covariance))
    np.testing.assert_allclose(vector.quantile(0.9), stats.norm(vector.mean, sd).ppf(0.9), rtol=1e-10)
    np.testing.assert_allclose(vector.cdf(0.5), stats.norm(vector.mean, sd).cdf(0.5), rtol=1e-10)
    a = 10.0 ** rng.uniform(-0.5, 1.5, (2, 3))
    simplex = hg.Dirichlet(a)
    rest = a.sum(axis=1, keepdims=True) - a
    np.testing.assert_allclose(simplex.quantile(0.1), stats.beta(a, rest).ppf(0.1), rtol=1e-9)


def test_a_point_mass_is_its_own_quantile_and_the_rest_is_nan_where_there_is_no_distribution() -> None:
    x = hg.Gaussian([1.0, 2.0], [0.0, 1.0])
    assert x.quantile(0.2)[0] == 1.0
    np.testing.assert_array_equal(x.cdf([0.9, 2.0])[0], 0.0)
    np.testing.assert_array_equal(x.cdf(1.0)[0], 1.0)
    for nothing in (hg.Gaussian.uniform((1,)), hg.Gaussian(0.0, 1.0) / hg.Gaussian([0.0], 0.5), hg.Gamma.uniform((1,))):
        assert np.isnan(nothing.quantile(0.5)).all()
        assert np.isnan(nothing.cdf(0.5)).all()
    assert np.isnan((hg.Gaussian(0.0, 1.0) / hg.Gaussian(0.0, 0.5)).sd)
    one = hg.MultivariateGaussian.point_mass([1.0, 2.0])
    np.testing.assert_array_equal(one.quantile(0.3), [1.0, 2.0])
    known = hg.Dirichlet.point_mass([0.25, 0.75])
    np.testing.assert_array_equal(known.quantile(0.3), [0.25, 0.75])
    assert np.isnan(hg.MultivariateGaussian.uniform((), 2).quantile(0.3)).all()


def test_a_bernoulli_reaches_its_quantile_at_the_first_value_that_holds_it() -> None:
    b = hg.Bernoulli([0.2, 0.8, 1.0])
    np.testing.assert_array_equal(b.quantile(0.5), [0.0, 1.0, 1.0])
    np.testing.assert_allclose(b.cdf([0.0, 0.5, 0.5]), [0.8, 0.2, 0.0])
    np.testing.assert_allclose(b.cdf(1.0), 1.0)


def test_categories_have_no_order() -> None:
    with pytest.raises(UnsupportedError, match="no order"):
        hg.Categorical([0.2, 0.8]).quantile(0.5)


@pytest.mark.parametrize("q", [-0.1, 1.1, np.nan, "a", None])
def test_a_quantile_needs_a_probability(q: object) -> None:
    with pytest.raises(ModelError):
        hg.Gaussian(0.0, 1.0).quantile(q)


@pytest.mark.parametrize("p", [0, 1, -0.5, 2.0, "a", None, True])
def test_an_interval_needs_a_probability(p: object) -> None:
    with pytest.raises(ModelError, match="interval"):
        hg.Gaussian(0.0, 1.0).interval(p)  # type: ignore[arg-type]


def test_what_does_not_fit_the_plate_is_refused_by_name() -> None:
    with pytest.raises(ModelError, match="does not fit"):
        hg.Gaussian(np.zeros(3), 1.0).cdf(np.zeros(4))


@pytest.mark.parametrize(
    "belief",
    [
        hg.Gaussian(np.arange(12.0), 1.0),
        hg.Gaussian([0.0, 1.0], [0.0, 1.0]),
        hg.Gamma(2.0, 1.0),
        hg.Beta([2.0, 3.0], 1.0),
        hg.Bernoulli([0.1, 0.9]),
        hg.Categorical([[0.1, 0.9], [0.5, 0.5]]),
        hg.MultivariateGaussian(np.zeros(2), np.eye(2)),
        hg.Dirichlet([1.0, 2.0, 3.0]),
    ],
    ids=lambda b: type(b).__name__,
)
def test_every_family_is_drawn(belief: hg.Family) -> None:
    from matplotlib import pyplot

    ax = belief.plot()
    assert ax.lines or ax.patches
    assert belief.plot(ax=ax) is ax
    pyplot.close("all")


def test_a_density_that_is_drawn_holds_the_mass() -> None:
    from matplotlib import pyplot

    line = hg.Gamma([3.0], [2.0]).plot().lines[0]
    assert np.trapezoid(line.get_ydata(), line.get_xdata()) == pytest.approx(
        1.0, abs=3e-3
    )  # quantiles of .0005 are cut
    pyplot.close("all")
