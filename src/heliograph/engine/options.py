"""The settings of `steps` and `infer`, listed once, and how a function takes them as keywords."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from heliograph.engine.stopping import StopRule, after, after_seconds, changed_less_than
from heliograph.errors import ModelError
from heliograph.operators.protocol import Operator

__all__ = ["InferOptions", "StepOptions", "with_options"]

_SETTLED = 1e-3  # of the tolerated posterior error, that beliefs may move in the last sweep


@dataclass(frozen=True, kw_only=True)
class StepOptions:
    """The settings of a run of expectation propagation, one sweep after another.

    Attributes
    ----------
    operator
        How black-box factors get their messages: "learned", "kjit", "forest", "neural", "ask", or an object.
    oracle
        What computes messages of black boxes: a name, an object, or None for each factor's own.
    schedule
        "parallel" (a whole plate at once) or "sequential" (element by element, forwards and backwards in turn).
        Both have the same fixed points.
    damping
        The share of the old message that is kept, in [0, 1). None adapts it: none at first, and more when a sweep
        diverges or stalls.
    power
        The power of power EP; 1 is plain EP.
    improper
        The policy for messages that are not distributions: "auto", "keep mean", "allow" or "skip".
    tolerance
        The error of the posterior that is tolerated, in nats. It limits the error of learned messages, and (a
        thousandth of it) the change in the last sweep.
    max_sweeps
        The run stops after this many sweeps, settled or not.
    seconds
        The run ends with the first sweep after this time. For four fifths of it, learned messages are asked about,
        the worst first; `posterior.error_estimate` says what was reached. None: no limit.
    stop
        A stopping rule that replaces `tolerance` and `max_sweeps`, such as ``changed_less_than(1e-6) | after(50)``.
    seed
        The source of everything random: a whole number or a generator.
    executor
        An executor of `concurrent.futures`, for oracles that can share their work. Threads also run several values
        of hyper-parameters side by side, to the same bits.
    structure
        "auto" keeps what is jointly Gaussian joint, unless that is too expensive, in which case a warning says so.
        "joint" makes that an error. "factorised" sends messages between single variables.
    budget
        Roughly the seconds that one joint solve may take, and the GB that it may use. Beyond it, standard
        deviations are estimated.
    start
        A posterior of an earlier run of this model, with whose messages the run begins. The answer is the same, and
        comes sooner.
    """

    operator: str | Operator = "learned"
    oracle: Any = None
    schedule: str = "parallel"
    damping: float | None = None
    power: float = 1.0
    improper: str = "auto"
    tolerance: float = 1e-3
    max_sweeps: int = 200
    seconds: float | None = None
    stop: StopRule | None = None
    seed: int | np.random.Generator | np.random.SeedSequence = 0
    executor: Executor | None = None
    structure: str = "auto"
    budget: float = 2.0
    start: Any = None

    @property
    def rule(self) -> StopRule:
        """The rule that ends the run."""
        rule = self.stop if self.stop is not None else changed_less_than(self.settled) | after(self.max_sweeps)
        return rule if self.seconds is None else rule | after_seconds(self.seconds)

    @property
    def settled(self) -> float:
        """Nats that the beliefs may move in the last sweep, unless the stopping rule has a limit of its own."""
        return self.tolerance * _SETTLED

    def generator(self) -> np.random.Generator:
        """The source of everything random in the run; a generator that was given goes on where it is."""
        return self.seed if isinstance(self.seed, np.random.Generator) else np.random.default_rng(self.seed)


@dataclass(frozen=True, kw_only=True)
class InferOptions(StepOptions):
    """`StepOptions`, whether progress is shown, and how hyper-parameters are treated.

    Attributes
    ----------
    progress
        True, False, or None for a terminal only.
    integrate
        "auto" integrates over every hyper-parameter. A list of hyper-parameters or variables, or of their names,
        integrates over these only, and gives other hyper-parameters their best value. False gives all of them their
        best value. docs/hyperparameters.md has the details.
    correct
        Whether to correct the evidence at every value of the hyper-parameters by importance sampling: "auto" if a
        few values show that it matters and that it can be done, True always, False never.
    audit
        Whether to check some messages with the oracle before a run counts as converged, if an operator ("kjit",
        "forest", "neural") predicts without saying how wrong it may be. Without the check such a run is not called
        converged.
    """

    progress: bool | None = None
    integrate: Any = "auto"
    correct: bool | str = "auto"
    audit: bool = True


P = ParamSpec("P")
R = TypeVar("R")
M = TypeVar("M")
O = TypeVar("O")


def with_options(
    options: Callable[P, O],
) -> Callable[[Callable[[M, O], R]], Callable[Concatenate[M, P], R]]:
    """Let a function of a model and a record of options take the fields of the record as keywords of its own."""

    def decorate(function: Callable[[M, O], R]) -> Callable[Concatenate[M, P], R]:
        first, _ = inspect.signature(function).parameters.values()
        fields = inspect.signature(options).parameters

        @functools.wraps(function)
        def wrapper(model: M, *args: P.args, **settings: P.kwargs) -> R:
            if not hasattr(model, "graph"):
                raise ModelError(f"{function.__name__} takes a model, not {type(model).__name__}")
            for name in settings:
                if name not in fields:
                    raise TypeError(f"{function.__name__}() has no setting {name!r}; there are {', '.join(fields)}")
            return function(model, options(*args, **settings))

        wrapper.__doc__ = f"{inspect.getdoc(function)}\n\nParameters\n----------\n{_listed(options)}"
        returns = inspect.signature(function).return_annotation
        wrapper.__signature__ = inspect.Signature([first, *fields.values()], return_annotation=returns)  # type: ignore[attr-defined]
        return wrapper

    return decorate


def _listed(options: Any) -> str:
    """The settings of a record, its own first, as its docstrings list them."""
    docs = (inspect.cleandoc(kind.__doc__ or "") for kind in options.__mro__)
    return "\n".join(doc.split("Attributes\n----------\n")[1] for doc in docs if "Attributes\n" in doc)
