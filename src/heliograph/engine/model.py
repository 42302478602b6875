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
    """A Bayesian model as a factor graph: write it down with the builders, then `infer`.

    >>> model = Model()
    >>> mean = model.gaussian("mean", 0.0, variance=100.0)
    >>> x = model.gaussian("x", mean, variance=1.0, observed=[1.0, 2.0, 3.0])
    >>> posterior = model.infer()
    >>> posterior[mean]
    Gaussian(mean 1.9934, variance 0.3322)
    """

    @with_options(InferOptions)
    def infer(self, options: InferOptions) -> Posterior | IntegratedPosterior | GatedPosterior:
        """Run expectation propagation until the beliefs settle.

        Parameters
        ----------
        operator, oracle
            How black-box factors get their messages: "learned", "kjit", "forest", "neural", "ask", or an object; and
            what answers for them.
        schedule
            "parallel" (a whole plate at once) or "sequential" (element by element, forwards and backwards in turn); both have
            the same fixed points.
        damping
            The share of the old message that is kept; None adapts it.
        power
            The power of power EP.
        improper
            The policy for messages that are not distributions: "auto", "keep mean", "allow" or "skip".
        tolerance, max_sweeps, stop
            The posterior error in nats that is tolerated, the most sweeps, and a stopping rule that replaces both.
        seed, executor, progress
            Of everything random; for oracles that can share their work; whether progress is shown (None: on a terminal).
        start
            A posterior of an earlier run of this model to begin with: the same answer, sooner.
        integrate, correct
            Which hyper-parameters are integrated over: "auto" (all), a list, or False (none: they take their best value); and
            whether the evidence at their values is corrected by importance sampling ("auto": where that matters).
        """
        return run_to_the_end(self, options)
