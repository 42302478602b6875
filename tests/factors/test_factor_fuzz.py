"""Messages beyond all reason: no exception, no warning, no row that notices another, and right or NaN.

Scales from 1e-30 to 1e30, means to 1e12 deviations from 0, shapes from 1e-8 to 1e12: what one outlier, or one variable
in the wrong unit, sends through a model.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from incoming_messages import every_factor, extreme_incoming_of, extreme_message_of, make, n_families, rows_of, targets
from law_specs import LONG, NO_PORTS, held
from laws import finite_rows, gradient_law

from heliograph.errors import ContradictionError
from heliograph.factors import Factor, GaussianPrecision, Logistic, Positive, Prior, Product
from heliograph.families import Bernoulli, Beta, Categorical, Family, Gamma, Gaussian

KINDS = [kind for kind in every_factor() if kind.__name__ not in NO_PORTS]
N = 60  # rows of a plate; by hand this was run with 2,000


def cases() -> list:
    return [pytest.param(f, i, id=f"{f.name}-{i}") for f in KINDS for i in range(n_families(f))]


def extreme(kind: type[Factor], family: int, n: int = N) -> tuple[Factor, dict]:
    rng = np.random.default_rng(100 + family)
    factor = make(kind, family, rng, n)
    if isinstance(factor, Prior):
        factor = kind(extreme_message_of(kind.families["x"][family], rng, n))
    return factor, extreme_incoming_of(factor, family, rng, n)


@pytest.mark.parametrize("kind,family", cases())
def test_extreme_messages_raise_nothing_and_a_finite_belief_is_right(kind, family):
    n = 12 if kind.name in (*LONG, "product", "scaled_gaussian", "beta_mean") else N  # whose integrals take the longest
    factor, incoming = extreme(kind, family, n)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for to in targets(factor):
            assert factor.message(to, incoming).shape == (n,)
        assert factor.log_z(incoming).shape == (n,)
    rng = np.random.default_rng(0)
    for power in (1.0, 0.5) if kind.powers else (1.0,):
        # a hundredth: a belief that has lost its digits is off by orders of magnitude, or NaN
        gradient_law(factor, incoming, rng, power, tolerance=1e-2, judged=0.0, held=held)


@pytest.mark.parametrize("kind,family", [c for c in cases() if c.values[0] is not Prior])  # it looks at nothing
def test_a_row_of_nan_or_of_extremes_changes_no_other_row(kind, family):
    n = 12
    factor, incoming = extreme(kind, family, n)
    bad = np.arange(n) % 3 == 0
    mixed = {p: m.without(bad) if isinstance(m, Family) else m for p, m in incoming.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for to in targets(factor):
            before, after = factor.message(to, rows_of(incoming, ~bad)), factor.message(to, mixed)
            assert not finite_rows(after)[bad].any(), f"{kind.name} to {to}: an answer to a question that is NaN"
            for a, b in zip(before.naturals, after[~bad].naturals, strict=True):
                scale = np.abs(np.where(np.isfinite(a), a, 0.0)) + 1e-300
                np.testing.assert_array_equal(np.isnan(a), np.isnan(b))
                own = incoming[to].naturals[0]
                assert a.shape[0] == own[~bad].shape[0]
                both = np.isfinite(a) & np.isfinite(b)
                # weaker than the cavity by its rounding, a message is rounding too
                cavity = np.max(
                    [np.abs(x[~bad]).reshape(len(a), -1).max(axis=1) for x in incoming[to].naturals], axis=0
                )
                scale = scale + cavity.reshape((-1,) + (1,) * (a.ndim - 1))
                if isinstance(before, Gaussian) and a is before.naturals[0]:
                    # a mean is rounded in units of the deviation
                    scale = scale + np.sqrt(np.abs(np.nan_to_num(before.naturals[1], posinf=0.0, neginf=0.0)))
                assert (np.abs(np.where(both, a - b, 0.0)) <= 1e-8 * scale).all(), f"{kind.name} to {to}"
        assert np.isnan(factor.log_z(mixed)[bad]).all()


def test_a_product_is_the_same_at_every_scale():
    for k in (-140, -80, 80, 100, 140):
        s = 10.0**k
        plain = {
            "a": Gaussian(np.array([2.0]), 1.0),
            "b": Gaussian(np.array([3.0]), 1.0),
            "out": Gaussian(np.array([5.0]), 1.0),
        }
        large = {
            "a": Gaussian(np.array([2.0 * s]), s * s),
            "b": plain["b"],
            "out": Gaussian(np.array([5.0 * s]), s * s),
        }
        for to, unit in (("a", s), ("b", 1.0), ("out", s)):
            one, other = Product().belief(to, plain), Product().belief(to, large)
            np.testing.assert_allclose(other.mean / unit, one.mean, rtol=1e-12)
            np.testing.assert_allclose(other.variance / unit / unit, one.variance, rtol=1e-12)
        np.testing.assert_allclose(Product().log_z(large) + k * np.log(10.0), Product().log_z(plain), rtol=1e-12)


def test_one_outlier_costs_one_row_of_a_gaussian_with_unknown_precision():
    for y in (5.5e6, 1e9, 1e200):
        incoming = {
            "mean": Gaussian(np.zeros(3), 1e-3),
            "precision": Gamma(np.full(3, 300.0), 300.0),
            "x": Gaussian.point_mass(np.array([0.3, y, -0.3])),
        }
        calm = rows_of(incoming, [0, 2])
        for to in ("mean", "precision"):
            sent = GaussianPrecision().message(to, incoming)
            for a, b in zip(sent[[0, 2]].naturals, GaussianPrecision().message(to, calm).naturals, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-12)
    # x - mean is y all but exactly: tau has Gamma(300 + 1/2, 300 + y^2 / 2), to the share 1e-3 / y^2 of mean's variance
    sent = GaussianPrecision().message(
        "precision", {**incoming, "x": Gaussian.point_mass(np.array([0.3, 5.5e6, -0.3]))}
    )
    np.testing.assert_allclose(sent.naturals[0][1], 0.5, rtol=1e-6)
    np.testing.assert_allclose(sent.naturals[1][1], 0.5 * 5.5e6**2, rtol=1e-6)


def test_a_constraint_deep_in_the_tail_has_the_exact_log_probability():
    # log P(x > c) = -c^2 / 2 - log(c sqrt(2 pi)) - 1 / c^2 + 5 / (2 c^4) - ... for x of N(0, 1)
    for c in (1e2, 1e4, 1e8, 1e10, 1e100):
        incoming = {"x": Gaussian(np.array([-c]), 1.0), "y": Bernoulli(np.array([1.0]))}
        exact = -0.5 * c * c - np.log(c * np.sqrt(2 * np.pi)) - 1.0 / c**2 + 2.5 / c**2 / c**2
        np.testing.assert_allclose(Positive().log_z(incoming), exact, rtol=1e-12)
        belief = Positive().belief("x", incoming)
        np.testing.assert_allclose(belief.mean, 1.0 / c, rtol=3.0 / c**2 + 1e-9)
        np.testing.assert_allclose(belief.variance, 1.0 / c**2, rtol=7.0 / c**2 + 1e-9)


def test_a_cavity_without_end_leaves_a_probability_to_its_beta_message():
    # z is all but uniform, so exp(a z) (1 + exp(z))^-(a + b), a density of a Beta(a, b) variable's logit, decides
    p = Beta(np.array([1.22, 12.0, 3.0]), np.array([14175104.9624, 2e7, 3.0]))
    belief = Logistic().belief("p", {"z": Gaussian(np.full(3, -2.8195e25), 2.0113e45), "p": p})
    np.testing.assert_allclose(belief.a, p.a - 1.0, rtol=1e-6)
    np.testing.assert_allclose(belief.b, p.b - 1.0, rtol=1e-6)


def test_a_table_whose_likely_categories_underflow_is_summed_in_logarithms():
    from heliograph.factors import ConditionalTable

    table = np.array([[[0.0, 1.0], [0.5, 0.5]]])
    incoming = {
        "parent": Categorical.from_log_p(np.array([[0.0, -2000.0]])),
        "table": table,
        "child": Categorical.from_log_p(np.array([[0.0, -3000.0]])),
    }
    # child 0 only comes from parent 1: exp(-2000) / 2, against exp(-3000) for child 1
    np.testing.assert_allclose(ConditionalTable().log_z(incoming), -2000.0 + np.log(0.5), rtol=1e-12)
    impossible = {**incoming, "table": np.array([[[0.0, 1.0], [0.0, 1.0]]]), "child": Categorical.point_mass([0.0], 2)}
    with pytest.raises(ContradictionError, match="conditional_table"):
        ConditionalTable().message("parent", impossible)
