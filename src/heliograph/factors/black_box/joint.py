"""A black box of which several inputs come as one vector, because they are jointly Gaussian.

It is the same function. What is learned of this form is kept with the box, saved with it, and used by the next problem in
which the same inputs are joint.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from heliograph.factors.base import Incoming
from heliograph.factors.black_box.box import BlackBox
from heliograph.factors.black_box.options import RunOptions
from heliograph.factors.black_box.sharing import in_turn
from heliograph.families import Family, MultivariateGaussian
from heliograph.operators.protocol import Reply
from heliograph.oracles import Sampler
from heliograph.oracles.calling import evaluate

__all__ = ["JointBox"]


class JointBox(BlackBox):
    """A black box that takes the inputs `joined` as one vector, at a port of their names joined by "+".

    >>> from heliograph.factors.black_box import factor
    >>> from heliograph.families import Gaussian
    >>> @factor(output=Gaussian)
    ... def distance(x, y):
    ...     return np.hypot(x, y)
    >>> JointBox(distance, ("x", "y")).ports
    ('x+y', 'out')
    """

    def __init__(self, box: BlackBox, joined: tuple[str, ...]) -> None:
        self.box, self.joined = box, joined
        self.port = "+".join(joined)
        super().__init__(
            _joint_sampler(box.sampler, joined, self.port),
            dimension=box.dimension,
            data_ranks={p: r for p, r in box.data_ranks.items() if p not in joined},
            oracle=box.oracle,
        )
        vars(self)["families"] = {**vars(self)["families"], self.port: (MultivariateGaussian,)}
        self.operators = box.form_operators.setdefault(joined, {})
        self.account, self._automatic = box.account, box._automatic  # measurements and costs belong to the box
        self.root, self.form = box.root, (*box.form, *joined)
        self.form_values = box.form_values

    @in_turn
    def send(self, to: str, incoming: Incoming, options: RunOptions) -> Reply:
        """As `BlackBox.send`; what it costs is counted by the box."""
        before = self._counts()
        try:
            return super().send(to, incoming, options)
        finally:
            self._count(before)

    @in_turn
    def log_z(self, incoming: Incoming, power: float = 1.0, **settings: Any) -> np.ndarray:
        """As `BlackBox.log_z`; what it costs is counted by the box."""
        before = self._counts()
        try:
            return super().log_z(incoming, power, **settings)
        finally:
            self._count(before)

    def log_at(self, incoming: Incoming, values: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """``log`` of the factor at draws (n, S, d) of the vector, and of which components it is a function: all.

        None where that is not one cheap evaluation for each: a function that is stochastic, expensive or partial, or has other
        unknown inputs.
        """
        sampler = self.sampler
        if sampler.stochastic or sampler.expensive or not sampler.vectorized or sampler.impossible is not None:
            return None
        n, draws, d = values.shape
        rows = np.repeat(np.arange(n), draws)
        given: dict[str, Any] = {}
        for port in sampler.inputs:
            known = incoming[port]
            if port == self.port:
                given[port] = values.reshape(-1, d)
            elif isinstance(known, Family):
                if known.point is None or not known.is_point.all():
                    return None
                given[port] = known.point[rows]
            else:
                given[port] = np.asarray(known)[rows]
        out = evaluate(np.random.default_rng(0), sampler, given, n * draws)
        self.box.root.n_evaluations += n * draws
        message = incoming[self.child]
        spoken = message.proper | message.is_point
        log_t = np.zeros((n, draws))
        log_t[spoken] = message[rows].log_density(out).reshape(n, draws)[spoken]
        return log_t, np.arange(d)

    def _counts(self) -> tuple[int, int, int]:
        return self.n_asked, self.n_messages, self.n_evaluations

    def _count(self, before: tuple[int, int, int]) -> None:
        asked, messages, evaluations = (a - b for a, b in zip(self._counts(), before, strict=True))
        root = self.box.root
        root.n_asked += asked
        root.n_messages += messages
        root.n_evaluations += evaluations

    def __reduce__(self) -> Any:
        """From the box, which is found by its name."""
        return JointBox, (self.box, self.joined)


def _joint_sampler(sampler: Sampler, joined: tuple[str, ...], port: str) -> Sampler:
    """The same function of a vector and the other inputs."""
    inputs = [p for p in sampler.inputs if p not in joined[1:]]
    inputs[inputs.index(joined[0])] = port
    log_density = None if sampler.log_density is None else _Split(sampler.log_density, joined, port)
    function = _Split(sampler.function, joined, port)
    return sampler._replace(function=function, inputs=tuple(inputs), log_density=log_density, derivative=None)


class _Split:
    """A function whose vector argument is taken apart into the arguments of another; it can be sent to a worker if that can."""

    def __init__(self, function: Callable[..., Any], joined: tuple[str, ...], port: str) -> None:
        self.function, self.joined, self.port = function, joined, port
        self.__name__, self.__qualname__ = (
            getattr(function, "__name__", "factor"),
            getattr(function, "__qualname__", "factor"),
        )
        self.__doc__ = function.__doc__

    def __call__(self, *values: Any, **given: Any) -> Any:
        vector = given.pop(self.port)
        one = vector.ndim == 1  # a sample at a time: plain numbers, as the function expects
        parts = {name: float(vector[k]) if one else vector[..., k] for k, name in enumerate(self.joined)}
        return self.function(*values, **parts, **given)
