"""Messages as they come in during real EP runs: the training and test sets of experiments 1 and 2."""

from __future__ import annotations

from typing import Any

import numpy as np

from heliograph.engine import Model, after, steps
from heliograph.factors import Logistic
from heliograph.factors.black_box import factor
from heliograph.families import Beta, Family, concatenate
from heliograph.operators.protocol import NOTHING_MORE, Ask, Incoming, Reply, Setting
from heliograph.paper.datasets import logistic_regression_problem

__all__ = ["Recorder", "recorded_messages"]


class Recorder:
    """An operator for the logistic black box that answers exactly and writes down every tuple that came in."""

    name = "recorder"

    def __init__(self, keep_sweeps: int) -> None:
        self.keep_sweeps = keep_sweeps
        self.seen: list[tuple[Family, Family]] = []

    def send(
        self, rng: np.random.Generator, to: str, incoming: Incoming, ask: Ask, setting: Setting = NOTHING_MORE
    ) -> Reply:
        """The exact message, by quadrature."""
        z, out = incoming["z"], incoming["out"]
        if to == "z" and len(self.seen) < self.keep_sweeps:
            self.seen.append((z, out))
        message = Logistic().message("p" if to == "out" else "z", {"z": z, "p": out})
        none = np.zeros(len(z), dtype=bool)
        return Reply(message, none, none)


def recorded_messages(
    seed: int, n_problems: int, most: int, d: int = 20, n: int = 300, sweeps: int = 10, keep_sweeps: int = 5
) -> dict[str, Any]:
    """At most `most` incoming tuples, in random order, of the first sweeps of EP on problems of the paper's model."""
    tuples: list[tuple[Family, Family]] = []
    for k in range(n_problems):
        problem = logistic_regression_problem(np.random.default_rng([seed, k]), d=d, n=n, n_test=1)
        recorder = Recorder(keep_sweeps)

        @factor(output=Beta)
        def logistic(z: np.ndarray) -> np.ndarray:
            return 1 / (1 + np.exp(-z))

        model = Model()
        w = model.gaussian("w", np.zeros(d), covariance=np.eye(d))
        model.bernoulli("y", logistic(problem.X @ w), observed=problem.y)
        for _ in steps(model, operator=recorder, stop=after(sweeps)):
            pass
        tuples += recorder.seen
    z, out = (concatenate([t[j] for t in tuples]) for j in range(2))
    order = np.random.default_rng([seed, n_problems]).permutation(len(z))[:most]
    return {"z": z[order], "out": out[order]}
