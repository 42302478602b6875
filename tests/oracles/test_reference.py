"""References against dense grids: cheap, close, smooth, and sure of themselves only where they may be."""

import numpy as np
import pytest

from heliograph.families import Bernoulli, Beta, Gamma, Gaussian, MultivariateGaussian
from heliograph.oracles import sampler_of
from heliograph.oracles.references import reference_of


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def exponential(x):
    return np.exp(x)


def tilted_line(log_f, mean, sd, n=6001):
    """Nodes and weights of a density on the line, ``log_f(u)`` for u of shape (rows, n)."""
    low, high = (mean - 14 * sd)[:, None], (mean + 14 * sd)[:, None]
    for _ in range(3):
        u = low + (high - low) * np.linspace(0, 1, n)
        l = log_f(u)
        top = l.max(axis=1, keepdims=True)
        w = np.exp(l - top)
        counts = w > 1e-30
        first, last = counts.argmax(axis=1)[:, None], n - 1 - counts[:, ::-1].argmax(axis=1)[:, None]
        low, high = np.take_along_axis(u, first, 1), np.take_along_axis(u, last, 1)
    log_total = top[:, 0] + np.log(w.sum(axis=1) * (u[:, 1] - u[:, 0]))
    return u, w / w.sum(axis=1, keepdims=True), log_total


def moments(u, w):
    mean = (w * u).sum(axis=1)
    return mean, (w * (u - mean[:, None]) ** 2).sum(axis=1)


def logistic_case(rng, n, widest=20.0):
    v = np.exp(rng.uniform(np.log(0.1), np.log(widest), n))
    m = rng.normal(size=n) * np.sqrt(2 + v)
    a, b = np.exp(rng.uniform(np.log(0.7), np.log(60.0), (2, n)))
    incoming = {"z": Gaussian(m, v), "out": Beta(a, b)}
    u, w, log_total = tilted_line(
        lambda z: (
            -0.5 * (z - m[:, None]) ** 2 / v[:, None]
            - (a - 1)[:, None] * np.logaddexp(0, -z)
            - (b - 1)[:, None] * np.logaddexp(0, z)
        ),
        m,
        np.sqrt(v),
    )
    log_z = log_total - 0.5 * np.log(2 * np.pi * v) - incoming["out"].log_normaliser()
    out = Beta.from_statistics(-(w * np.logaddexp(0, -u)).sum(axis=1), -(w * np.logaddexp(0, u)).sum(axis=1))
    return incoming, {"z": Gaussian(*moments(u, w)), "out": out}, log_z


def test_one_unknown_is_referred_closely_in_every_direction():
    rng = np.random.default_rng(0)
    incoming, exact, log_z = logistic_case(rng, 400)
    refer = reference_of(sampler_of(sigmoid, Beta))
    for to, belief in exact.items():
        reference = refer(rng, incoming, to)
        kl = belief.kl(type(belief).from_chart_moments(*reference.moments))
        assert np.median(kl) < 1e-6
        assert np.quantile(kl, 0.99) < 3e-3  # the lab's Laplace reference had medians of 4e-3 and more
        assert kl.max() < 0.1
        assert (kl <= reference.sure + 1e-12).all()  # its own doubt bounds its error
        assert reference.n_evaluations < 600 * 400
        assert np.isfinite(reference.summaries).all()
    reference = refer(rng, incoming, None)
    assert np.median(np.abs(reference.log_z - log_z)) < 1e-4
    assert np.max(np.abs(reference.log_z - log_z)) < 0.1


