"""The rules by which factors begin a run: expectations by quadrature and by draws, limits, and properness."""

import inspect

import numpy as np
import pytest
from scipy import stats

import heliograph.factors as room
from heliograph.factors import Factor, GammaRate, GaussianPrecision, Mixture, Product
from heliograph.families import Bernoulli, Categorical, Gamma, Gaussian

RULES = [f for _, f in inspect.getmembers(room, inspect.isclass) if issubclass(f, Factor) and f.begins]
N = 200


def drawn(rng, family, k=3):
    """Proper messages of all sizes."""
    if family is Gaussian:
        return Gaussian(10.0 ** rng.uniform(-2, 2, N) * rng.normal(size=N), 10.0 ** rng.uniform(-4, 4, N))
    if family is Gamma:
        return Gamma(10.0 ** rng.uniform(-2, 3, N), 10.0 ** rng.uniform(-3, 3, N))
    return Categorical(rng.dirichlet(np.ones(k), N)) if family is Categorical else Bernoulli(rng.uniform(0, 1, N))


def ports(factor, rng):
    """Incoming messages at every port, plain numbers at data ports."""
    return {
        p: drawn(rng, f[0], getattr(factor, "n", 3)) if (f := factor.families[p]) else 10.0 ** rng.uniform(-1, 2, N)
        for p in factor.ports
    }


def test_the_factors_of_unknown_precisions_rates_and_products_have_rules():
    assert {f.name for f in RULES} == {
        "gaussian_precision",
        "gamma_rate",
        "mixture",
        "one_of",
        "product",
        "scaled_gaussian",
    }
    assert Factor().mean_field("x", {}, {}) is None


@pytest.mark.parametrize("rule", RULES, ids=lambda f: f.name)
def test_messages_are_proper_where_what_came_in_is(rule):
    rng = np.random.default_rng(0)
    factor = rule()
    incoming = ports(factor, rng)
    for port in factor.ports:
        if factor.families[port]:
            sent = factor.mean_field(port, incoming, incoming)
            assert sent.finite.all(), port
            if isinstance(sent, Gaussian):
                assert (sent.naturals[1] >= 0).all(), port
            if isinstance(sent, Gamma):
                assert (sent.naturals[0] > -1).all() and (sent.naturals[1] >= 0).all(), port


@pytest.mark.parametrize("rule", RULES, ids=lambda f: f.name)
def test_nothing_is_sent_where_nothing_is_known(rule):
    factor = rule()
    unknown = {p: factor.families[p][0].uniform((2,)) for p in factor.ports if factor.families[p]}
    if "s" in unknown:
        unknown["s"] = Categorical.uniform((2,), factor.n)
    for port in list(unknown):
        data = {p: np.ones(2) for p in factor.ports if not factor.families[p]}
        sent = factor.mean_field(port, {**unknown, **data}, {**unknown, **data})
        assert sent.is_uniform.all(), port


def test_a_known_precision_gives_the_message_of_ep():
    rng = np.random.default_rng(1)
    incoming = {
        "x": drawn(rng, Gaussian),
        "mean": drawn(rng, Gaussian),
        "precision": Gamma.point_mass(rng.gamma(2.0, size=N)),
    }
    for to in ("x", "mean"):
        sent, exact = (
            f(to, incoming, *more)
            for f, more in ((GaussianPrecision().mean_field, [incoming]), (GaussianPrecision().message, []))
        )
        assert sent.naturals[1] == pytest.approx(exact.naturals[1], rel=1e-12)
        assert sent.naturals[0] == pytest.approx(exact.naturals[0], rel=1e-12)


def test_a_known_rate_and_known_ends_give_the_conjugate_messages():
    rng = np.random.default_rng(2)
    r, x, s = rng.gamma(2.0, size=N), rng.gamma(2.0, size=N), rng.gamma(2.0, size=N)
    known = {"shape": s, "rate": Gamma.point_mass(r), "x": Gamma.point_mass(x)}
    assert np.stack(GammaRate().mean_field("x", known, known).naturals) == pytest.approx(np.stack([s - 1, r]))
    assert np.stack(GammaRate().mean_field("rate", known, known).naturals) == pytest.approx(np.stack([s, x]))
    known = {"x": Gaussian.point_mass(x), "mean": Gaussian.point_mass(r), "precision": Gamma(s, 1.0)}
    half, rate = GaussianPrecision().mean_field("precision", known, known).naturals
    assert (half == 0.5).all()
    assert rate == pytest.approx(0.5 * (x - r) ** 2)


def test_the_precision_hears_the_expected_square_under_its_expectation():
    """On a grid over x and mean together, with the factor at the expected precision."""
    x, mean, tau = Gaussian([1.0], 0.5), Gaussian([-0.7], 2.0), Gamma([3.0], 4.0)
    a, b = np.meshgrid(np.linspace(-12, 12, 1201), np.linspace(-12, 12, 1201), indexing="ij")
    log_p = (
        x.log_density(a.reshape(-1, 1)).reshape(a.shape)
        + mean.log_density(b.reshape(-1, 1)).reshape(a.shape)
        - 0.5 * 0.75 * (a - b) ** 2
    )
    p = np.exp(log_p - log_p.max())
    square = (p * (a - b) ** 2).sum() / p.sum()
    incoming = {"x": x, "mean": mean, "precision": tau}
    half, rate = GaussianPrecision().mean_field("precision", incoming, incoming).naturals
    assert half == pytest.approx(0.5)
    assert rate == pytest.approx(0.5 * square, rel=1e-9)


