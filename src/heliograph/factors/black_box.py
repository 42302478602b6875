"""Black-box factors: a node given only as a forward sampler, with what was learned about its messages.

``@factor(output=Family)`` turns a function into a `BlackBox`. Called on variables it becomes part of their model,
called on arrays it is the function it was. What it learns belongs to it and serves every model that uses it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from heliograph.errors import FactorError, ModelError, UnsupportedError
from heliograph.factors.base import Factor, Incoming
from heliograph.factors.oracle_calls import Latest, OracleCalls, oracle_named
from heliograph.families import Bernoulli, Beta, Categorical, Dirichlet, Family, Gamma, Gaussian, MultivariateGaussian
from heliograph.families.base import as_real
from heliograph.operators.joint_error import RARE, leverage, shared_unknowns
from heliograph.operators.protocol import Reply, Setting
from heliograph.operators.registry import make_operator
from heliograph.oracles import Answer, Sampler, evaluate, sampler_of
from heliograph.oracles.references import reference_of

__all__ = ["BlackBox", "Conduct", "factor"]

_INPUTS: tuple[type[Family], ...] = (Gaussian, MultivariateGaussian, Gamma, Beta, Bernoulli, Categorical, Dirichlet)


@dataclass
class Conduct:
    """How one run wants its black boxes to behave, handed to `send` with every call."""

    rng: np.random.Generator
    operator: Any = "learned"
    oracle: Any = None
    tolerance: float = 1e-3
    executor: Any = None
    n_factors: int = 1  # messages of black boxes in a sweep of the whole model, among which the tolerance is shared
    shared: dict[int, Any] = field(default_factory=dict, repr=False)  # id of a factor -> graph.shared.Shared
    latest: dict[int, Latest] = field(default_factory=dict, repr=False)  # each factor's last answer, for all directions
    # what the messages of each direction may be wrong by, since the last estimate and at it
    _sweep: dict[tuple[int, str], _Errors] = field(default_factory=dict, repr=False)
    _last: dict[tuple[int, str], _Errors] = field(default_factory=dict, repr=False)

    def setting(self, factor: BlackBox) -> Setting:
        """What an operator is told about this run."""
        tolerance = self.tolerance / max(self.n_factors, 1)
        known = self.shared.get(id(factor))
        share, together = (1.0, 1) if known is None else (min(1.0, known.unknowns / known.size), known.together)
        return Setting(
            tolerance, factor.sampler, factor._evaluate, reference_of(factor.sampler), share=share, together=together
        )

    def note(self, factor: BlackBox, to: str, cavity: Any, reply: Reply) -> None:
        """Remember how wrong the messages of one call may be."""
        before = self._sweep.get((id(factor), to), _NO_ERRORS)
        setting = self.setting(factor)
        self._sweep[id(factor), to] = before.and_those_of(reply, cavity, setting)

    def error_estimate(self) -> float:
        """Nats that learned messages may have added to the posterior, by the latest message of every direction.

        Infinite where a message could not be had: what it would have been is unknown. NaN where an operator predicts
        without saying how wrong it may be, as all but the default one do.
        """
        self._last.update(self._sweep)
        self._sweep = {}
        errors = [e.joint() for e in self._last.values()]
        return float(np.inf) if np.inf in errors else float(sum(errors))


class _Errors(NamedTuple):
    """Sums over the messages of one direction in one sweep."""

    asked: float = 0.0  # nats of messages that an oracle answered: their errors are independent
    nats: float = 0.0  # of predicted messages
    roots: float = 0.0  # of their square roots: predictions of one regression err alike
    unknowns: float = 0.0  # that the messages share

    def and_those_of(self, reply: Reply, cavity: Any, setting: Setting) -> _Errors:
        """With the messages of one more call."""
        kl, asked = reply.expected_kl, reply.asked
        if reply.failed.any():
            return self._replace(asked=np.inf)
        if kl is None:
            return self if asked.all() else self._replace(nats=np.nan)
        predicted = kl[~asked] if asked.any() else kl
        share = leverage(reply.message, cavity) if len(predicted) else None
        return _Errors(
            self.asked + float(kl[asked].sum()),
            self.nats + float(predicted.sum()),
            self.roots + float(np.sqrt(predicted).sum()),
            self.unknowns + shared_unknowns(share, len(kl), setting),
        )

    def joint(self) -> float:
        """What they may do to the posterior together."""
        coherent = self.roots**2 / self.unknowns if self.roots else 0.0
        return RARE * (self.asked + max(coherent, self.nats) if not np.isnan(self.nats) else self.asked + np.nan)


_NO_ERRORS = _Errors()


def factor(
    function: Callable[..., Any] | None = None,
    *,
    output: type[Family] | None = None,
    vectorized: bool = True,
    expensive: bool = False,
    name: str | None = None,
    dimension: int | None = None,
    data_ranks: Mapping[str, int] | None = None,
    oracle: Any = None,
) -> Any:
    """Make a factor of a forward sampler: a function of samples along the first axis of its arguments.

    A parameter named ``rng`` makes it stochastic. `output` is the family of its result (with `dimension`, if that is a
    vector or a category). A function of one sample at a time is right, and slow, with ``vectorized=False``; one that
    is too dear to be called at every message says ``expensive=True``. Plain arrays given as arguments are data, one
    value a message; `data_ranks` says how many axes a value has where that cannot be seen (1 for a vector). `oracle`
    is what answers for it unless a run says otherwise.

    >>> @factor(output=Beta)
    ... def logistic(z):
    ...     return 1 / (1 + np.exp(-z))
    >>> logistic.ports
    ('z', 'out')
    >>> logistic(np.zeros(2))
    array([0.5, 0.5])
    >>> logistic.belief("z", {"z": Gaussian([0.0], 1.0), "out": Beta([2.0], 1.0)}, oracle="quadrature").mean.round(4)
    array([0.4132])
    """
    if function is not None and not callable(function):
        raise ModelError("@factor needs the family of the function's result: @factor(output=Beta)")
    if output is None or not (isinstance(output, type) and issubclass(output, Family)):
        raise ModelError("@factor needs the family of the function's result, for example @factor(output=Gaussian)")

    def wrap(f: Callable[..., Any]) -> BlackBox:
        sampler = sampler_of(f, output, name=name, vectorized=vectorized, expensive=expensive)
        return BlackBox(sampler, dimension=dimension, data_ranks=data_ranks, oracle=oracle)

    return wrap if function is None else wrap(function)


class BlackBox(Factor):
    """A factor whose messages are asked of an oracle, and learned."""

    learns = True

    def __init__(
        self,
        sampler: Sampler,
        *,
        dimension: int | None = None,
        data_ranks: Mapping[str, int] | None = None,
        oracle: Any = None,
    ) -> None:
        self.sampler = sampler
        self.dimension = dimension
        self.oracle = oracle
        unknown = [p for p in data_ranks or {} if p not in sampler.inputs]
        if unknown:
            raise ModelError(f"factor {sampler.name!r} has no inputs {unknown}; data_ranks may name {sampler.inputs}")
        # a built-in factor holds these for its class, a black box for itself
        families = {**dict.fromkeys(sampler.inputs, _INPUTS), sampler.child: (sampler.output,)}
        vars(self).update(
            name=sampler.name,
            ports=sampler.ports,
            families=families,
            how=dict.fromkeys(sampler.ports, "asked and learned"),
            data_ranks=dict(data_ranks or {}),
        )
        self.operators: dict[str, Any] = {}  # key -> operator, shared by every model that uses this factor
        self.n_asked = 0  # messages that the oracle was asked for
        self.n_messages = 0
        self.n_evaluations = 0  # of the function
        functools.update_wrapper(self, sampler.function)

    # ---- as a function ------------------------------------------------------------------------------------------
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """On variables: their child in the model. On arrays: the function's own value."""
        models = [a.model for a in (*args, *kwargs.values()) if hasattr(a, "model")]
        if not models:
            messages = [a for a in (*args, *kwargs.values()) if isinstance(a, Family)]
            if messages:
                raise ModelError(
                    f"factor {self.name!r} was called on a {type(messages[0]).__name__} message; call it on variables "
                    "or arrays, and ask for its messages with .message(to, incoming)"
                )
            return self.sampler.function(*args, **kwargs)
        return models[0]._black_box(self, self._bound(args, kwargs))

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Arguments by port, with the function's own defaults."""
        drawn = [p for p in ("rng", "size") if p in kwargs]
        if drawn:
            raise ModelError(f"factor {self.name!r}: {drawn} are given by the engine and not by the model")
        parameters = inspect.signature(self.sampler.function).parameters
        wanted = [parameters[p] for p in self.sampler.inputs]
        try:
            bound = inspect.Signature(wanted).bind(*args, **kwargs)
        except TypeError as error:
            raise ModelError(f"factor {self.name!r} takes {list(self.sampler.inputs)}: {error}") from None
        bound.apply_defaults()
        arguments = dict(bound.arguments)
        shapes = [a.shape for a in arguments.values() if hasattr(a, "model")]
        try:
            plate = np.broadcast_shapes(*shapes)
        except ValueError:
            raise ModelError(f"factor {self.name!r}: variables of shapes {shapes} do not fit together") from None
        for port, value in arguments.items():
            if not hasattr(value, "model"):
                shape = as_real(f"factor {self.name!r}: data at {port!r}", value).shape
                self._note_rank(port, shape, plate)
        return arguments

    def _note_rank(self, port: str, shape: tuple[int, ...], plate: tuple[int, ...]) -> None:
        """Data with more axes than the plate is one vector (or more) a message."""
        if port in self.data_ranks or not plate or len(shape) <= len(plate):
            return
        if shape[: len(plate)] != plate:
            raise ModelError(
                f"factor {self.name!r}: data at {port!r} has shape {shape} beside variables of shape {plate}; give one "
                f"value a message, or say data_ranks={{{port!r}: 1}} in @factor if one vector serves all"
            )
        self.data_ranks[port] = len(shape) - len(plate)

    # ---- messages in a run --------------------------------------------------------------------------------------
    def send(self, to: str, incoming: Incoming, conduct: Conduct) -> Reply:
        """The messages to port `to`, asked or predicted as the run's operator decides."""
        self.check_port(to)
        incoming = self._ordered(incoming)
        operator = self.operator(conduct.operator)
        oracle = oracle_named(self.oracle if conduct.oracle is None else conduct.oracle)
        calls = OracleCalls(self, oracle, conduct.rng, conduct.executor, to, conduct.latest)
        try:
            reply = operator.send(conduct.rng, to, incoming, calls, conduct.setting(self))
        finally:
            self.n_asked += calls.n_asked
            self.n_evaluations += calls.n_evaluations
        self.n_messages += len(reply.asked)
        self.n_evaluations += reply.n_evaluations
        conduct.note(self, to, incoming[to], reply)
        return reply._replace(
            n_asked=calls.n_asked,
            n_evaluations=reply.n_evaluations + calls.n_evaluations,
            seconds_oracle=reply.seconds_oracle + calls.seconds,
        )

    def operator(self, choice: Any = "learned") -> Any:
        """This factor's own operator of a kind: made when first wanted, the same one ever after.

        An object is a recipe, of which each factor keeps its own copy, unless it has been trained already: then it is
        used itself.
        """
        if isinstance(choice, str) and choice in self.operators:
            return self.operators[choice]
        made = make_operator(choice)
        key = getattr(made, "key", None) or f"{type(made).__name__} at {id(made):x}"
        if key not in self.operators:
            recipe = not isinstance(choice, str) and getattr(made, "empty", False) and hasattr(made, "fresh")
            self.operators[key] = made.fresh() if recipe else made
        return self.operators[key]

    def train(
        self, rng: np.random.Generator, incoming: Incoming, operator: Any = "neural", oracle: Any = None
    ) -> Answer:
        """Ask an oracle about a plate of tuples and train an operator with the answers, before any inference."""
        learner = self.operator(operator)
        if not callable(getattr(learner, "train", None)):
            raise UnsupportedError(f"operator {getattr(learner, 'name', learner)!r} learns while it runs, not before")
        incoming = self._ordered(incoming)
        calls = OracleCalls(self, oracle_named(self.oracle if oracle is None else oracle), rng)
        answer = calls(incoming)
        self.n_asked += calls.n_asked
        self.n_evaluations += calls.n_evaluations
        learner.train(incoming, answer)
        return answer

    def calibration(self, operator: Any = "learned") -> Any:
        """What an operator expected of its errors beside what the oracle found, one entry a direction.

        An entry prints as a table and draws itself with ``.plot(axes)``; there is none before anything was compared.
        """
        made = self.operator(operator)
        if not callable(getattr(made, "calibration", None)):
            raise UnsupportedError(f"operator {getattr(made, 'name', made)!r} keeps no account of its errors")
        return made.calibration()

    def forget(self) -> None:
        """Forget everything that was learned, and the counts."""
        self.operators = {}
        self.n_asked = self.n_messages = self.n_evaluations = 0

    # ---- messages outside a graph -------------------------------------------------------------------------------
    def ask(self, incoming: Incoming, *, oracle: Any = None, seed: int = 0) -> Answer:
        """An oracle's whole answer: beliefs of every direction, log Z, their errors. Nothing is learned."""
        rng = np.random.default_rng(seed)
        return OracleCalls(self, oracle_named(self.oracle if oracle is None else oracle), rng)(self._ordered(incoming))

    def belief(self, to: str, incoming: Incoming, power: float = 1.0, *, oracle: Any = None, seed: int = 0) -> Family:
        """The projected belief as an oracle computes it; raises where it cannot."""
        self.check_port(to)
        self._refuse_power(power)
        answer = self.ask(incoming, oracle=oracle, seed=seed)
        failed = answer.failed_at(to)
        if failed.any():
            raise FactorError(
                f"the oracle could not answer {int(failed.sum())} of {len(failed)} messages of factor "
                f"{self.name!r} to {to!r} (first: row {int(np.argmax(failed))}); give it more draws, or look at "
                ".ask(incoming) for its diagnostics"
            )
        return answer.beliefs[to]

    def message(self, to: str, incoming: Incoming, power: float = 1.0, *, oracle: Any = None, seed: int = 0) -> Family:
        """The belief divided by what came in, eq. (1)."""
        return self.belief(to, incoming, power, oracle=oracle, seed=seed) / incoming[to]

    def log_z(
        self,
        incoming: Incoming,
        power: float = 1.0,
        *,
        conduct: Conduct | None = None,
        oracle: Any = None,
        seed: int = 0,
    ) -> np.ndarray:
        """The log normaliser of each tuple; -inf where an oracle found nothing.

        With the `conduct` of a run it is what the run's operator has learned of it, or its oracle says.
        """
        self._refuse_power(power)
        if conduct is None:
            return self.ask(incoming, oracle=oracle, seed=seed).log_z
        learned = getattr(self.operator(conduct.operator), "log_z", None)
        oracle = conduct.oracle if oracle is None else oracle
        if learned is None:
            return self.ask(incoming, oracle=oracle, seed=seed).log_z
        rng = np.random.default_rng(seed)  # reading a posterior must not change what the run would draw next
        calls = OracleCalls(self, oracle_named(self.oracle if oracle is None else oracle), rng, conduct.executor)
        log_z = learned(rng, self._ordered(incoming), calls, conduct.setting(self))
        self.n_asked += calls.n_asked
        self.n_evaluations += calls.n_evaluations
        return log_z

    # ---- keeping ------------------------------------------------------------------------------------------------
    def save(self, path: str | PathLike[str]) -> None:
        """Write all that was learned to one file: arrays and JSON, no code."""
        from heliograph.factors.saving import save_factor

        save_factor(self, path)

    def load(self, path: str | PathLike[str]) -> None:
        """Replace what was learned by what a file holds; a file that cannot be read changes nothing."""
        from heliograph.factors.saving import read_into

        read_into(self, path)

    # ---- private ------------------------------------------------------------------------------------------------
    def _ordered(self, incoming: Incoming) -> dict[str, Any]:
        missing = [p for p in self.ports if p not in incoming]
        if missing:
            raise ModelError(f"factor {self.name!r} needs a message at every port; {missing} have none")
        return {p: incoming[p] if isinstance(incoming[p], Family) else np.asarray(incoming[p]) for p in self.ports}

    def _evaluate(self, rng: np.random.Generator, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
        return evaluate(rng, self.sampler, inputs)

    def _refuse_power(self, power: float) -> None:
        if power != 1.0:
            raise UnsupportedError(f"factor {self.name!r} is a black box: it has no power {power}, only 1")

    def __reduce__(self) -> str:
        """By name, like any function: a process that imports its module has it."""
        return self.__qualname__  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return (
            f"<factor {self.name}({', '.join(self.sampler.inputs)}) -> {self.sampler.output.__name__}: "
            f"{self.n_asked} of {self.n_messages} messages asked>"
        )
