"""Gaussian noise of fixed variance, of unknown precision, and of vectors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import gamma, multivariate_normal, norm
from scipy.stats import t as student

from heliograph.factors import GaussianFactor, GaussianPrecision, MultivariateGaussianFactor
from heliograph.families import Gamma, Gaussian, MultivariateGaussian


def test_noise_adds_its_variance_in_both_directions():
    incoming = {"mean": Gaussian(1.0, 2.0), "variance": 0.5, "x": Gaussian(3.0, 1.5)}
    f = GaussianFactor()
    for to, m, v in (("x", 1.0, 2.5), ("mean", 3.0, 2.0)):
        sent = f.message(to, incoming)
        np.testing.assert_allclose([sent.mean, sent.variance], [m, v], rtol=1e-14)
    np.testing.assert_allclose(f.log_z(incoming), norm.logpdf(3.0, 1.0, 2.0), rtol=1e-14)


def test_a_fixed_mean_is_a_prior():
    sent = GaussianFactor().message("x", {"mean": np.array([0.0, 1.0]), "variance": 2.0, "x": Gaussian.uniform(2)})
    np.testing.assert_allclose(sent.mean, [0.0, 1.0])
    np.testing.assert_allclose(sent.variance, 2.0)


def test_no_noise_is_equality():
    incoming = {"mean": Gaussian(1.0, 2.0), "variance": 0.0, "x": Gaussian.point_mass(0.7)}
    assert GaussianFactor().message("mean", incoming).point == 0.7
    np.testing.assert_allclose(GaussianFactor().log_z(incoming), norm.logpdf(0.7, 1.0, np.sqrt(2)), rtol=1e-14)


@pytest.mark.parametrize("power", [0.5, 0.25, 1.5])
def test_a_power_of_the_noise_matches_an_integral(power):
    incoming = {"mean": Gaussian(0.3, 0.8), "variance": 0.6, "x": Gaussian(-0.5, 0.4)}
    x, m = np.meshgrid(np.arange(-9, 9, 0.05), np.arange(-9, 9, 0.05))
    weight = norm.pdf(m, 0.3, np.sqrt(0.8)) * norm.pdf(x, -0.5, np.sqrt(0.4)) * norm.pdf(x, m, np.sqrt(0.6)) ** power
    # the trapezoid rule converges geometrically for Gaussians
    np.testing.assert_allclose(GaussianFactor().log_z(incoming, power), np.log(weight.sum() * 0.05**2), rtol=1e-12)
    belief = GaussianFactor().belief("mean", incoming, power)
    np.testing.assert_allclose(belief.mean, (m * weight).sum() / weight.sum(), rtol=1e-12)


# ---- unknown precision -------------------------------------------------------------------------------------------
def by_integration(x: Gaussian, mean: Gaussian, tau: Gamma, power: float = 1.0) -> dict[str, float]:
    """The tilted moments by the trapezoid rule in log tau, which converges geometrically."""
    d, s = x.mean - mean.mean, x.variance + mean.variance
    u, step = np.linspace(-60.0, 15.0, 30001, retstep=True)
    t = np.exp(u)
    log_w = gamma.logpdf(t, tau.shape_parameter, scale=1 / tau.rate) + u
    log_w += 0.5 * power * np.log(t / (2 * np.pi)) - 0.5 * np.log(power * t / (2 * np.pi))
    log_w += norm.logpdf(d, 0, np.sqrt(s + 1 / (power * t)))
    weight = np.exp(log_w - log_w.max())
    log_z = log_w.max() + np.log(weight.sum() * step)
    weight /= weight.sum()
    gain = x.variance / (s + 1 / (power * t))
    x_mean = weight @ (x.mean - gain * d)
    return {
        "log_z": log_z,
        "x_mean": x_mean,
        "x_variance": weight @ ((x.mean - gain * d - x_mean) ** 2 + x.variance * (1 - gain)),
        "tau_mean": weight @ t,
        "tau_mean_log": weight @ u,
    }


@pytest.mark.parametrize("power", [1.0, 0.5])
@pytest.mark.parametrize(
    "x,mean,tau",
    [
        (Gaussian(1.0, 2.0), Gaussian(0.0, 0.5), Gamma(3.0, 2.0)),
        (Gaussian(1.0, 0.01), Gaussian(-4.0, 0.02), Gamma(2.0, 5.0)),
        (Gaussian(12.0, 1.0), Gaussian(0.0, 1.0), Gamma(40.0, 10.0)),
        (Gaussian(0.0, 100.0), Gaussian(0.0, 1.0), Gamma(0.7, 0.2)),
    ],
)
def test_unknown_precision_matches_quadrature(x, mean, tau, power):
    expected = by_integration(x, mean, tau, power)
    incoming = {"x": x, "mean": mean, "precision": tau}
    f = GaussianPrecision()
    np.testing.assert_allclose(f.log_z(incoming, power), expected["log_z"], rtol=1e-11, atol=1e-12)
    belief = f.belief("x", incoming, power)
    np.testing.assert_allclose(belief.mean, expected["x_mean"], rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(belief.variance, expected["x_variance"], rtol=1e-10)
    statistics = f.belief("precision", incoming, power).expected_statistics()
    np.testing.assert_allclose(statistics[0], expected["tau_mean"], rtol=1e-11)
    np.testing.assert_allclose(statistics[1], expected["tau_mean_log"], rtol=1e-10, atol=1e-11)


def test_known_x_and_mean_give_the_conjugate_message_whatever_the_precision():
    f = GaussianPrecision()
    for tau in (Gamma(2.0, 3.0), Gamma.uniform(), Gamma(1e6, 1e-3)):
        sent = f.message("precision", {"x": np.array(5.0), "mean": np.array(2.0), "precision": tau})
        assert (sent.shape_parameter, sent.rate) == (1.5, 4.5)
    z = f.log_z({"x": np.array(5.0), "mean": np.array(2.0), "precision": Gamma(2.0, 3.0)})
    np.testing.assert_allclose(z, student.logpdf(3.0, 4.0, scale=np.sqrt(1.5)), rtol=1e-13)


@pytest.mark.parametrize("shape", [1e4, 1e8, 1e12])
def test_evidence_keeps_its_digits_for_a_sharp_precision(shape):
    # Student's t of 2 shape degrees of freedom is Gaussian to about 1 / shape
    tau = Gamma(shape, shape / 4.0)
    for x in (Gaussian.point_mass(0.7), Gaussian(0.7, 0.3)):
        z = GaussianPrecision().log_z({"x": x, "mean": np.array(0.2), "precision": tau})
        expected = norm.logpdf(0.5, 0.0, np.sqrt(0.25 + x.variance))
        np.testing.assert_allclose(z, expected, atol=2 / shape + 1e-11)


def test_a_known_precision_is_the_factor_of_fixed_variance():
    given = {"x": Gaussian(1.0, 2.0), "mean": Gaussian(0.5, 0.3), "precision": Gamma.point_mass(4.0)}
    same = {"x": given["x"], "mean": given["mean"], "variance": 0.25}
    for to in ("x", "mean"):
        np.testing.assert_allclose(
            GaussianPrecision().message(to, given).naturals, GaussianFactor().message(to, same).naturals, rtol=1e-14
        )
    np.testing.assert_allclose(GaussianPrecision().log_z(given), GaussianFactor().log_z(same), rtol=1e-14)


def test_a_sharp_precision_tends_to_a_known_one():
    x, mean = Gaussian(1.0, 2.0), Gaussian(0.5, 0.3)
    near = GaussianPrecision().message("x", {"x": x, "mean": mean, "precision": Gamma(4e10, 1e10)})
    at = GaussianPrecision().message("x", {"x": x, "mean": mean, "precision": Gamma.point_mass(4.0)})
    np.testing.assert_allclose(near.naturals, at.naturals, rtol=1e-9)


def test_a_uniform_x_takes_the_mean_and_the_expected_variance():
    incoming = {"x": Gaussian.uniform(), "mean": Gaussian(0.5, 0.2), "precision": Gamma(2.5, 4.0)}
    sent = GaussianPrecision().message("x", incoming)
    np.testing.assert_allclose([sent.mean, sent.variance], [0.5, 0.2 + 4.0 / 1.5], rtol=1e-12)
    assert GaussianPrecision().message("precision", incoming).is_uniform
    assert GaussianPrecision().message("mean", incoming).is_uniform
    # no variance exists for a shape of 1 or less
    heavy = {**incoming, "precision": Gamma(1.0, 4.0)}
    assert GaussianPrecision().message("x", heavy).is_uniform


def test_a_message_much_weaker_than_its_cavity_keeps_its_digits():
    # the tail of Student's t: the message to a sharp x is what the score of the marginal says
    d, a, b, v = 30.0, 2.0, 3.0, 1e-18
    sent = GaussianPrecision().message("x", {"x": Gaussian(d, v), "mean": np.array(0.0), "precision": Gamma(a, b)})
    nu, scale2 = 2 * a, b / a
    score = -(nu + 1) * d / (nu * scale2 + d**2)
    bend = -(nu + 1) * (nu * scale2 - d**2) / (nu * scale2 + d**2) ** 2
    np.testing.assert_allclose(sent.precision, -bend, rtol=1e-9)
    np.testing.assert_allclose(sent.shift, score - bend * d, rtol=1e-9)


def test_fifty_deviations_of_conflict_are_finite_and_bimodal_ones_exact():
    x, mean, tau = Gaussian(50.0, 1.0), Gaussian(0.0, 1.0), Gamma(30.0, 3.0)
    expected = by_integration(x, mean, tau)
    belief = GaussianPrecision().belief("x", {"x": x, "mean": mean, "precision": tau})
    np.testing.assert_allclose(belief.mean, expected["x_mean"], rtol=1e-11)
    np.testing.assert_allclose(belief.variance, expected["x_variance"], rtol=1e-10)


def test_an_improper_end_gives_uniform_messages():
    wild = Gaussian.from_naturals((np.array(0.3), np.array(-0.2)))
    incoming = {"x": wild, "mean": Gaussian(0.0, 1.0), "precision": Gamma(2.0, 3.0)}
    for to in ("mean", "precision"):
        assert GaussianPrecision().message(to, incoming).is_uniform
    assert GaussianPrecision().log_z(incoming) == np.inf


# ---- vectors -----------------------------------------------------------------------------------------------------
def test_vector_noise_adds_its_covariance():
    rng = np.random.default_rng(3)
    roots = rng.standard_normal((3, 2, 2))
    v, w, c = (r @ r.T + 0.2 * np.eye(2) for r in roots)
    m, x = rng.standard_normal((2, 2))
    incoming = {"mean": MultivariateGaussian(m, v), "covariance": c, "x": MultivariateGaussian(x, w)}
    f = MultivariateGaussianFactor()
    np.testing.assert_allclose(f.message("x", incoming).covariance, v + c, rtol=1e-11)
    np.testing.assert_allclose(f.message("mean", incoming).mean, x, rtol=1e-11)
    np.testing.assert_allclose(f.log_z(incoming), multivariate_normal.logpdf(x, m, v + w + c), rtol=1e-12)
    prior = f.message("x", {**incoming, "mean": m})
    np.testing.assert_allclose(prior.covariance, c, rtol=1e-12)
    assert f.message("x", {**incoming, "mean": MultivariateGaussian.uniform((), 2)}).is_uniform