def test_a_rate_hears_the_expected_log_density():
    """The message's own log density differs between two points as E log f does, by draws' exact expectations."""
    incoming = {"shape": np.array([2.5]), "rate": Gamma([3.0], 4.0), "x": Gamma([5.0], 2.0)}
    at = np.array([0.4, 1.7])
    to_x, to_rate = (GammaRate().mean_field(p, incoming, incoming) for p in ("x", "rate"))
    for sent, other, f in (
        (to_x, stats.gamma(3.0, scale=1 / 4.0), lambda v, o: stats.gamma(2.5, scale=1 / o).logpdf(v)),
        (to_rate, stats.gamma(5.0, scale=1 / 2.0), lambda v, o: stats.gamma(2.5, scale=1 / v).logpdf(o)),
    ):
        truth = [other.expect(lambda o, v=v, f=f: f(v, o)) for v in at]
        first, second = ((sent.naturals[0] * np.log(v) - sent.naturals[1] * v).item() for v in at)
        assert first - second == pytest.approx(truth[0] - truth[1], rel=1e-6)


@pytest.mark.parametrize("one", [False, True])
def test_a_mixture_hears_of_each_component_with_its_share(one):
    """Against the expected log density of every component, by 400,000 draws from the beliefs."""
    rng = np.random.default_rng(3)
    factor = Mixture(3, one)
    beliefs = {
        "s": Categorical([[0.2, 0.5, 0.3]]),
        "x": Gaussian([0.5], 0.3),
        **{f"mean{k}": Gaussian([float(k - 1)], 0.2 + 0.1 * k) for k in range(3)},
        **({"precision": Gamma([4.0], 3.0)} if one else {f"precision{k}": Gamma([3.0 + k], 2.0) for k in range(3)}),
    }
    n = 400_000
    x = rng.normal(0.5, np.sqrt(0.3), n)
    score, square, tau = np.zeros(3), np.zeros(3), np.zeros(3)
    for k in range(3):
        t = rng.gamma(4.0, 1 / 3.0, n) if one else rng.gamma(3.0 + k, 0.5, n)
        m = rng.normal(k - 1, np.sqrt(0.2 + 0.1 * k), n)
        score[k], square[k], tau[k] = (0.5 * np.log(t) - 0.5 * t * (x - m) ** 2).mean(), ((x - m) ** 2).mean(), t.mean()
    weight = np.array([0.2, 0.5, 0.3]) * np.exp(score)
    share = weight / weight.sum()
    found = factor.mean_field("s", beliefs, beliefs).log_p[0]
    assert found - found[0] == pytest.approx(score - score[0], abs=0.01)
    for k in range(3):
        shift, precision = factor.mean_field(f"mean{k}", beliefs, beliefs).naturals
        assert precision == pytest.approx(share[k] * tau[k], rel=0.02)
        assert shift == pytest.approx(share[k] * tau[k] * 0.5, rel=0.02)
    for k in [0] if one else range(3):
        half, rate = factor.mean_field("precision" if one else f"precision{k}", beliefs, beliefs).naturals
        assert half == pytest.approx(0.5 if one else 0.5 * share[k], rel=0.02)
        assert rate == pytest.approx(0.5 * (share @ square if one else share[k] * square[k]), rel=0.02)


def test_a_factor_of_a_product_hears_the_expected_log_density():
    incoming = {"a": Gaussian([0.3], 1.0), "b": Gaussian([1.5], 0.4), "out": Gaussian([2.0], 0.7)}
    shift, precision = Product().mean_field("a", incoming, incoming).naturals
    # E (out - a b)^2 / (2 v): the terms in a are a out E b / v and a^2 E b^2 / (2 v)
    assert shift == pytest.approx(2.0 * 1.5 / 0.7)
    assert precision == pytest.approx((1.5**2 + 0.4) / 0.7)
    forward = Product().mean_field("out", incoming, incoming)
    assert forward.mean == pytest.approx(0.45)
    assert forward.variance == pytest.approx(0.3**2 * 0.4 + 1.5**2 * 1.0 + 0.4)


def test_a_row_that_is_not_a_number_costs_that_row():
    bad = Gaussian.from_naturals((np.array([np.nan, 1.0]), np.array([1.0, 1.0])))
    incoming = {"x": Gaussian.point_mass([1.0, 1.0]), "mean": bad, "precision": Gamma([1.0, 1.0], 1.0)}
    sent = GaussianPrecision().mean_field("precision", incoming, incoming)
    assert np.isnan(sent.naturals[1][0])
    assert np.isfinite(sent.naturals[1][1])
