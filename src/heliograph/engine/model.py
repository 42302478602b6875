"""The model a user writes: the language of `graph`, with `infer`."""

from __future__ import annotations

from typing import Any

import numpy as np

from heliograph.engine.loop import infer
from heliograph.engine.posterior import Posterior
from heliograph.engine.stopping import StopRule
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

    def infer(
        self,
        *,
        operator: Any = "learned",
        oracle: Any = None,
        schedule: str = "parallel",
        damping: float | None = None,
        power: float = 1.0,
        improper: str = "auto",
        tolerance: float = 1e-3,
        max_sweeps: int = 200,
        stop: StopRule | None = None,
        seed: int | np.random.Generator = 0,
        progress: bool | None = None,
        executor: Any = None,
    ) -> Posterior:
        """Run expectation propagation until the beliefs settle.

        `operator` and `oracle` say how black-box factors get their messages ("learned", "kjit", "forest", "neural", "ask", or an
        object). `schedule` is "parallel" (a whole plate at once) or "sequential" (element by element, forth and back); both
        have the same fixed points. `damping` is the share of the old message that is kept (None adapts it), `power` the power of
        power EP, `improper` the policy for messages that are not distributions ("auto", "keep mean", "allow", "skip").
        `tolerance` is the posterior error in nats that is tolerated, `stop` a stopping rule that replaces it.
        """
        return infer(
            self, operator=operator, oracle=oracle, schedule=schedule, damping=damping, power=power, improper=improper,
            tolerance=tolerance, max_sweeps=max_sweeps, stop=stop, seed=seed, progress=progress, executor=executor,
        )  # fmt: skip
