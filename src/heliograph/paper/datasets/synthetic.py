"""Problems drawn from the paper's own models: binary logistic regression and the compound gamma."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit

__all__ = ["CompoundGammaProblem", "LogisticProblem", "compound_gamma_problem", "logistic_regression_problem"]


class LogisticProblem(NamedTuple):
    """Data of one binary logistic regression without intercept, and what they were drawn from."""

    X: np.ndarray  # (n, d)
    y: np.ndarray  # (n,) of 0. and 1.
    w: np.ndarray  # (d,)
    X_test: np.ndarray  # (n_test, d)
    y_test: np.ndarray  # (n_test,)
    p_test: np.ndarray  # (n_test,) probability that the label is 1

    @property
    def bayes_label(self) -> np.ndarray:
        """The more probable label of each test row, with which the authors' program compared."""
        return (self.p_test > 0.5).astype(float)


def logistic_regression_problem(
    rng: np.random.Generator, d: int = 20, n: int = 300, n_test: int = 10_000, w: np.ndarray | None = None
) -> LogisticProblem:
    """``x ~ N(0, I)``, ``w ~ N(0, I)``, ``y ~ Bernoulli(sigmoid(x'w))``, as in the paper's experiments 1 and 3.

    The training rows do not depend on `n_test`. With `w`, the weights are those and only the data are drawn.

    >>> problem = logistic_regression_problem(np.random.default_rng(0), d=3, n=5, n_test=2)
    >>> problem.X.shape, problem.y.shape, problem.p_test.shape
    ((5, 3), (5,), (2,))
    """
    w = rng.standard_normal(d) if w is None else np.asarray(w, dtype=float)
    X = rng.standard_normal((n, d))
    y = (rng.random(n) < expit(X @ w)).astype(float)
    X_test = rng.standard_normal((n_test, d))
    p_test = expit(X_test @ w)
    return LogisticProblem(X, y, w, X_test, (rng.random(n_test) < p_test).astype(float), p_test)


class CompoundGammaProblem(NamedTuple):
    """Draws of a Gaussian of mean 0 whose precision is to be inferred."""

    x: np.ndarray  # (n,)
    tau: float  # the precision

    @property
    def shape(self) -> float:
        """Shape of the Gamma message that the data send to the precision, ``n/2 + 1``."""
        return 0.5 * len(self.x) + 1.0

    @property
    def rate(self) -> float:
        """Rate of that message, half the sum of squares."""
        return 0.5 * float(self.x @ self.x)


def compound_gamma_problem(
    rng: np.random.Generator, s1: float = 1.0, r1: float = 1.0, s2: float = 1.0, n: tuple[int, int] = (10, 100)
) -> CompoundGammaProblem:
    """``r2 ~ Gamma(s1, r1)``, ``tau ~ Gamma(s2, r2)``, and a number in `n` (both ends included) of ``x ~ N(0, 1/tau)``.

    The paper's experiment 4; Gammas in shape and rate.

    >>> problem = compound_gamma_problem(np.random.default_rng(0))
    >>> problem.shape == len(problem.x) / 2 + 1
    True
    """
    r2 = rng.gamma(s1) / r1
    tau = rng.gamma(s2) / r2
    count = rng.integers(n[0], n[1], endpoint=True)
    return CompoundGammaProblem(rng.standard_normal(count) / np.sqrt(tau), float(tau))
