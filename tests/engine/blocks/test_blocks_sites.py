"""Factors that are not Gaussian on expressions of a block: compared with a grid over all unknowns."""

import numpy as np
import pytest
from by_grid import agree, grid, moments
from by_hand_ep import expectation_propagation
from scipy.special import expit, gammaln, log_expit, log_ndtr, ndtr
from scipy.stats import norm

import heliograph as hg

SEEDS = range(3)


def unknowns(model, n):
    """Unknowns that are dependent before any site speaks, as a model and as functions of standard normals."""
    eps, log_weight = grid(n)
    a = model.gaussian("a", 0.3, variance=1.5)
    columns = [0.3 + np.sqrt(1.5) * eps[:, 0]]
    made = [a]
    if n > 1:
        made.append(model.gaussian("b", -0.5 + 0.6 * a, variance=0.8))
        columns.append(-0.5 + 0.6 * columns[0] + np.sqrt(0.8) * eps[:, 1])
    if n > 2:
        made.append(model.gaussian("c", made[1] - a, variance=0.5))
        columns.append(columns[1] - columns[0] + np.sqrt(0.5) * eps[:, 2])
    return made, np.stack(columns, axis=1), log_weight


PRIOR_MEAN = np.array([0.3, -0.32, -0.62])
HALF = np.array([[1.5**0.5, 0, 0], [0.6 * 1.5**0.5, 0.8**0.5, 0], [-0.4 * 1.5**0.5, 0.8**0.5, 0.5**0.5]])


def same_fixed_point(posterior, made, rows, log_likelihoods):
    """Equal to EP by hand, up to where the engine stops."""
    n = len(made)
    covariance = (HALF @ HALF.T)[:n, :n]
    mean, covariance = expectation_propagation(PRIOR_MEAN[:n], covariance, rows, log_likelihoods)
    sd = np.sqrt(np.diag(covariance))
    agree(posterior, made, mean, sd, z=2e-3, ratio=2e-3)
    for i in range(n):
        for j in range(i):
            found = posterior.covariance(made[i].reshape(1), made[j].reshape(1))[0, 0]
            assert found == pytest.approx(covariance[i, j], abs=2e-3 * sd[i] * sd[j])


def compare(model, made, points, log_weight, log_likelihood, evidence=0.02, ratio=0.03, **settings):
    mean, sd, log_total = moments(points, log_weight + log_likelihood, points)
    posterior = model.infer(structure="joint", **settings)
    agree(posterior, made, mean, sd, ratio=ratio)
    assert posterior.log_evidence == pytest.approx(log_total, abs=evidence)
    return posterior


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("link", ["probit", "logit"])
def test_labels_of_linear_expressions(link, n, seed):
    rng = np.random.default_rng(seed)
    model = hg.Model()
    made, points, log_weight = unknowns(model, n)
    x, y = rng.normal(size=(8, n)), rng.integers(0, 2, 8).astype(float)
    model.bernoulli("y", observed=y, **{link: sum(x[:, k] * made[k] for k in range(n)) - 0.2})
    log_cdf = log_ndtr if link == "probit" else log_expit
    log_likelihood = log_cdf((2 * y - 1) * (points @ x.T - 0.2)).sum(axis=1)
    posterior = compare(
        model, made, points, log_weight, log_likelihood, evidence=0.05, ratio=0.06
    )  # EP's own error: few labels
    same_fixed_point(posterior, made, x, [lambda z, s=s: log_cdf(s * (z - 0.2)) for s in 2 * y - 1])


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("seed", SEEDS)
def test_counts_of_linear_expressions(n, seed):
    rng = np.random.default_rng(seed)
    model = hg.Model()
    made, points, log_weight = unknowns(model, n)
    x, y = 0.5 * rng.normal(size=(6, n)), rng.poisson(2.0, 6)
    z = sum(x[:, k] * made[k] for k in range(n)) + 0.5
    model.poisson("y", log_rate=z, observed=y)
    u = points @ x.T + 0.5
    posterior = compare(model, made, points, log_weight, (y * u - np.exp(u) - gammaln(y + 1)).sum(axis=1))
    same_fixed_point(posterior, made, x, [lambda z, k=k: k * z - np.exp(z + 0.5) for k in y])


