"""Gaussians over many variables with a sparse precision."""

from heliograph.numerics.sparse.batched import NotPositiveDefiniteError
from heliograph.numerics.sparse.factor import Factor, covariance, factorise, sample, schur, solve
from heliograph.numerics.sparse.inverse import Inverse, invert, variances
from heliograph.numerics.sparse.placing import Placed, core_precision, gram, place
from heliograph.numerics.sparse.plan import Budget, Plan, TooExpensiveError, analyse
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
    "Budget",
    "Dense",
    "Factor",
    "Inverse",
    "NotPositiveDefiniteError",
    "Placed",
    "Plan",
    "Rows",
    "TooExpensiveError",
    "analyse",
    "apply",
    "apply_transposed",
    "concatenate",
    "core_precision",
    "covariance",
    "entries",
    "factorise",
    "gram",
    "information",
    "invert",
    "make_rows",
    "place",
    "sample",
    "schur",
    "solve",
    "variances",
]
