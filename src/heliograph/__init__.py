"""Expectation propagation for Python, with messages learned just in time.

This is everything that a user needs: `Model` to write a model, `factor` to make a factor from a function, `infer`
and `steps` to run it, `Posterior` for the result, and the families of messages. docs/guide is the user's guide,
docs/reference.md lists every name here, and docs/architecture.md shows the packages behind them.
"""

from importlib import metadata as _metadata

from heliograph import errors
from heliograph.engine import (
    Comparison,
    GatedPosterior,
    IntegratedPosterior,
    Model,
    Part,
    Posterior,
    SavedPosterior,
    Step,
    StopRule,
    SweepInfo,
    Trace,
    after,
    after_seconds,
    changed_less_than,
    compare,
    infer,
    load_posterior,
    steps,
)
from heliograph.errors import (
    AccuracyWarning,
    ContradictionError,
    ConvergenceWarning,
    HeliographError,
    ModelError,
    OracleWarning,
    UnsupportedError,
)
from heliograph.factors import supported
from heliograph.factors.black_box import BlackBox, factor, load_factor
from heliograph.families import (
    Bernoulli,
    Beta,
    Categorical,
    Dirichlet,
    Family,
    Gamma,
    Gaussian,
    Mixture,
    MultivariateGaussian,
)
from heliograph.graph import Symbol, Variable
from heliograph.graph.joining import concatenate, stack

try:
    __version__ = _metadata.version("heliograph")
except _metadata.PackageNotFoundError:  # run from a source tree that was never installed
    __version__ = "0+unknown"

__all__ = [
    "AccuracyWarning",
    "Bernoulli",
    "Beta",
    "BlackBox",
    "Categorical",
    "Comparison",
    "ContradictionError",
    "ConvergenceWarning",
    "Dirichlet",
    "Family",
    "Gamma",
    "GatedPosterior",
    "Gaussian",
    "HeliographError",
    "IntegratedPosterior",
    "Mixture",
    "Model",
    "ModelError",
    "MultivariateGaussian",
    "OracleWarning",
    "Part",
    "Posterior",
    "SavedPosterior",
    "Step",
    "StopRule",
    "SweepInfo",
    "Symbol",
    "Trace",
    "UnsupportedError",
    "Variable",
    "after",
    "after_seconds",
    "changed_less_than",
    "compare",
    "concatenate",
    "errors",
    "factor",
    "infer",
    "load_factor",
    "load_posterior",
    "stack",
    "steps",
    "supported",
]
