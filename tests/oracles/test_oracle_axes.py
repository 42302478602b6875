"""Laws that hold for the axis of every family, and for sums that grow chunk by chunk."""

import numpy as np
import pytest

from heliograph.errors import UnsupportedError
from heliograph.families import Bernoulli, Beta, Categorical, Dirichlet, Family, Gamma, Gaussian, MultivariateGaussian
from heliograph.oracles.axes import axis_of
from heliograph.oracles.importance.sums import add, empty_sums, estimate

CONTINUOUS = {
    "gaussian": Gaussian([1.0, -3.0, 1e6], [2.0, 0.01, 1e-4]),
    "gamma": Gamma([0.3, 5.0, 1e5], [2.0, 1e-3, 7.0]),
    "beta": Beta([0.4, 3.0, 2000.0], [2.0, 0.7, 1000.0]),
    "vector": MultivariateGaussian(
        np.array([[1.0, 2.0], [0.0, -5.0]]), np.array([[[1.0, 0.5], [0.5, 2.0]], [[0.1, 0.0], [0.0, 3.0]]])
    ),
    "simplex": Dirichlet([[2.0, 0.7, 5.0], [40.0, 20.0, 10.0]]),
}
DISCRETE = {"coin": Bernoulli([0.3, 0.9]), "label": Categorical([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]])}


@pytest.fixture(params=list(CONTINUOUS))
def message(request):
    return CONTINUOUS[request.param]


def axis(message):
    return axis_of(type(message), message)


def draws(message, s, seed=0):
    a = axis(message)
    uniforms = np.random.default_rng(seed).random((len(message), s, a.n_uniforms)) + 2.0**-54
    return a.draw(message, uniforms)


def test_coordinates_and_values_are_inverse(message):
    u = draws(message, 200)
    # 1e-8: a coordinate of a probability near 1 has lost what 1 - p lost
    np.testing.assert_allclose(axis(message).coordinates(axis(message).value(u)), u, rtol=1e-8, atol=1e-8)


def test_draws_have_the_moments_of_the_message(message):
    u = draws(message, 40_000)
    mean, covariance = axis(message).moments(message)
    sd = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
    np.testing.assert_array_less(np.abs(u.mean(axis=1) - mean) / sd, 5 / np.sqrt(40_000))
    for i in range(len(message)):
        # the standard error of a variance is sqrt((kurtosis - 1) / n); log-Gamma draws of small shape have kurtosis 9
        got = np.cov(u[i].T).reshape(covariance[i].shape)
        np.testing.assert_allclose(got / np.outer(sd[i], sd[i]), covariance[i] / np.outer(sd[i], sd[i]), atol=0.08)


def test_the_density_is_the_familys_own(message):
    u = draws(message, 50)
    x = axis(message).value(u)
    np.testing.assert_allclose(
        axis(message).log_message(message, u), message.reshape((len(message), 1)).log_density(x), rtol=1e-6, atol=1e-6
    )


def test_the_density_of_the_coordinates_integrates_to_one():
    for name in ("gaussian", "gamma", "beta"):
        m = CONTINUOUS[name]
        mean, covariance = axis(m).moments(m)
        t = np.linspace(-60, 40, 40_001)
        u = (mean + np.sqrt(covariance[:, 0]) * t)[..., None]
        log_p = axis(m).log_message(m, u) + axis(m).log_jacobian(u)
        total = np.exp(log_p).sum(axis=1) * (t[1] - t[0]) * np.sqrt(covariance[:, 0, 0])
        np.testing.assert_allclose(total, 1.0, rtol=1e-8)


def test_a_broadened_message_has_the_same_place_and_more_spread(message):
    wide = axis(message).broaden(message, 2.25)
    before, after = (
        np.diagonal(axis(message).moments(message)[1], axis1=1, axis2=2),
        np.diagonal(axis(wide).moments(wide)[1], axis1=1, axis2=2),
    )
    assert (after > 1.9 * before).all()
    np.testing.assert_allclose(wide.mean, message.mean, rtol=1e-9)


def project(m, u, w, centre, scale):
    a = axis(m)
    t = a.statistics(u, centre, scale)
    q = t.shape[-1]
    mean = np.einsum("ns,nsq->nq", w, t)
    gap = t - mean[:, None]
    covariance = np.einsum("ns,nsq,nsr->nqr", w, gap, gap) / u.shape[1]
    assert covariance.shape == (len(u), q, q)
    return a.project(mean, covariance, centre, scale)


