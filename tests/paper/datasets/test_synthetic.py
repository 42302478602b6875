"""Problems drawn from the paper's models have that model's distribution."""

from __future__ import annotations

import numpy as np
from scipy import stats
from scipy.special import expit

from heliograph.paper.datasets import compound_gamma_problem, logistic_regression_problem


def test_labels_follow_the_probabilities():
    problem = logistic_regression_problem(np.random.default_rng(0), d=4, n=20_000, n_test=20_000)
    for X, y in ((problem.X, problem.y), (problem.X_test, problem.y_test)):
        p = expit(X @ problem.w)
        z = (y - p).sum() / np.sqrt((p * (1 - p)).sum())
        slope = ((y - p) * (X @ problem.w)).sum() / np.sqrt((p * (1 - p) * (X @ problem.w) ** 2).sum())
        assert abs(z) < 4 and abs(slope) < 4  # standard normal if the labels are right
        assert stats.kstest(X.ravel(), "norm").pvalue > 1e-4
    np.testing.assert_allclose(problem.p_test, expit(problem.X_test @ problem.w), rtol=1e-12)
    np.testing.assert_array_equal(problem.bayes_label, problem.X_test @ problem.w > 0)


def test_weights_are_standard_normal():
    rng = np.random.default_rng(1)
    w = np.concatenate([logistic_regression_problem(rng, d=20, n=1, n_test=1).w for _ in range(200)])
    assert stats.kstest(w, "norm").pvalue > 1e-4


def test_training_rows_do_not_depend_on_the_number_of_test_rows():
    a, b = (logistic_regression_problem(np.random.default_rng(0), d=3, n=10, n_test=k) for k in (1, 50))
    np.testing.assert_array_equal(a.X, b.X)
    np.testing.assert_array_equal(a.y, b.y)


def test_the_precision_has_the_compound_gamma_density():
    rng = np.random.default_rng(0)
    tau = np.array([compound_gamma_problem(rng).tau for _ in range(2000)])
    # for (1, 1, 1) the density is (1 + tau)^-2, so the distribution function is tau / (1 + tau)
    assert stats.kstest(tau, lambda t: t / (1 + t)).pvalue > 1e-4
    other = np.array([compound_gamma_problem(rng, s1=3.0, r1=2.0, s2=1.5).tau for _ in range(2000)])
    assert stats.kstest(other / 2.0, stats.betaprime(1.5, 3.0).cdf).pvalue > 1e-4  # tau / r1 is beta prime


def test_observations_have_that_precision_and_a_number_within_the_bounds():
    rng = np.random.default_rng(0)
    problems = [compound_gamma_problem(rng) for _ in range(3000)]
    counts = np.array([len(p.x) for p in problems])
    assert counts.min() == 10 and counts.max() == 100
    assert stats.kstest(np.concatenate([p.x * np.sqrt(p.tau) for p in problems[:200]]), "norm").pvalue > 1e-4
    p = problems[0]
    assert p.shape == counts[0] / 2 + 1 and p.rate == 0.5 * np.dot(p.x, p.x)
