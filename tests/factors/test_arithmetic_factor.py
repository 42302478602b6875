"""Sums, differences and fixed affine maps against the dense joint Gaussian and against integrals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import multivariate_normal, norm

from heliograph.factors import Difference, Scale, Shift, Sum
from heliograph.families import Gaussian, MultivariateGaussian

SIGNS = [(Sum(), 1.0), (Difference(), -1.0)]


def test_a_sum_adds_means_and_variances():
    m = Sum().message("out", {"a": Gaussian(1.0, 2.0), "b": Gaussian(3.0, 4.0), "out": Gaussian.uniform()})
    assert (m.mean, m.variance) == (4.0, 6.0)


@pytest.mark.parametrize("factor,sign", SIGNS)
@pytest.mark.parametrize("to", ["a", "b", "out"])
def test_beliefs_equal_those_of_the_dense_joint(factor, sign, to):
    rng = np.random.default_rng(0)
    means, variances = rng.standard_normal(3), rng.uniform(0.1, 3.0, 3)
    incoming = {p: Gaussian(m, v) for p, m, v in zip(("a", "b", "out"), means, variances, strict=True)}
    # condition (a, b) on out = a + sign b + noise: one row of a linear-Gaussian model
    row = np.array([1.0, sign])
    precision = np.diag(1 / variances[:2]) + np.outer(row, row) / variances[2]
    covariance = np.linalg.inv(precision)
    mean = covariance @ (means[:2] / variances[:2] + row * means[2] / variances[2])
    select = {"a": np.array([1.0, 0.0]), "b": np.array([0.0, 1.0]), "out": row}[to]
    belief = factor.belief(to, incoming)
    np.testing.assert_allclose(belief.mean, select @ mean, rtol=1e-13)
    np.testing.assert_allclose(belief.variance, select @ covariance @ select, rtol=1e-13)
    total = variances.sum()
    expected = norm.logpdf(means[2], means[0] + sign * means[1], np.sqrt(total))
    np.testing.assert_allclose(factor.log_z(incoming), expected, rtol=1e-13)


@pytest.mark.parametrize("factor,sign", SIGNS)
def test_a_point_mass_is_the_limit_of_narrow_messages(factor, sign):
    for to in ("a", "b", "out"):
        for fixed in {"a", "b", "out"} - {to}:
            incoming = {"a": Gaussian(1.0, 2.0), "b": Gaussian(-2.0, 0.5), "out": Gaussian(0.3, 1.0)}
            near = {**incoming, fixed: Gaussian(0.7, 1e-14)}
            at = {**incoming, fixed: Gaussian.point_mass(0.7)}
            for x, y in zip(factor.message(to, near).naturals, factor.message(to, at).naturals, strict=True):
                np.testing.assert_allclose(x, y, rtol=1e-12)
            np.testing.assert_allclose(factor.log_z(near), factor.log_z(at), rtol=1e-12)


def test_two_point_masses_make_a_third():
    incoming = {"a": Gaussian.point_mass(3.0), "b": Gaussian.point_mass(1.5), "out": Gaussian.uniform()}
    assert Sum().message("out", incoming).point == 4.5
    assert Difference().message("b", {**incoming, "out": Gaussian.point_mass(1.0)}).point == 2.0


def test_a_uniform_end_says_nothing_and_two_leave_no_integral():
    u, g = Gaussian.uniform(), Gaussian(1.0, 2.0)
    assert Sum().message("a", {"a": g, "b": g, "out": u}).is_uniform
    assert Sum().log_z({"a": g, "b": g, "out": u}) == 0.0
    assert Sum().log_z({"a": u, "b": g, "out": g}) == 0.0
    assert Sum().log_z({"a": u, "b": u, "out": g}) == np.inf


@pytest.mark.parametrize("factor,sign", SIGNS)
@pytest.mark.parametrize("improper", ["a", "b", "out"])
def test_an_improper_message_is_integrated_as_the_exponential_that_it_is(factor, sign, improper):
    shift, precision = 0.3, -0.2
    incoming = {"a": Gaussian(0.2, 0.5), "b": Gaussian(-0.4, 0.8), "out": Gaussian(0.6, 0.7)}
    incoming[improper] = Gaussian.from_naturals((np.array(shift), np.array(precision)))

    def density(port, x):
        if port == improper:
            return np.exp(shift * x - precision * x**2 / 2)
        return np.exp(incoming[port].log_density(x))

    # the trapezoid rule converges geometrically for Gaussians: 0.05 is a fifteenth of the narrowest deviation
    a, b = np.meshgrid(np.arange(-25, 25, 0.05), np.arange(-25, 25, 0.05), indexing="ij")
    weight = density("a", a) * density("b", b) * density("out", a + sign * b)
    np.testing.assert_allclose(factor.log_z(incoming), np.log(weight.sum() * 0.05**2), rtol=1e-11)
    np.testing.assert_allclose(factor.belief("a", incoming).mean, (a * weight).sum() / weight.sum(), rtol=1e-11)


def test_an_improper_message_that_nothing_tames_gives_a_uniform_one():
    wild = Gaussian.from_naturals((np.array(0.0), np.array(-2.0)))
    incoming = {"a": wild, "b": Gaussian(0.0, 1.0), "out": Gaussian(0.0, 1.0)}
    assert Sum().message("out", incoming).is_uniform
    assert Sum().log_z(incoming) == np.inf


@pytest.mark.parametrize("c", [2.0, -0.3])
def test_scaling_matches_an_integral(c):
    incoming = {"x": Gaussian(0.7, 0.5), "constant": c, "out": Gaussian(1.0, 2.0)}
    weight = lambda x: norm.pdf(x, 0.7, np.sqrt(0.5)) * norm.pdf(c * x, 1.0, np.sqrt(2.0))  # noqa: E731
    z, first = quad(weight, -9, 9)[0], quad(lambda x: x * weight(x), -9, 9)[0]
    np.testing.assert_allclose(Scale().log_z(incoming), np.log(z), rtol=1e-10)
    np.testing.assert_allclose(Scale().belief("x", incoming).mean, first / z, rtol=1e-10)
    np.testing.assert_allclose(Scale().belief("out", incoming).mean, c * first / z, rtol=1e-10)


def test_scaling_by_zero_is_the_point_zero_and_says_nothing_back():
    incoming = {"x": Gaussian(0.7, 0.5), "constant": 0.0, "out": Gaussian(1.0, 2.0)}
    assert Scale().message("out", incoming).point == 0.0
    assert Scale().message("x", incoming).is_uniform
    np.testing.assert_allclose(Scale().log_z(incoming), norm.logpdf(0.0, 1.0, np.sqrt(2.0)), rtol=1e-14)


def test_a_scaled_improper_message_keeps_its_change_of_variable():
    c, s, t = 3.0, 0.2, -0.1
    incoming = {"x": Gaussian.from_naturals((np.array(s), np.array(t))), "constant": c, "out": Gaussian(1.0, 0.5)}
    z = quad(lambda x: np.exp(s * x - t * x**2 / 2) * norm.pdf(c * x, 1.0, np.sqrt(0.5)), -9, 9)[0]
    np.testing.assert_allclose(Scale().log_z(incoming), np.log(z), rtol=1e-10)


def test_shifting_moves_the_message_both_ways():
    incoming = {"x": Gaussian(0.7, 0.5), "constant": 2.0, "out": Gaussian(1.0, 2.0)}
    np.testing.assert_allclose(Shift().message("out", incoming).mean, 2.7)
    np.testing.assert_allclose(Shift().message("x", incoming).mean, -1.0)
    np.testing.assert_allclose(Shift().log_z(incoming), norm.logpdf(2.7, 1.0, np.sqrt(2.5)), rtol=1e-14)


# ---- vectors -----------------------------------------------------------------------------------------------------
def _vectors(rng, n=3):
    out = []
    for _ in range(n):
        root = rng.standard_normal((2, 2))
        out.append((rng.standard_normal(2), root @ root.T + 0.3 * np.eye(2)))
    return out


@pytest.mark.parametrize("factor,sign", SIGNS)
def test_vector_sums_equal_the_dense_joint(factor, sign):
    (ma, va), (mb, vb), (mo, vo) = _vectors(np.random.default_rng(1))
    incoming = {p: MultivariateGaussian(m, v) for p, m, v in (("a", ma, va), ("b", mb, vb), ("out", mo, vo))}
    forward = factor.message("out", incoming)
    np.testing.assert_allclose(forward.mean, ma + sign * mb, rtol=1e-12)
    np.testing.assert_allclose(forward.covariance, va + vb, rtol=1e-12)
    back = factor.message("b", incoming)
    np.testing.assert_allclose(back.mean, sign * (mo - ma), rtol=1e-12)
    np.testing.assert_allclose(back.covariance, va + vo, rtol=1e-12)
    expected = multivariate_normal.logpdf(mo, ma + sign * mb, va + vb + vo)
    np.testing.assert_allclose(factor.log_z(incoming), expected, rtol=1e-12)


def test_a_direction_nobody_knows_stays_unknown():
    flat = MultivariateGaussian.from_naturals((np.array([1.0, 0.0]), np.diag([2.0, 0.0])))
    incoming = {"a": flat, "b": flat, "out": MultivariateGaussian.uniform((), 2)}
    sent = Sum().message("out", incoming)
    np.testing.assert_allclose(sent.naturals[1], np.diag([1.0, 0.0]), atol=1e-15)


def test_vectors_are_scaled_and_shifted():
    (m, v), (mo, vo), _ = _vectors(np.random.default_rng(2))
    incoming = {"x": MultivariateGaussian(m, v), "constant": -2.0, "out": MultivariateGaussian(mo, vo)}
    np.testing.assert_allclose(Scale().message("out", incoming).covariance, 4 * v, rtol=1e-12)
    np.testing.assert_allclose(Scale().message("x", incoming).mean, mo / -2.0, rtol=1e-12)
    expected = multivariate_normal.logpdf(mo, -2.0 * m, 4 * v + vo)
    np.testing.assert_allclose(Scale().log_z(incoming), expected, rtol=1e-12)
    moved = {**incoming, "constant": np.array([1.0, -1.0])}
    np.testing.assert_allclose(Shift().message("out", moved).mean, m + moved["constant"], rtol=1e-12)
    np.testing.assert_allclose(
        Shift().log_z(moved), multivariate_normal.logpdf(mo, m + moved["constant"], v + vo), rtol=1e-12
    )


@pytest.mark.parametrize("factor,sign", SIGNS)
@pytest.mark.parametrize("improper", [("a",), ("b",), ("out",), ("a", "b")])
def test_improper_vectors_without_correlation_are_their_scalars(factor, sign, improper):
    rng = np.random.default_rng(3)
    means, precisions = rng.standard_normal((3, 2)), rng.uniform(0.5, 2.0, (3, 2))
    for k, port in enumerate(("a", "b", "out")):
        if port in improper:
            precisions[k, improper.index(port)] = -0.1  # two improper messages, but in different directions
    scalars, vectors = [], {}
    for k, port in enumerate(("a", "b", "out")):
        vectors[port] = MultivariateGaussian.from_naturals((means[k] * precisions[k], np.diag(precisions[k])))
    for i in range(2):
        scalars.append(
            {
                p: Gaussian.from_naturals((means[k, i] * precisions[k, i], precisions[k, i]))
                for k, p in enumerate(vectors)
            }
        )
    # a vector that is improper in one coordinate is not normalised in the other either
    extra = sum(float(scalars[i][p].log_normaliser()) for p in improper for i in range(2) if i != improper.index(p))
    expected = sum(float(factor.log_z(s)) for s in scalars) + extra
    np.testing.assert_allclose(factor.log_z(vectors), expected, rtol=1e-11)


def test_vectors_that_nothing_tames_have_infinite_evidence():
    wild = MultivariateGaussian.from_naturals((np.zeros(2), -np.eye(2)))
    tame, flat = MultivariateGaussian(np.zeros(2), 2 * np.eye(2)), MultivariateGaussian.uniform((), 2)
    assert Sum().log_z({"a": wild, "b": tame, "out": tame}) == np.inf
    assert Sum().log_z({"a": flat, "b": flat, "out": tame}) == np.inf
    np.testing.assert_allclose(Sum().log_z({"a": flat, "b": tame, "out": tame}), 0.0, atol=1e-12)


@pytest.mark.parametrize("factor", [Sum(), Difference()])
@pytest.mark.parametrize("to", ["a", "b", "out"])
def test_rows_of_a_proper_plate_get_the_messages_that_they_get_beside_a_uniform_one(factor, to):
    rng = np.random.default_rng(0)
    rows = {p: Gaussian(rng.normal(size=5), rng.uniform(0.1, 9.0, 5)) for p in ("a", "b", "out")}
    beside = {p: Gaussian.join([m, Gaussian.uniform((1,))]) for p, m in rows.items()}
    alone, among = factor.message(to, rows), factor.message(to, beside)[:5]
    assert alone.mean == pytest.approx(among.mean, rel=1e-12, abs=1e-14)
    assert alone.variance == pytest.approx(among.variance, rel=1e-14)