def test_a_gamma_output_and_a_gamma_input_work_on_their_logarithms():
    rng = np.random.default_rng(1)
    n = 200
    m, v = rng.normal(size=n), np.exp(rng.uniform(-2, 1, n))
    counts = rng.poisson(np.exp(m)) + 1.0
    incoming = {"x": Gaussian(m, v), "out": Gamma(counts, 1.0)}
    u, w, _ = tilted_line(
        lambda x: -0.5 * (x - m[:, None]) ** 2 / v[:, None] + (counts - 1)[:, None] * x - np.exp(x), m, np.sqrt(v)
    )
    refer = reference_of(sampler_of(exponential, Gamma))
    kl = Gaussian(*moments(u, w)).kl(Gaussian(*refer(rng, incoming, "x").moments))
    assert np.quantile(kl, 0.99) < 1e-4
    out = Gamma.from_statistics((w * np.exp(u)).sum(axis=1), (w * u).sum(axis=1))
    assert np.quantile(out.kl(Gamma.from_chart_moments(*refer(rng, incoming, "out").moments)), 0.99) < 1e-4

    # the other way round: log of a Gamma, seen through a Gaussian
    shape, rate = rng.uniform(2, 9, n), rng.uniform(0.5, 2, n)
    seen = Gaussian(rng.normal(size=n), 0.5)
    incoming = {"x": Gamma(shape, rate), "out": seen}
    u, w, _ = tilted_line(
        lambda x: shape[:, None] * x - rate[:, None] * np.exp(x) - (x - seen.mean[:, None]) ** 2,
        np.zeros(n),
        np.ones(n),
    )
    truth = Gamma.from_statistics((w * np.exp(u)).sum(axis=1), (w * u).sum(axis=1))
    found = reference_of(sampler_of(lambda x: np.log(x), Gaussian, name="log"))(rng, incoming, "x")
    assert np.quantile(truth.kl(Gamma.from_chart_moments(*found.moments)), 0.99) < 1e-4


def test_data_and_point_masses_are_constants():
    rng = np.random.default_rng(2)
    n = 50
    slope, m = rng.uniform(0.5, 2, n), rng.normal(size=n)
    incoming = {
        "x": Gaussian(m, 0.7),
        "slope": slope,
        "shift": Gaussian.point_mass(rng.normal(size=n)),
        "out": Gaussian(rng.normal(size=n), 0.3),
    }

    def line(x, slope, shift):
        return slope * x + shift

    found = reference_of(sampler_of(line, Gaussian))(rng, incoming, "x")
    precision = 1 / 0.7 + slope**2 / 0.3
    mean = (m / 0.7 + slope * (incoming["out"].mean - incoming["shift"].point) / 0.3) / precision
    # a linear factor has a Gaussian tilted density, which even nodes integrate to rounding of single precision
    assert np.allclose(found.moments[0], mean, atol=1e-5)
    assert np.allclose(found.moments[1], 1 / precision, rtol=1e-4)


def test_a_uniform_output_leaves_the_input_and_pushes_it_forward():
    rng = np.random.default_rng(3)
    incoming = {"z": Gaussian([0.3, -2.0], [1.0, 0.2]), "out": Beta.uniform(2)}
    refer = reference_of(sampler_of(sigmoid, Beta))
    mean, variance = refer(rng, incoming, "z").moments
    assert np.allclose(mean, [0.3, -2.0], atol=1e-4) and np.allclose(variance, [1.0, 0.2], rtol=1e-3)
    incoming = {"a": Gaussian([1.0], 0.01), "b": Gaussian([2.0], 0.01), "out": Gaussian.uniform(1)}
    mean, variance = reference_of(sampler_of(lambda a, b: a * b, Gaussian, name="product"))(
        rng, incoming, "out"
    ).moments
    assert mean == pytest.approx(2.0, abs=1e-3)
    assert variance == pytest.approx(0.01 * 5 + 1e-4, rel=1e-2)


