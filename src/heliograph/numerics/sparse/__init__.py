"""Gaussians over many variables with a sparse precision: planned once, factorised once per sweep.

Expressions ``z = A x + constant`` of the variables are `Rows`. A Gaussian factor (a prior, a conditional, data with known
variance) is a row with a fixed weight, its precision; any other factor attaches a site ``exp(nu z - tau z^2 / 2)`` to a row.
The precision of x is then ``prior + A' diag(tau) A`` and its information vector ``prior + A' (nu - tau constant)``.

| once per model | |
|---|---|
| `make_rows`, `concatenate` | expressions from entries; design matrices stay dense (`Dense`) |
| `analyse` -> `Plan` | order of elimination, core, fill, flops, bytes; no number is touched |
| `place` -> `Placed` | where the rows' weights go, and where their variances come from |

| once per sweep | |
|---|---|
| `gram` | values of ``A' diag(tau) A``; they add up |
| `information` | ``A' (nu - tau constant)`` |
| `factorise` -> `Factor` | Cholesky factor and log determinant, or `NotPositiveDefiniteError` |
| `solve`, `apply` | the mean of x, and of expressions |
| `invert` -> `Inverse`, `variances` | variances of all placed rows, joint covariances of sites with several rows |

| when asked | |
|---|---|
| `sample`, `covariance` | joint draws; covariances of any few expressions |
| `bare_of`, `with_probes`, `estimate` | means and variances by conjugate gradients where `Plan.affordable` is false |
| `prepare_passing`, `pass_messages` | the same by messages between pairs, where expressions are of two variables |
| `solve_iteratively`, `information_noise` | single solves, and draws, there |

EP with these pieces. Three skills have N(0, 1) priors; 0 beat 1 and 1 beat 2, each with probability Phi(difference):

>>> import numpy as np
>>> from scipy.special import log_ndtr
>>> from heliograph.numerics import sparse
>>> prior = sparse.make_rows(3, row=[0, 1, 2], variable=[0, 1, 2])
>>> games = sparse.make_rows(3, row=[0, 0, 1, 1], variable=[0, 1, 1, 2], coefficient=[1.0, -1.0, 1.0, -1.0])
>>> plan = sparse.analyse([prior, games])
>>> sites = sparse.place(plan, games)
>>> fixed = sparse.gram(sparse.place(plan, prior, queried=False), np.ones(3))
>>> tau, nu = np.zeros(2), np.zeros(2)
>>> for sweep in range(20):
...     factor = sparse.factorise(plan, fixed + sparse.gram(sites, tau))
...     mean = sparse.solve(factor, sparse.information(games, tau, nu))
...     m, v = sparse.apply(games, mean), sparse.variances(sparse.invert(factor), sites)
...     cavity_tau = 1 / v - tau  # the cavity of a row is its marginal divided by its site
...     cavity_m, cavity_v = (m / v - nu) / cavity_tau, 1 / cavity_tau
...     u, noise = cavity_m / np.sqrt(1 + cavity_v), 1 + cavity_v
...     slope = np.exp(-0.5 * u**2 - log_ndtr(u)) / np.sqrt(2 * np.pi * noise)  # d log Z / d cavity mean
...     bend = slope * (slope + cavity_m / noise)  # minus the second derivative
...     tau, nu = bend / (1 - bend * cavity_v), (slope + bend * cavity_m) / (1 - bend * cavity_v)
>>> abs(mean).round(3)  # by symmetry the middle one stays at 0
array([0.588, 0.   , 0.588])

Two numbers of one factor are a site of `width` 2: tau is then (sites, 2, 2), `variances` gives (sites, 2, 2), and the cavity's
precision is the inverse of that minus tau. A row without entries is a constant: its variance is 0, and it needs no site.
"""

from heliograph.numerics.sparse.bare import Bare, bare_of
from heliograph.numerics.sparse.batched import NotPositiveDefiniteError
from heliograph.numerics.sparse.factor import Factor, covariance, factorise, sample, solve
from heliograph.numerics.sparse.gradients import information_noise, solve_iteratively
from heliograph.numerics.sparse.inverse import Inverse, invert, variances
from heliograph.numerics.sparse.passing import Passed, Passing, pass_messages, passed_variances, prepare_passing
from heliograph.numerics.sparse.placing import Placed, gram, place
from heliograph.numerics.sparse.plan import Budget, Plan, TooExpensiveError, analyse
from heliograph.numerics.sparse.probes import Estimate, Prober, estimate, with_probes
from heliograph.numerics.sparse.rows import (
    Dense,
    Rows,
    apply,
    apply_transposed,
    concatenate,
    entries,
    information,
    make_rows,
)

__all__ = [
    "Bare",
    "Budget",
    "Dense",
    "Estimate",
    "Factor",
    "Inverse",
    "NotPositiveDefiniteError",
    "Passed",
    "Passing",
    "Placed",
    "Plan",
    "Prober",
    "Rows",
    "TooExpensiveError",
    "analyse",
    "apply",
    "apply_transposed",
    "bare_of",
    "concatenate",
    "covariance",
    "entries",
    "estimate",
    "factorise",
    "gram",
    "information",
    "information_noise",
    "invert",
    "make_rows",
    "pass_messages",
    "passed_variances",
    "place",
    "prepare_passing",
    "sample",
    "solve",
    "solve_iteratively",
    "variances",
    "with_probes",
]
