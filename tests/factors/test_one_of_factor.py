"""One of several factors, chosen by a category: the laws of factors for components of every family, and sums over components."""

import numpy as np
import pytest
from incoming_messages import data_of, message_of, targets
from laws import gradient_law, order_law, plate_law
from scipy import integrate, stats
from scipy.special import logsumexp

from heliograph.factors import (
    BernoulliBeta,
    Binomial,
    CategoricalDirichlet,
    Equal,
    GammaRate,
    GaussianFactor,
    GaussianPrecision,
    LogisticBernoulli,
    MultivariateGaussianFactor,
    OneOf,
    Poisson,
    PoissonLog,
    StudentT,
)
from heliograph.families import Bernoulli, Beta, Categorical, Gamma, Gaussian

COUNTS = [{"rate": "rate_0", "count": "x"}, {"z": "z_1", "count": "x"}]
SHARED = [
    {"mean": "mean_0", "precision": "precision", "x": "x"},
    {"mean": "mean_1", "precision": "precision", "x": "x"},
]
KINDS = {
    "vectors": OneOf([MultivariateGaussianFactor(), MultivariateGaussianFactor()]),
    "rates of gammas": OneOf([GammaRate(), GammaRate()]),
    "labels": OneOf([BernoulliBeta(), LogisticBernoulli()]),
    "categories": OneOf([CategoricalDirichlet(), CategoricalDirichlet()]),
    "one precision": OneOf([GaussianPrecision(), GaussianPrecision()], SHARED),
    "heavy tails": OneOf([GaussianFactor(), StudentT()]),
    "counts": OneOf([Poisson(), PoissonLog()], COUNTS),
    "shares of counts": OneOf([Binomial(), Binomial()]),
}


def messages(kind, rng, n, wild=False):
    """Messages at all ports of one of the kinds; counts and numbers at its data ports."""
    factor = KINDS[kind]
    found = {}
    for port in factor.ports:
        if factor.families[port]:
            found[port] = message_of(factor.families[port][0], rng, n, wild, 2 if port == "s" else 3)
        elif port == "x":
            found[port] = rng.integers(0, 10, n).astype(float)
        else:
            found[port] = data_of(factor, port, rng, n)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_the_belief_less_the_cavity_is_the_gradient_of_log_z(kind):
    rng = np.random.default_rng(1)
    compared = sum(gradient_law(KINDS[kind], messages(kind, rng, 8, wild), rng) for wild in (False, True))
    assert compared >= 16


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_answered_one_by_one_and_in_any_order(kind):
    rng = np.random.default_rng(2)
    order_law(KINDS[kind], messages(kind, rng, 13, True), rng)
    for n in (1, 2, 7, 60):
        plate_law(KINDS[kind], messages(kind, rng, n), most=3)


@pytest.mark.parametrize("kind", KINDS)
def test_wild_messages_give_no_nan(kind):
    rng = np.random.default_rng(3)
    for _ in range(5):
        incoming = messages(kind, rng, 40, True)
        assert not np.isnan(KINDS[kind].log_z(incoming)).any()
        for to in targets(KINDS[kind]):
            assert KINDS[kind].message(to, incoming).finite.all(), to


def test_a_known_choice_leaves_the_chosen_factor_alone():
    rng = np.random.default_rng(4)
    for kind, factor in KINDS.items():
        incoming = messages(kind, rng, 6)
        incoming["s"] = Categorical.point_mass(np.array([0, 1, 0, 1, 1, 0]), 2)
        for k, (f, wire) in enumerate(zip(factor.components, factor.wires, strict=True)):
            mine = incoming["s"].point == k
            own = {inner: incoming[port] for inner, port in wire.items()}
            np.testing.assert_allclose(factor.log_z(incoming)[mine], f.log_z(own)[mine], rtol=1e-12)
            for inner, port in wire.items():
                if f.families.get(inner):
                    sent, alone = factor.message(port, incoming), f.message(inner, own)
                    for a, b in zip(sent[mine].naturals, alone[mine].naturals, strict=True):
                        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
                    if sum(port in w.values() for w in factor.wires) == 1:
                        assert sent[~mine].is_uniform.all()