@pytest.mark.parametrize("seed", SEEDS)
def test_truncations_of_several_expressions(seed):
    rng = np.random.default_rng(seed)
    model = hg.Model()
    (a, b), points, log_weight = unknowns(model, 2)
    model.gaussian("y", a + b, variance=0.5, observed=rng.normal())
    noise = model.gaussian("noise", 0.0, variance=1.0, size=3)
    x = rng.normal(size=(3, 2))
    model.constrain(x[:, 0] * a + x[:, 1] * b + noise > 0.3)
    seen = np.random.default_rng(seed).normal()
    log_likelihood = norm.logpdf(seen, points.sum(axis=1), np.sqrt(0.5)) + log_ndtr(points @ x.T - 0.3).sum(axis=1)
    compare(model, [a, b], points, log_weight, log_likelihood)


def test_an_order_of_two_dependent_variables_is_exact():
    """One half-plane: the tilted moments have a closed form."""
    model = hg.Model()
    (a, b), _, _ = unknowns(model, 2)
    model.constrain(b > a)
    posterior = model.infer(structure="joint")
    gap, spread = -0.32 - 0.3, np.sqrt(0.4**2 * 1.5 + 0.8)  # of b - a before the constraint
    assert posterior.log_evidence == pytest.approx(log_ndtr(gap / spread), abs=1e-8)
    ratio = norm.pdf(gap / spread) / ndtr(gap / spread)
    mean, variance = gap + spread * ratio, spread**2 * (1 - ratio * (ratio + gap / spread))
    found = posterior[b - a]
    assert float(found.mean) == pytest.approx(mean, rel=1e-8)
    assert float(found.variance) == pytest.approx(variance, rel=1e-7)
    gain = -0.4 * 1.5 / spread**2  # of a on b - a
    assert float(posterior[a].mean) == pytest.approx(0.3 + gain * (mean - gap), rel=1e-8)
    assert float(posterior[a].variance) == pytest.approx(1.5 + gain**2 * (variance - spread**2), rel=1e-7)


def test_an_interval_of_an_expression():
    model = hg.Model()
    (a, b), points, log_weight = unknowns(model, 2)
    noise = model.gaussian("noise", 0.0, variance=0.3)
    model.constrain(model.between(a - 2.0 * b + noise, 0.5, 1.5))
    z, sd = points[:, 0] - 2 * points[:, 1], np.sqrt(0.3)
    log_likelihood = np.log(ndtr((1.5 - z) / sd) - ndtr((0.5 - z) / sd) + 1e-300)
    compare(model, [a, b], points, log_weight, log_likelihood)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_gamma_precision_of_data_around_a_line(seed):
    """The precision is integrated in closed form: a Student-t in the residuals."""
    rng = np.random.default_rng(seed)
    model = hg.Model()
    (a, b), points, log_weight = unknowns(model, 2)
    shape, rate, n = 5.0, 4.0, 12
    tau = model.gamma("tau", shape, rate)
    x = rng.normal(2, 1, n)
    y = 0.5 + 0.8 * x + rng.normal(size=n)
    model.gaussian("y", a + b * x, precision=tau, observed=y)
    half = rate + 0.5 * ((y - points[:, :1] - points[:, 1:] * x) ** 2).sum(axis=1)
    log_likelihood = shape * np.log(rate) - gammaln(shape) + gammaln(shape + n / 2) - (shape + n / 2) * np.log(half)
    log_likelihood -= n / 2 * np.log(2 * np.pi)
    mean, sd, log_total = moments(points, log_weight + log_likelihood, points)
    posterior = model.infer(structure="joint")
    agree(posterior, [a, b], mean, sd, z=0.05, ratio=0.06)  # EP factorises precision and line, n = 12
    taus = moments(points, log_weight + log_likelihood, ((shape + n / 2) / half)[:, None])[0]
    assert float(posterior[tau].mean) == pytest.approx(float(taus[0]), rel=0.03)
    assert posterior.log_evidence == pytest.approx(log_total, abs=0.1)