def product_case(rng, n, narrowest):
    ma, mb = 1.5 * rng.normal(size=(2, n))
    va, vb = np.exp(rng.uniform(np.log(0.05), np.log(2.0), (2, n)))
    vo = np.exp(rng.uniform(np.log(narrowest), np.log(5.0), n))
    draw = (ma + np.sqrt(va) * rng.normal(size=n)) * (mb + np.sqrt(vb) * rng.normal(size=n))
    incoming = {
        "a": Gaussian(ma, va),
        "b": Gaussian(mb, vb),
        "out": Gaussian(draw + np.sqrt(vo) * rng.normal(size=n), vo),
    }
    mo = incoming["out"].mean

    def log_f(a):  # b is integrated in closed form
        t = a**2 * vb[:, None] + vo[:, None]
        return (
            -0.5 * (a - ma[:, None]) ** 2 / va[:, None]
            - 0.5 * np.log(t)
            - 0.5 * (mo[:, None] - a * mb[:, None]) ** 2 / t
        )

    u, w, log_total = tilted_line(log_f, ma, np.sqrt(va))
    log_z = log_total - 0.5 * np.log(2 * np.pi * va) - 0.5 * np.log(2 * np.pi)
    return incoming, Gaussian(*moments(u, w)), log_z


def test_two_unknowns_are_referred_on_the_plane():
    rng = np.random.default_rng(4)
    incoming, belief, log_z = product_case(rng, 200, 0.5)
    refer = reference_of(sampler_of(lambda a, b: a * b, Gaussian, name="product"))
    found = refer(rng, incoming, "a")
    kl = belief.kl(Gaussian(*found.moments))
    assert np.median(kl) < 1e-5
    assert np.quantile(kl, 0.99) < 1e-2  # linearisation alone: 0.6
    assert np.median(np.abs(refer(rng, incoming, None).log_z - log_z)) < 1e-3


def test_doubt_tells_where_the_reference_is_wrong():
    rng = np.random.default_rng(5)
    incoming, belief, _ = product_case(rng, 400, 0.02)
    found = reference_of(sampler_of(lambda a, b: a * b, Gaussian, name="product"))(rng, incoming, "a")
    kl = belief.kl(Gaussian(*found.moments))
    sure = found.doubt < np.quantile(found.doubt, 0.7)
    assert np.quantile(kl[sure], 0.99) < 0.1 * np.quantile(kl[~sure], 0.99)


def test_a_vector_is_referred_whole():
    rng = np.random.default_rng(6)
    n = 60
    mean = 2 + 0.5 * rng.normal(size=(n, 2))
    root = rng.normal(size=(n, 2, 2)) * 0.3 + 0.4 * np.eye(2)
    covariance = root @ np.swapaxes(root, 1, 2) + 0.02 * np.eye(2)
    anchor = np.zeros((n, 2))
    seen = Gaussian(rng.uniform(2, 4, n), 0.1)

    def distance(position, anchor):
        return np.sqrt(((position - anchor) ** 2).sum(-1) + 1e-12)

    incoming = {"position": MultivariateGaussian(mean, covariance=covariance), "anchor": anchor, "out": seen}
    found = reference_of(sampler_of(distance, Gaussian))(rng, incoming, "position")
    nodes = np.stack(np.meshgrid(*[np.linspace(-6, 6, 241)] * 2), -1).reshape(-1, 2)
    for i in range(0, n, 10):
        x = mean[i] + nodes @ np.linalg.cholesky(covariance[i]).T
        l = -0.5 * (nodes**2).sum(1) - 0.5 * (distance(x, 0.0) - seen.mean[i]) ** 2 / 0.1
        w = np.exp(l - l.max())
        w /= w.sum()
        m = w @ x
        c = (x - m).T @ ((x - m) * w[:, None])
        truth = MultivariateGaussian(m[None], covariance=c[None])
        assert truth.kl(MultivariateGaussian(*(a[i : i + 1] for a in found.moments)))[0] < 1e-2


