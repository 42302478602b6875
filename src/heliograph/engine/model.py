"""The model a user writes: the language of `graph`, with `infer`."""

from __future__ import annotations

from heliograph.engine.gated.posterior import GatedPosterior
from heliograph.engine.loop import run_to_the_end
from heliograph.engine.nested.posterior import IntegratedPosterior
from heliograph.engine.options import InferOptions, with_options
from heliograph.engine.posterior import Posterior
from heliograph.graph.builder import Builder

__all__ = ["Model"]


class Model(Builder):
    """A Bayesian model as a factor graph: write it with the builders, then call `infer`.

    Most builders take the `name` of the new variable, unique in the model, its `size` (a whole number or a tuple), and `observed`
    values, with NaN where one is missing. A builder that raises leaves the model as it was.

    Examples
    --------
    >>> model = Model()
    >>> mean = model.gaussian("mean", 0.0, variance=100.0)
    >>> x = model.gaussian("x", mean, variance=1.0, observed=[1.0, 2.0, 3.0])
    >>> posterior = model.infer()
    >>> posterior[mean]
    Gaussian(mean 1.9934, variance 0.3322)
    """

    @with_options(InferOptions)
    def infer(self, options: InferOptions) -> Posterior | IntegratedPosterior | GatedPosterior:
        """Run expectation propagation until the beliefs settle, and return the posterior."""
        return run_to_the_end(self, options)