def test_the_projection_does_not_depend_on_the_frame(message):
    u = draws(message, 3000)
    w = np.random.default_rng(1).random(u.shape[:2])
    w /= w.sum(axis=1, keepdims=True)
    mean, covariance = axis(message).moments(message)
    sd = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
    first = project(message, u, w, mean, sd)
    second = project(message, u, w, mean + 0.7 * sd, 2.3 * sd)
    assert first.sound.all() and second.sound.all()
    assert (first.belief.kl(second.belief) < 1e-12).all()
    np.testing.assert_allclose(
        first.chart_covariance, second.chart_covariance, rtol=1e-5, atol=1e-9 * np.abs(first.chart_covariance).max()
    )
    np.testing.assert_allclose(first.expected_kl, second.expected_kl, rtol=1e-5)
    for a, b in zip(first.errors, second.errors, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)
    # and it is the family's own projection of the plain statistics
    plain = [np.einsum("ns,ns...->n...", w, s) for s in plain_statistics(message, u)]
    if abs(np.max(message.mean)) < 1e5:  # there the plain second moment keeps some digits
        own = type(message).from_statistics(*plain)
        assert (first.belief.kl(own) < 1e-8).all()


def plain_statistics(m, u):
    x = axis(m).value(u)
    if isinstance(m, Gaussian):
        return x, x**2
    if isinstance(m, Gamma):
        return x, np.log(x)
    if isinstance(m, Beta):
        return np.log(x), np.log1p(-x)
    if isinstance(m, Dirichlet):
        return (np.log(x),)
    return x, x[..., :, None] * x[..., None, :]


@pytest.mark.parametrize(
    "belief",
    [
        Gaussian([2.0], [0.5]),
        Gamma([0.4], [3.0]),
        Gamma([50.0], [1e-6]),
        Beta([3.0], [0.6]),
        Beta([0.8], [300.0]),
        Beta([0.2], [0.3]),
        Beta([3e5], [2e5]),
        Beta([5e5], [0.4]),
        Beta([1e17], [4.0]),
        Beta([0.3], [1e18]),
    ],
    ids=lambda b: repr(b),
)
def test_errors_are_carried_to_the_chart_by_the_true_derivative(belief):
    """Shift the expected statistics a little along each axis: the chart moments must move as the covariance says."""
    a = axis(belief)
    mean, covariance = a.moments(belief)
    centre, scale = mean, np.sqrt(covariance[:, 0])
    # expected standardised statistics of the belief itself, by quadrature on its own axis
    t = np.linspace(-60, 30, 200_001)
    u = (mean + scale * t)[..., None]
    log_p = a.log_message(belief, u) + a.log_jacobian(u)
    w = np.exp(log_p - log_p.max())
    w /= w.sum()
    statistics = a.statistics(u, centre, scale)
    expected = np.einsum("ns,nsq->nq", w, statistics)
    spread = np.sqrt(np.einsum("ns,nsq->nq", w, (statistics - expected[:, None]) ** 2))[0]

    def chart(e):
        m, v = a.project(e, np.zeros((1, 2, 2)), centre, scale).belief.chart_moments()
        return np.array([m[0], np.log(v[0])])

    jacobian = np.empty((2, 2))
    for k in range(2):
        step = 1e-4 * spread[k] * np.eye(2)[k]
        jacobian[:, k] = (chart(expected + step) - chart(expected - step)) / (2 * step[k])
    error = np.diag(spread**2) + 0.3 * np.array([[0, 1], [1, 0]]) * spread.prod()
    got = a.project(expected, error[None], centre, scale)
    want = jacobian @ error @ jacobian.T
    np.testing.assert_allclose(got.chart_covariance[0], want, rtol=2e-3, atol=2e-3 * np.abs(want).max())
    # half the trace of (covariance of the statistics)^-1 times the error is the expected KL
    gap = statistics[0] - expected
    information = (w[0][:, None] * gap).T @ gap
    np.testing.assert_allclose(got.expected_kl, 0.5 * np.trace(np.linalg.solve(information, error)), rtol=1e-3)