def test_three_unknowns_are_linearised_and_a_linear_factor_exactly():
    rng = np.random.default_rng(7)
    n = 30
    m, v = rng.normal(size=(3, n)), rng.uniform(0.2, 2, (3, n))
    incoming = {p: Gaussian(m[k], v[k]) for k, p in enumerate("abc")} | {"out": Gaussian(rng.normal(size=n), 0.4)}
    found = reference_of(sampler_of(lambda a, b, c: a - 2 * b + c, Gaussian, name="sum"))(rng, incoming, "b")
    total = v[0] + 4 * v[1] + v[2] + 0.4
    gain = -2 * v[1] / total
    surprise = incoming["out"].mean - (m[0] - 2 * m[1] + m[2])
    assert np.allclose(found.moments[0], m[1] + gain * surprise)
    assert np.allclose(found.moments[1], v[1] - gain**2 * total)
    log_z = reference_of(sampler_of(lambda a, b, c: a - 2 * b + c, Gaussian, name="sum"))(rng, incoming, None).log_z
    assert np.allclose(log_z, -0.5 * surprise**2 / total - 0.5 * np.log(2 * np.pi * total))


def test_a_function_that_overflows_far_out_is_no_error():
    rng = np.random.default_rng(8)
    incoming = {"x": Gaussian([0.0], [1e5]), "out": Gamma([3.0], [1.0])}
    found = reference_of(sampler_of(exponential, Gamma))(rng, incoming, "x")
    assert np.isfinite(found.moments[0]).all() and (found.moments[1] > 0).all()


@pytest.mark.parametrize("expensive", [False, True])
def test_stochastic_discrete_and_expensive_factors_have_none(expensive):
    def noisy(x, rng):
        return x + rng.standard_normal(x.shape)

    assert reference_of(sampler_of(noisy, Gaussian)) is None
    assert reference_of(sampler_of(lambda x: (x > 0) * 1.0, Bernoulli, name="step")) is None
    assert (reference_of(sampler_of(sigmoid, Beta, expensive=expensive)) is None) == expensive


WILD = {
    "tanh": np.tanh,
    "tan": np.tan,
    "abs": np.abs,
    "square": np.square,
    "relu": lambda z: np.maximum(z, 0.0),
    "three waves": lambda z: np.sin(3 * z),
    "fast wave": lambda z: np.sin(20 * z),
    "steep": lambda z: np.exp(3 * z),
    "step": np.sign,
}


@pytest.mark.parametrize("name", WILD)
def test_needles_modes_cliffs_and_poles_are_seen_or_doubted(name):
    """Against two hundred thousand even nodes: whoever claims to be right to a millionth of a nat is."""
    f, rng, n = WILD[name], np.random.default_rng(11), 60
    m, v = rng.normal(size=n), np.exp(rng.uniform(np.log(0.01), np.log(6.0), n))
    vo = np.exp(rng.uniform(np.log(1e-5), np.log(5.0), n))
    y = f(rng.normal(m, np.sqrt(v))) + np.sqrt(vo) * rng.standard_normal(n) * rng.choice([1.0, 20.0], n, p=[0.8, 0.2])
    incoming = {"z": Gaussian(m, v), "out": Gaussian(y, vo)}
    sampler = sampler_of(lambda z: f(z), Gaussian, name="wild")
    found = {to: reference_of(sampler)(rng, incoming, to) for to in ("z", "out")}
    n_sure = 0
    for i in range(n):
        u = np.linspace(m[i] - 12 * np.sqrt(v[i]), m[i] + 12 * np.sqrt(v[i]), 200_001)
        value = f(u)
        log_w = -0.5 * (u - m[i]) ** 2 / v[i] - 0.5 * (value - y[i]) ** 2 / vo[i]
        w = np.exp(log_w - log_w.max())
        w /= w.sum()
        if w.max() > 0.1:
            continue  # a needle that this grid does not see itself
        for to, x in (("z", u), ("out", value)):
            mean = w @ x
            variance = w @ (x - mean) ** 2
            if found[to].sure[i] < 1e-6 and variance > 1e-8:
                n_sure += 1
                belief = Gaussian(*(a[i : i + 1] for a in found[to].moments))
                assert Gaussian([mean], [variance]).kl(belief)[0] < 1e-5, (name, to, m[i], v[i], y[i], vo[i])
    assert n_sure > (10 if name == "step" else 40)