def test_a_gamma_precision_of_latent_effects():
    """Effects x with an unknown precision: given it, all is Gaussian, so a grid over its logarithm is exact."""
    rng = np.random.default_rng(0)
    n, shape, rate = 12, 4.0, 3.0
    y = rng.normal(1.0, 1.3, n)
    model = hg.Model()
    mu, tau = model.gaussian("mu", 0.0, variance=4.0), model.gamma("tau", shape, rate)
    x = model.gaussian("x", mu, precision=tau, size=n)
    model.gaussian("y", x, variance=0.5, observed=y)
    posterior = model.infer(structure="joint")
    t = np.exp(np.linspace(-5, 4, 4001))
    v = 1 / t + 0.5
    p = n / v + 0.25
    m = y.sum() / v / p
    quad = (y**2).sum() / v - m**2 * p
    log_w = shape * np.log(t) - rate * t - 0.5 * n * np.log(v) - 0.5 * np.log(p) - 0.5 * quad
    w = np.exp(log_w - log_w.max())
    w /= w.sum()
    mean = w @ m
    sd = np.sqrt(w @ (1 / p + (m - mean) ** 2))
    agree(posterior, [mu], np.array([mean]), np.array([sd]), z=0.05, ratio=0.05)
    assert float(posterior[tau].mean) == pytest.approx(float(w @ t), rel=0.05)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_mixture_of_two_expressions(seed):
    rng = np.random.default_rng(seed)
    model = hg.Model()
    (a, b), points, log_weight = unknowns(model, 2)
    model.gaussian("tie", a + b, variance=0.3, observed=0.5)
    means = model.gaussian(
        "means", a * np.array([1.0, 0.0]) + b * np.array([0.0, 1.0]) + np.array([-3.0, 3.0]), variance=0.2
    )
    which = model.categorical("which", np.full(2, 0.5), size=10)
    y = np.concatenate([rng.normal(-3, 1, 4), rng.normal(3, 1, 6)])
    model.mixture("y", which, means, variance=1.0, observed=y)
    # given a and b the two means are independent, and integrated on lines of their own
    u, w = np.polynomial.hermite_e.hermegauss(24)
    w = w / w.sum()
    m0 = points[:, :1] - 3 + np.sqrt(0.2) * u
    m1 = points[:, 1:] + 3 + np.sqrt(0.2) * u
    log_likelihood = norm.logpdf(0.5, points.sum(axis=1), np.sqrt(0.3))
    near0, near1 = (np.abs(y[:, None] - c) for c in (-3.0, 3.0))
    assert (np.minimum(near0, near1) < 3).all()  # far apart: each datum belongs to one component up to e-8
    for m, mine in ((m0, y < 0), (m1, y > 0)):
        each = sum(np.log(0.5) + norm.logpdf(v, m, 1.0) for v in y[mine])
        log_likelihood = log_likelihood + np.log(np.exp(each - each.max(axis=1, keepdims=True)) @ w) + each.max(axis=1)
    mean, sd, log_total = moments(points, log_weight + log_likelihood, points)
    posterior = model.infer(structure="joint")
    agree(posterior, [a, b], mean, sd, z=0.05)
    assert posterior.log_evidence == pytest.approx(log_total, abs=0.05)


def test_a_black_box_of_an_expression():
    @hg.factor(output=hg.Beta)
    def logistic(z):
        return 1 / (1 + np.exp(-z))

    model = hg.Model()
    (a, b), points, log_weight = unknowns(model, 2)
    x, y = np.array([1.0, -0.5, 2.0, 0.3]), np.array([1.0, 0.0, 0.0, 1.0])
    model.gaussian("tie", a - b, variance=0.4, observed=0.2)
    model.bernoulli("y", logistic(a + b * x), observed=y)
    p = expit(points[:, :1] + points[:, 1:] * x)
    log_likelihood = np.log(np.where(y > 0, p, 1 - p)).sum(axis=1)
    log_likelihood += norm.logpdf(0.2, points[:, 0] - points[:, 1], np.sqrt(0.4))
    compare(model, [a, b], points, log_weight, log_likelihood, seed=1)
