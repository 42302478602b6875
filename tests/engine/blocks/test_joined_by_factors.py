"""Unknowns that meet only in a product or in a black box are jointly Gaussian too; the truth comes from grids and from draws."""

import warnings

import numpy as np
import pytest
from scipy import stats

import heliograph as hg


def weighted(log_p, *values):
    """Mean and standard deviation of values under unnormalised log weights."""
    w = np.exp(log_p - log_p.max())
    w = w / w.sum()
    means = [float((w * v).sum()) for v in values]
    return [(m, float(np.sqrt((w * (v - m) ** 2).sum()))) for m, v in zip(means, values, strict=True)]


def near(posterior, names, truth, mean=0.05, sd=0.03):
    for name, (m, s) in zip(names, truth, strict=True):
        found = posterior[name]
        assert abs(found.mean - m) < mean * s, (name, found.mean, m, s)
        assert abs(found.sd / s - 1) < sd, (name, found.sd, s)


def measured_with_error(n, seed=6):
    rng = np.random.default_rng(seed)
    x = rng.normal(2.0, 1.0, n)
    return x + rng.normal(0, 0.3, n), 1.0 + 0.8 * x + rng.normal(0, 0.3, n)


def line_of_measured(w, y):
    model = hg.Model()
    a, b = model.gaussian("a", 0.0, sd=3.0), model.gaussian("b", 0.0, sd=3.0)
    x = model.gaussian("x", 2.0, sd=1.0, size=len(w))
    model.gaussian("w", x, sd=0.3, observed=w)
    model.gaussian("y", a + b * x, sd=0.3, observed=y)
    return model


def line_on_grid(w, y, reach=8.0):
    """Given a and b, each pair (w, y) is Gaussian with x integrated out."""
    a = np.linspace(1 - reach, 1 + reach, 1201)[:, None]
    b = np.linspace(0.8 - reach, 0.8 + reach, 1201)[None]
    log_p = -0.5 * (a / 3) ** 2 - 0.5 * (b / 3) ** 2
    for one, two in zip(w, y, strict=True):
        v11, v12, v22 = 1.09, b, b**2 + 0.09
        det = v11 * v22 - v12**2
        d1, d2 = one - 2.0, two - a - 2.0 * b
        log_p = log_p - 0.5 * np.log(det) - 0.5 * (v22 * d1**2 - 2 * v12 * d1 * d2 + v11 * d2**2) / det
    return weighted(log_p, a + 0 * b, b + 0 * a)


@pytest.mark.parametrize("n", [7, 20, 60])
def test_a_line_of_measured_inputs_keeps_the_correlation_of_its_two_unknowns(n):
    w, y = measured_with_error(n)
    posterior = line_of_measured(w, y).infer()
    assert posterior.converged
    near(posterior, "ab", line_on_grid(w, y, 3.0 if n > 10 else 6.0))
    assert posterior.structure["a"] == posterior.structure["b"] == "joint"


def test_rows_in_another_order_say_the_same_of_a_line_of_measured_inputs():
    w, y = measured_with_error(20)
    order = np.random.default_rng(1).permutation(20)
    one, other = line_of_measured(w, y).infer(), line_of_measured(w[order], y[order]).infer()
    for name in "ab":
        np.testing.assert_allclose(one[name].mean, other[name].mean, atol=1e-6)
        np.testing.assert_allclose(one[name].sd, other[name].sd, rtol=1e-6)


def test_the_factorised_answer_stays_reachable_and_is_warned_of():
    w, y = measured_with_error(20)
    with pytest.warns(hg.AccuracyWarning, match="factorised in a loop"):
        posterior = line_of_measured(w, y).infer(structure="factorised")
    assert posterior["b"].sd < 0.7 * line_on_grid(w, y, 3.0)[1][1]


def decay_of(x, y):
    @hg.factor(output=hg.Gaussian)
    def decay(a, b, x):
        return a * np.exp(-b * x)

    model = hg.Model()
    a, b = model.gaussian("a", 1.0, sd=1.0), model.gaussian("b", 1.0, sd=0.5)
    model.gaussian("y", decay(a, b, x=x), sd=0.1, observed=y)
    return model


def decay_data(n):
    rng = np.random.default_rng(7)
    x = np.linspace(0.2, 3.0, n)
    return x, 2.0 * np.exp(-0.8 * x) + rng.normal(0, 0.1, n)


@pytest.mark.parametrize(("n", "operator"), [(2, "ask"), (12, "ask"), (12, "learned"), (21, "ask")])
def test_a_curve_by_a_black_box_of_two_unknowns_keeps_their_correlation(n, operator):
    x, y = decay_data(n)
    posterior = decay_of(x, y).infer(operator=operator)
    a, b = np.linspace(-1, 5, 601)[:, None], np.linspace(-1, 3, 601)[None]
    log_p = -0.5 * (a - 1) ** 2 - 0.5 * ((b - 1) / 0.5) ** 2
    for one, two in zip(x, y, strict=True):
        log_p = log_p - 0.5 * ((two - a * np.exp(-b * one)) / 0.1) ** 2
    assert posterior.converged
    near(posterior, "ab", weighted(log_p, a + 0 * b, b + 0 * a))