def test_two_poissons_agree_with_an_integral_over_both_rates():
    a, b, count = (2.5, 1.5), (6.0, 0.5), 7.0
    factor = OneOf([Poisson(), Poisson()], [{"rate": "r0", "count": "x"}, {"rate": "r1", "count": "x"}])
    incoming = {"s": Bernoulli([0.3]), "r0": Gamma([a[0]], a[1]), "r1": Gamma([b[0]], b[1]), "x": np.array([count])}
    one, two = (stats.gamma(s, scale=1 / r) for s, r in (a, b))

    def part(prior, k):
        return integrate.quad(lambda r: prior.pdf(r) * stats.poisson(r).pmf(count) * (np.log(r) if k else r), 0, 80)[0]

    z = [integrate.quad(lambda r, p=p: p.pdf(r) * stats.poisson(r).pmf(count), 0, 80)[0] for p in (one, two)]
    whole = 0.7 * z[0] + 0.3 * z[1]
    assert factor.log_z(incoming) == pytest.approx(np.log(whole), rel=1e-9)
    assert factor.belief("s", incoming).p == pytest.approx(0.3 * z[1] / whole, rel=1e-9)
    belief = factor.belief("r1", incoming)
    share = 0.3 * z[1] / whole
    mean = 0.3 * part(two, 0) / whole + (1 - share) * two.mean()
    log_mean = 0.3 * part(two, 1) / whole + (1 - share) * two.expect(np.log)
    assert belief.mean == pytest.approx(mean, rel=1e-8)
    assert belief.expected_statistics()[1] == pytest.approx(log_mean, rel=1e-7)


def test_a_component_may_be_a_fixed_distribution():
    rng = np.random.default_rng(5)
    fixed = Beta(rng.uniform(1, 9, 4), rng.uniform(1, 9, 4))
    factor = OneOf([Equal(), Equal()])
    x = rng.uniform(0.1, 0.9, 4)
    incoming = {"s": Bernoulli(np.full(4, 0.25)), "a_0": fixed, "a_1": Beta(np.ones(4), 1.0), "x": Beta.point_mass(x)}
    log_w = np.stack([np.log(0.75) + stats.beta(fixed.a, fixed.b).logpdf(x), np.full(4, np.log(0.25))])
    assert factor.log_z(incoming) == pytest.approx(logsumexp(log_w, axis=0), rel=1e-12)
    assert factor.belief("s", incoming).p == pytest.approx(np.exp(log_w[1] - logsumexp(log_w, axis=0)), rel=1e-10)


def test_an_impossible_component_is_never_chosen():
    """A lifetime cannot be negative, and a Gaussian can."""
    factor = OneOf([Equal(), Equal()])
    x = Gamma.point_mass([2.0])
    zero = Gamma.point_mass([1.0])  # all mass elsewhere
    incoming = {"s": Bernoulli([0.5]), "a_0": zero, "a_1": Gamma([3.0], 1.0), "x": x}
    assert factor.belief("s", incoming).p == pytest.approx(1.0)
    assert factor.log_z(incoming) == pytest.approx(np.log(0.5) + stats.gamma(3.0).logpdf(2.0))
    neither = {**incoming, "a_1": zero}
    assert factor.log_z(neither) == -np.inf


def test_draws_are_of_the_chosen_component():
    rng = np.random.default_rng(6)
    n = 4000
    s = rng.integers(0, 2, n)
    factor = OneOf([GaussianFactor(), GaussianFactor()])
    incoming = {"s": Categorical.point_mass(s, 2), "variance_0": np.full(n, 1.0), "variance_1": np.full(n, 4.0)}
    incoming |= {"mean_0": Gaussian.point_mass(np.full(n, -5.0)), "mean_1": Gaussian.point_mass(np.full(n, 5.0))}
    drawn, mean, variance = factor.draw(rng, {**incoming, "x": Gaussian.uniform((n,))})
    assert (mean == np.where(s == 1, 5.0, -5.0)).all()
    assert variance == pytest.approx(np.where(s == 1, 4.0, 1.0))
    for k in (0, 1):
        assert drawn[s == k].std() == pytest.approx(1.0 + k, rel=0.06)
        assert abs(drawn[s == k].mean() - mean[s == k][0]) < 0.2