@pytest.mark.parametrize("name", ["abs", "square", "relu", "relu to the left", "sinc"])
def test_a_kink_or_a_turn_is_no_jump(name):
    """Steps of which the next alone is small: cells were cut around them as around a jump, and the rest left coarse."""
    f = {"relu to the left": lambda z: np.maximum(-z, 0.0), "sinc": np.sinc}.get(name, WILD.get(name))
    rng, n = np.random.default_rng(13), 80
    m, v = rng.normal(size=n), np.exp(rng.uniform(np.log(0.1), np.log(1.0), n))
    y = f(rng.normal(m, np.sqrt(v))) + 0.3 * rng.standard_normal(n)
    sampler = sampler_of(lambda z: f(z), Gaussian, name="turning")
    incoming = {"z": Gaussian(m, v), "out": Gaussian(y, np.full(n, 0.09))}
    found = reference_of(sampler)(rng, incoming, "z")
    assert (found.sure < 1e-6).all()  # an eighth of those of |z|, and a third of z^2, were in doubt
    z = m[:, None] + np.sqrt(v)[:, None] * np.linspace(-8, 8, 20_001)
    log_w = -0.5 * (z - m[:, None]) ** 2 / v[:, None] - 0.5 * (f(z) - y[:, None]) ** 2 / 0.09
    w = np.exp(log_w - log_w.max(axis=1, keepdims=True))
    mean, variance = moments(z, w / w.sum(axis=1, keepdims=True))
    assert Gaussian(mean, variance).kl(Gaussian(*found.moments)).max() < 1e-6


def test_poles_close_to_a_node_are_seen():
    m, v, y, vo = np.array([[2.614, 0.648, -27.781, 0.208], [-1.592, 0.643, 20.838, 0.176]]).T
    incoming = {"z": Gaussian(m, v), "out": Gaussian(y, vo)}
    sampler = sampler_of(lambda z: np.tan(z), Gaussian, name="tan")
    found = reference_of(sampler)(np.random.default_rng(0), incoming, "z")
    z = m[:, None] + np.sqrt(v)[:, None] * np.linspace(-9, 9, 1_000_001)
    log_w = -0.5 * (z - m[:, None]) ** 2 / v[:, None] - 0.5 * (np.tan(z) - y[:, None]) ** 2 / vo[:, None]
    w = np.exp(log_w - log_w.max(axis=1, keepdims=True))
    mean, variance = moments(z, w / w.sum(axis=1, keepdims=True))
    kl = Gaussian(mean, variance).kl(Gaussian(*found.moments))
    assert (kl < 20 * found.doubt + 1e-6).all(), (kl, found.doubt)


def test_rounded_and_clipped_readings_are_summed_edge_by_edge():
    reader = sampler_of(lambda z: np.round(np.clip(2.0 * z, -1.5, 2.5), 1), Gaussian)
    rng = np.random.default_rng(4)
    m, v = rng.normal(0, 1, 60), np.exp(rng.normal(-1.4, 0.5, 60))
    y = reader.function(rng.normal(m, np.sqrt(v))) + 0.05 * rng.standard_normal(60)
    incoming = {"z": Gaussian(m, v), "out": Gaussian(y, np.full(60, 0.05**2))}
    found = reference_of(reader)(rng, incoming, "z")
    # the true density is constant times the cavity between steps: sums over far finer nodes than the steps
    z = m[:, None] + np.sqrt(v)[:, None] * np.linspace(-8, 8, 160_001)
    log_w = -0.5 * (z - m[:, None]) ** 2 / v[:, None] - 0.5 * (reader.function(z) - y[:, None]) ** 2 / 0.05**2
    w = np.exp(log_w - log_w.max(axis=1, keepdims=True))
    mean, variance = moments(z, w / w.sum(axis=1, keepdims=True))
    kl = Gaussian(mean, variance).kl(Gaussian(*found.moments))
    assert np.median(kl) < 1e-5  # it was 2e-3
    assert (kl < np.maximum(found.doubt, 1e-6)).all()  # one in eight was wrong by more than ten times its doubt