def by_offset(kind, c, z):
    return {"sum": c + z, "sum turned": z + c, "difference": z - c, "taken from": c - z}[kind]


@pytest.mark.filterwarnings("ignore:.*bend their posterior")
@pytest.mark.parametrize("kind", ["sum", "sum turned", "difference", "taken from"])
def test_what_is_added_to_the_output_of_a_black_box_is_joint_with_its_inputs(kind):
    @hg.factor(output=hg.Gaussian)
    def bend(b, x):
        return np.exp(-b * x)

    @hg.factor(output=hg.Gaussian)
    def both(b, c, x):
        return by_offset(kind, c, np.exp(-b * x))

    rng = np.random.default_rng(2)
    x = np.linspace(0.2, 3.0, 7)
    y = by_offset(kind, 0.5, np.exp(-0.8 * x)) + rng.normal(0, 0.03, 7)
    found = []
    for whole in (True, False):
        model = hg.Model()
        b, c = model.gaussian("b", 1.0, sd=0.1), model.gaussian("c", 0.5, sd=0.1)
        z = None if whole else bend(b, x=x)
        model.gaussian("y", both(b, c, x=x) if z is None else by_offset(kind, c, z), sd=0.03, observed=y)
        found.append(model.infer(operator="ask"))
        assert found[-1].converged and found[-1].structure["b"] == found[-1].structure["c"] == "joint"
    one, other = found
    for name in "bc":  # the same function, written in two ways
        assert abs(one[name].mean - other[name].mean) < 0.01 * one[name].sd
        assert abs(one[name].sd / other[name].sd - 1) < 0.01
    rate, offset = np.linspace(0.3, 1.7, 701)[:, None], np.linspace(-0.3, 1.3, 801)[None]
    log_p = -0.5 * ((rate - 1) / 0.1) ** 2 - 0.5 * ((offset - 0.5) / 0.1) ** 2
    for k in range(7):
        log_p = log_p - 0.5 * ((y[k] - by_offset(kind, offset, np.exp(-rate * x[k]))) / 0.03) ** 2
    near(other, "bc", weighted(log_p, rate + 0 * offset, offset + 0 * rate), 0.05, 0.06)
    for k in (0, 3, 6):  # the function's own value can be read as before
        ((mean, sd),) = weighted(log_p, np.exp(-rate * x[k]) + 0 * offset)
        assert abs(other[z].mean[k] - mean) < 0.1 * sd and abs(other[z].sd[k] / sd - 1) < 0.1


def test_two_unknowns_that_meet_in_one_element_only_are_on_no_loop():
    model = hg.Model()
    a, b = model.gaussian("a", 1.0, sd=1.0), model.gaussian("b", 2.0, sd=1.0)
    model.gaussian("y", a * b, sd=0.5, observed=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        posterior = model.infer()
    assert "joint" not in posterior.structure.values()
    grid = np.linspace(-7, 9, 801)
    log_p = stats.norm.logpdf(grid[:, None], 1, 1) + stats.norm.logpdf(grid, 2, 1)
    log_p = log_p + stats.norm.logpdf(1.0, grid[:, None] * grid, 0.5)
    truth = weighted(log_p, grid[:, None] + 0 * grid, grid + 0 * grid[:, None])
    near(posterior, "ab", truth, 1e-6, 1e-6)


def shared(times, c, y, priors, variance):
    model = hg.Model()
    a, b = (model.gaussian(n, m, variance=v) for n, (m, v) in zip("ab", priors, strict=True))
    z = (c * a) * b if times else model.maximum(c * a, b)
    model.gaussian("y", z, variance=variance, observed=y)
    return model


@pytest.mark.parametrize("times", [True, False])
def test_a_posterior_that_no_gaussian_follows_is_warned_of_with_the_size_of_the_error(times):
    rng = np.random.default_rng(3)
    c, v = rng.uniform(0.5, 2.0, 10), 0.33
    priors = ((1.16, 0.33), (0.75, 0.096)) if times else ((0.97, 0.29), (1.28, 0.15))
    grid = np.linspace(-6, 8, 1401)
    a, b = grid[:, None], grid[None]
    f = np.multiply if times else np.maximum
    y = f(c * 1.8, 1.1) if times else f(c, 0.9) + 0.7 * rng.standard_normal(10)
    log_p = -0.5 * (a - priors[0][0]) ** 2 / priors[0][1] - 0.5 * (b - priors[1][0]) ** 2 / priors[1][1]
    for one, two in zip(c, y, strict=True):
        log_p = log_p - 0.5 * (two - f(one * a, b)) ** 2 / v
    truth = weighted(log_p, a + 0 * b, b + 0 * a)
    with pytest.warns(hg.AccuracyWarning, match="bend their posterior") as said:
        posterior = shared(times, c, y, priors, v).infer()
    ratio = max(truth[k][1] / posterior[n].sd for k, n in enumerate("ab"))
    assert ratio > 1.1
    told = float(str(said[0].message).split("deviation is ")[1].split(" times")[0])
    assert abs(np.log(told / ratio)) < 0.1