@pytest.mark.parametrize("name", list(DISCRETE))
def test_discrete_axes_know_their_values(name):
    m = DISCRETE[name]
    a = axis(m)
    p = a.probabilities(m)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    values = np.broadcast_to(np.arange(a.n_values, dtype=float)[:, None], (len(m), a.n_values, 1))
    np.testing.assert_allclose(np.exp(a.log_message(m, values)), p)
    expected = np.einsum("ns,nsq->nq", p, a.statistics(values, values[:, 0], values[:, 0]))
    got = a.project(expected, np.zeros((len(m), a.n_statistics, a.n_statistics)), values[:, 0], values[:, 0])
    assert (m.kl(got.belief) < 1e-14).all()


def test_a_family_nobody_told_us_of_is_refused():
    class Stranger(Family):
        pass

    with pytest.raises(UnsupportedError, match="no oracle knows how to sample a Stranger"):
        axis_of(Stranger)


# ---- sums -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("order", ["rising", "falling", "shuffled"])
def test_sums_in_chunks_are_the_sums_of_all(order):
    rng = np.random.default_rng(0)
    n, s = 3, 240
    log_w = 5 * rng.standard_normal((n, s)) + np.linspace(-2000, 0, s) * np.array([[0.0], [0.1], [1.0]])
    log_w[1, :30] = -np.inf
    if order == "falling":
        log_w = log_w[:, ::-1]
    if order == "shuffled":
        log_w = rng.permuted(log_w, axis=1)
    t = rng.standard_normal((n, s, 3))
    blocks = (slice(0, 2), slice(2, 3))
    sums = empty_sums(n, blocks, 1, 10)
    for start in range(0, s, 40):
        for rows in (np.array([0, 2]), np.array([1])):
            add(sums, rows, 0, log_w[rows, start : start + 40], t[rows, start : start + 40])
    got = estimate(sums)
    w = np.exp(log_w - log_w.max(axis=1, keepdims=True))
    p = w / w.sum(axis=1, keepdims=True)
    mean = np.einsum("ns,nsq->nq", p, t)
    np.testing.assert_allclose(got.mean, mean, rtol=1e-10, atol=1e-12)
    gap = t - mean[:, None]
    for block, covariance in zip(blocks, got.covariances, strict=True):
        want = np.einsum("ns,nsq,nsr->nqr", p**2, gap[..., block], gap[..., block]) * s / (s - 1)
        np.testing.assert_allclose(covariance, want, rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(got.log_z, log_w.max(axis=1) + np.log(w.mean(axis=1)), rtol=1e-12)
    np.testing.assert_allclose(got.ess, 1 / (p**2).sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(got.log_z_error, w.std(axis=1, ddof=1) / w.mean(axis=1) / np.sqrt(s), rtol=1e-9)
    np.testing.assert_array_equal(np.sort(sums.tails[:, 0], axis=1), np.sort(log_w, axis=1)[:, -11:])


@pytest.mark.parametrize("together", [1, 2, 8])
def test_replicates_in_chunks_are_the_replicates(together):
    rng = np.random.default_rng(1)
    log_w, t = 3 * rng.standard_normal((2, 8, 50)), rng.standard_normal((2, 8, 50, 2))
    sums = empty_sums(2, (slice(0, 2),), 8, 5)
    rows = np.arange(2)
    for start in (0, 25):
        for r in range(0, 8, together):
            own = slice(r, r + together), slice(start, start + 25)
            some, places = log_w[:, *own] + 700, t[:, *own]
            add(sums, rows, r, some.reshape(2, -1), places.reshape(2, -1, 2), together)
    got = estimate(sums)
    w = np.exp(log_w)
    a, b = np.einsum("nrs,nrsq->nrq", w, t), w.sum(axis=2)
    mean = a.sum(axis=1) / b.sum(axis=1)[:, None]
    residual = (a - mean[:, None] * b[..., None]) / b.sum(axis=1)[:, None, None]
    np.testing.assert_allclose(got.mean, mean, rtol=1e-10)
    np.testing.assert_allclose(got.covariances[0], np.einsum("nri,nrj->nij", residual, residual) * 8 / 7, rtol=1e-9)


def test_nothing_drawn_of_any_weight_is_not_a_number():
    sums = empty_sums(1, (slice(0, 1),), 1, 3)
    add(sums, np.array([0]), 0, np.full((1, 9), -np.inf), np.ones((1, 9, 1)))
    got = estimate(sums)
    assert got.ess[0] == 0 and got.log_z[0] == -np.inf and np.isposinf(got.log_z_error[0])
