"""Several modes of hyper-parameters: all found, or the result is said not to be trusted; and a tail that counts."""

import numpy as np
import pytest
from scipy import stats

import heliograph as hg


def weighted(log_p, step):
    top = log_p.max()
    weight = np.exp(log_p - top)
    return top + np.log(weight.sum() * step), weight / weight.sum()


@pytest.mark.parametrize(
    ("seen", "sd", "off"), [(1.37, 0.05, 0.0), (0.8, 0.05, 0.3), (0.57, 0.05, 0.0), (2.2, 0.5, 0.3)]
)
def test_both_roots_of_a_square_are_found(seen, sd, off):
    """From far to the left the evidence rises towards both, so that its slope there says nothing of a second one."""
    model = hg.Model()
    a = model.flat("a", -3.0, 3.0)
    x = model.gaussian("x", 0.0, sd=0.1)
    model.gaussian("y", x + (a - off) ** 2, sd=sd, observed=seen)
    posterior = model.infer()
    grid = np.linspace(-3, 3, 20001)
    log_p = stats.norm((grid - off) ** 2, np.hypot(0.1, sd)).logpdf(seen) - np.log(6.0)
    evidence, weight = weighted(log_p, grid[1] - grid[0])
    mean = weight @ grid
    spread = np.sqrt(weight @ (grid - mean) ** 2)
    assert posterior.converged
    assert posterior.integration.n_modes == 2
    assert posterior.log_evidence == pytest.approx(evidence, abs=0.005)
    assert posterior[a].mean == pytest.approx(mean, abs=0.01 * spread)
    assert posterior[a].sd == pytest.approx(spread, rel=0.01)


def test_of_several_numbers_the_mirror_image_of_a_mode_is_looked_at():
    rng = np.random.default_rng(0)
    y = 1.0 + 0.4 * rng.normal(size=10)
    model = hg.Model()
    a, s = model.flat("a", -3.0, 3.0), model.half_normal("s", 1.0)
    x = model.gaussian("x", 0.0, sd=0.1)
    model.gaussian("y", x + a**2, sd=s, observed=y)
    posterior = model.infer()
    grid, u = np.meshgrid(np.linspace(-3, 3, 601), np.linspace(-2.5, 1.0, 201), indexing="ij")
    mean, v = y.mean(), np.exp(2 * u)
    log_p = stats.norm(grid**2, np.sqrt(0.01 + v / 10)).logpdf(mean) - 4.5 * np.log(2 * np.pi * v) - 0.5 * np.log(10)
    log_p += -0.5 * np.sum((y - mean) ** 2) / v + stats.halfnorm().logpdf(np.exp(u)) + u - np.log(6.0)
    evidence, weight = weighted(log_p.ravel(), 0.01 * (3.5 / 200))
    assert posterior.integration.n_modes == 2
    assert posterior.log_evidence == pytest.approx(evidence, abs=0.02)
    assert posterior[a].mean == pytest.approx(0.0, abs=0.03)
    assert posterior[a].sd == pytest.approx(np.sqrt(weight @ grid.ravel() ** 2), rel=0.02)
    assert posterior[s].mean == pytest.approx(weight @ np.exp(u.ravel()), rel=0.01)


def test_modes_that_run_into_each_other_are_said_to_be_rough():
    """A coefficient and its factor: a ridge that goes round through a large noise from one sign to the other."""
    rng = np.random.default_rng(3500)
    x = rng.normal(size=12)
    model = hg.Model()
    a, s = model.flat("a", -2.0, 2.0), model.half_normal("s", 1.0)
    b = model.gaussian("b", 0.0, sd=1.0)
    model.gaussian("y", b * (a * x), sd=s, observed=0.8 * x + 0.3 * rng.normal(size=12))
    with pytest.warns(hg.AccuracyWarning, match="run into each other"):
        posterior = model.infer()
    assert posterior.integration.n_modes == 2
    assert not posterior.converged


def test_many_modes_are_said_to_have_company():
    """The evidence of a frequency has a mode for almost every wave that fits the times."""
    rng = np.random.default_rng(4009)
    t = np.sort(rng.uniform(0, 10, 100))
    model = hg.Model()
    f = model.flat("f", 0.0, 8.0)
    w = model.gaussian("w", 0.0, sd=2.0, size=2)
    y = np.sin(2.36 * t) + rng.normal(size=100)
    model.gaussian("y", w[0] * np.cos(f * t) + w[1] * np.sin(f * t), sd=0.5, observed=y)
    with pytest.warns(hg.AccuracyWarning, match="there are likely others"):
        model.infer()


def test_a_scale_far_from_zero_with_a_long_tail_towards_it_has_the_sd_of_a_grid():
    """Half a per cent of the mass, six standard deviations away: without slopes a curve through the last values bent wrongly."""
    rng = np.random.default_rng(2)
    n = 2000
    y = 0.3 * rng.normal(size=n) + 1.0 + rng.normal(size=n)
    model = hg.Model()
    s, mu = model.half_normal("s", 1.0), model.gaussian("mu", 0.0, sd=3.0)
    model.gaussian("y", model.gaussian("x", mu, sd=s, size=n), sd=1.0, observed=y)
    posterior = model.infer()
    u = np.linspace(-9, 0.5, 3001)
    v = np.exp(2 * u) + 1.0
    precision = n / v + 1 / 9.0
    centre = y.sum() / v / precision
    log_p = -0.5 * n * np.log(2 * np.pi * v) - 0.5 * np.sum(y**2) / v + 0.5 * precision * centre**2
    log_p += -0.5 * np.log(9 * precision) + stats.halfnorm().logpdf(np.exp(u)) + u
    evidence, weight = weighted(log_p, u[1] - u[0])
    mean = weight @ np.exp(u)
    assert posterior.log_evidence == pytest.approx(evidence, abs=0.005)
    assert posterior[s].sd == pytest.approx(np.sqrt(weight @ np.exp(2 * u) - mean**2), rel=0.015)  # it was .94
