"""A node given only as a forward sampler, with what was learned about its messages."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np

from heliograph.errors import FactorError, ModelError, UnsupportedError
from heliograph.factors.base import Factor, Incoming
from heliograph.factors.black_box.adopting import adopt, checked
from heliograph.factors.black_box.arguments import bound
from heliograph.factors.black_box.checking import FunctionRecord
from heliograph.factors.black_box.options import RunOptions
from heliograph.factors.black_box.oracle_calls import OracleCalls
from heliograph.factors.black_box.reporting import Account, FactorReport, draw, report_of
from heliograph.factors.black_box.saving import read_into, save_factor
from heliograph.factors.black_box.sharing import Shared, in_turn
from heliograph.families import EVERY_FAMILY, Family
from heliograph.operators.protocol import Reply
from heliograph.operators.registry import make_operator
from heliograph.oracles import Answer, AutomaticOracle, Sampler, evaluate, make_oracle
from heliograph.oracles.forms import found_by_roots
from heliograph.oracles.references import KnownValues

__all__ = ["BlackBox"]


class BlackBox(Shared, Factor):
    """A factor whose messages come from an oracle and are learned."""

    learns = True

    def __init__(
        self,
        sampler: Sampler,
        *,
        dimension: int | tuple[int | None, ...] | None = None,
        data_ranks: Mapping[str, int] | None = None,
        oracle: Any = None,
    ) -> None:
        self.sampler = sampler
        self.dimension = dimension
        self.oracle = oracle
        self._automatic = AutomaticOracle()  # the oracle if none is named, which remembers what it measured
        if unknown := [p for p in data_ranks or {} if p not in sampler.inputs]:
            raise ModelError(f"factor {sampler.name!r} has no inputs {unknown}; data_ranks may name {sampler.inputs}")
        # a built-in factor holds these for its class, a black box for itself
        made = dict(zip(sampler.children, ((f,) for f in (sampler.output, *sampler.more)), strict=True))
        families = dict.fromkeys(sampler.inputs, EVERY_FAMILY) | made
        vars(self).update(
            name=sampler.name,
            ports=sampler.ports,
            families=families,
            how=dict.fromkeys(sampler.ports, "asked and learned"),
            data_ranks=dict(data_ranks or {}),
        )
        self.operators: dict[str, Any] = {}  # key -> operator, shared by every model that uses this factor
        self.form_values: dict[tuple[str, ...], KnownValues] = {}  # what references remember of the function, by form
        # inputs that came as one vector -> the operators that learned this form of the factor (`joint`)
        self.form_operators: dict[tuple[str, ...], dict[str, Any]] = {}
        self.function_records: dict[
            tuple[str, ...], FunctionRecord
        ] = {}  # what is known of the function, by such forms
        self.form: tuple[str, ...] = ()  # the inputs of this form
        self.partial, self.draws = sampler.impossible is not None, sampler.stochastic
        self.root: BlackBox = self  # the user's own box, of which this may be a form: costs are counted there
        self.n_asked = 0  # messages that the oracle was asked for
        self.n_messages = 0
        self.n_evaluations = 0  # of the function
        self.account = Account()
        self.seen: dict[str, Any] = {}  # port -> the latest messages of a run, and its setting
        functools.update_wrapper(self, sampler.function)

    # ---- as a function ------------------------------------------------------------------------------------------
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """On variables: their child in the model, with what was ``observed=`` of it. On arrays: the function's own value."""
        models = [a.model for a in (*args, *kwargs.values()) if hasattr(a, "model")]
        if not models:
            messages = [a for a in (*args, *kwargs.values()) if isinstance(a, Family)]
            if messages:
                raise ModelError(
                    f"factor {self.name!r} was called on a {type(messages[0]).__name__} message; call it on variables "
                    "or arrays, and ask for its messages with .message(to, incoming)"
                )
            function = self.sampler.function
            return (function if self.sampler.counted is None else function.function)(*args, **kwargs)
        arguments, observed = bound(self, args, kwargs)
        given = () if observed is None else (observed,)
        return models[0]._black_box(self, arguments, *given)

    # ---- messages in a run --------------------------------------------------------------------------------------
    @in_turn
    def send(self, to: str, incoming: Incoming, options: RunOptions) -> Reply:
        """The messages to port `to`, asked or predicted as the run's operator decides."""
        self.check_port(to)
        incoming = self._ordered(incoming)
        if id(self) not in options.checked:
            self._check(incoming)
            options.checked.add(id(self))
        operator = self.operator("ask" if found_by_roots(self.sampler, incoming) else options.operator)
        oracle = self._oracle(options.oracle)
        calls = OracleCalls(self, oracle, options.rng, options.executor, to, options.latest)
        try:
            setting = options.setting(self)
            reply = checked(operator, to, incoming[to], operator.send(options.rng, to, incoming, calls, setting))
        finally:
            self.n_asked += calls.n_asked
            self.n_evaluations += calls.n_evaluations
        self.n_messages += len(reply.asked)
        self.n_evaluations += reply.n_evaluations
        self.account.add(reply, calls.seconds)
        self.seen[to] = incoming, setting
        options.note(self, to, incoming, reply, setting)
        return reply._replace(
            n_asked=calls.n_asked,
            n_evaluations=reply.n_evaluations + calls.n_evaluations,
            n_answer_evaluations=calls.n_evaluations,
            seconds_oracle=reply.seconds_oracle + calls.seconds,
        )

    @property
    def children(self) -> tuple[str, ...]:
        """The ports of all outputs, in the order of the function's tuple."""
        return self.sampler.children

    def draw(self, rng: np.random.Generator, incoming: Incoming) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Values of the function itself, which stand for their means too."""
        if self.sampler.more:
            raise UnsupportedError(
                f"factor {self.name!r} has several outputs, and these cannot be predicted; call the function"
            )
        inputs = {p: m.point if isinstance(m := incoming[p], Family) else m for p in self.sampler.inputs}
        values = evaluate(rng, self.sampler, inputs, incoming[self.child].size)
        return values, values, np.zeros(values.shape)

    def operator(self, choice: Any = "learned") -> Any:
        """The factor's own operator of a kind: made when first wanted, the same one ever after.

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
            adopt(self.operators[key], self.root)
        return self.operators[key]

    def train(
        self, rng: np.random.Generator, incoming: Incoming, operator: Any = "neural", oracle: Any = None
    ) -> Answer:
        """Ask an oracle about a plate of tuples and train an operator on the answers, before any inference."""
        learner = self.operator(operator)
        if not callable(getattr(learner, "train", None)):
            raise UnsupportedError(f"operator {getattr(learner, 'name', learner)!r} learns while it runs, not before")
        incoming = self._ordered(incoming)
        calls = OracleCalls(self, self._oracle(oracle), rng)
        answer = calls(incoming)
        self.n_asked += calls.n_asked
        self.n_evaluations += calls.n_evaluations
        learner.train(incoming, answer)
        return answer

    def calibration(self, operator: Any = "learned") -> Any:
        """What an operator expected of its errors beside what the oracle found; each prints, and draws by ``.plot(axes)``."""
        made = self.operator(operator)
        if not callable(getattr(made, "calibration", None)):
            raise UnsupportedError(f"operator {getattr(made, 'name', made)!r} keeps no account of its errors")
        return made.calibration()

    def report(self, operator: Any = "learned") -> FactorReport:
        """How this factor's messages were computed: asks, evaluations, time, errors found. It prints as ten lines."""
        return report_of(self, self.operator(operator))

    def plot(
        self, axes: Any = None, *, to: str | None = None, over: str | None = None, operator: Any = "learned"
    ) -> Any:
        """Draw the belief of port `to` (the first that was asked for) over the message at `over` (the same), with error bars."""
        return draw(self, axes, self.operator(operator), to, over)

    def forget(self) -> None:
        """Forget everything that was learned, and the counts."""
        self.operators, self.form_operators, self._automatic = {}, {}, AutomaticOracle()
        self.form_values.clear()
        self.function_records = {
            form: c for form, c in self.function_records.items() if c.read is not None
        }  # the function itself has not changed
        self.seen, self.account = {}, Account()
        self.n_asked = self.n_messages = self.n_evaluations = 0

    # ---- messages outside a graph -------------------------------------------------------------------------------
    def ask(self, incoming: Incoming, *, oracle: Any = None, seed: int = 0) -> Answer:
        """An oracle's whole answer: beliefs of every direction, log Z, their errors. Nothing is learned."""
        incoming = self._ordered(incoming)
        self._check(incoming)
        return OracleCalls(self, self._oracle(oracle), np.random.default_rng(seed))(incoming)

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

    @in_turn
    def log_z(
        self,
        incoming: Incoming,
        power: float = 1.0,
        *,
        options: RunOptions | None = None,
        oracle: Any = None,
        seed: int = 0,
    ) -> np.ndarray:
        """The log normaliser of each tuple; -inf where an oracle found nothing.

        With the `options` of a run it is what the run's operator has learned of it, or its oracle says.
        """
        self._refuse_power(power)
        if options is None:
            return self.ask(incoming, oracle=oracle, seed=seed).log_z
        roots = found_by_roots(self.sampler, incoming)
        learned = None if roots else getattr(self.operator(options.operator), "log_z", None)
        oracle = options.oracle if oracle is None else oracle
        if learned is None:
            return self.ask(incoming, oracle=oracle, seed=seed).log_z
        rng = np.random.default_rng(seed)  # reading a posterior must not change what the run would draw next
        calls = OracleCalls(self, self._oracle(oracle), rng, options.executor)
        log_z = learned(rng, self._ordered(incoming), calls, options.setting(self))
        self.n_asked += calls.n_asked
        self.n_evaluations += calls.n_evaluations + log_z.n_evaluations
        return log_z.values

    # ---- keeping ------------------------------------------------------------------------------------------------
    def save(self, path: str | PathLike[str]) -> None:
        """Write all that was learned to one file: arrays and JSON, no code."""
        save_factor(self, path)

    def load(self, path: str | PathLike[str]) -> None:
        """Replace what was learned by the contents of a file; a file that cannot be read changes nothing."""
        read_into(self, path)

    # ---- private ------------------------------------------------------------------------------------------------
    def _ordered(self, incoming: Incoming) -> dict[str, Any]:
        missing = [p for p in self.ports if p not in incoming]
        if missing:
            raise ModelError(f"factor {self.name!r} needs a message at every port; {missing} have none")
        return {p: incoming[p] if isinstance(incoming[p], Family) else np.asarray(incoming[p]) for p in self.ports}

    def evaluate(self, rng: np.random.Generator, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
        """The function at some inputs, one sample per row."""
        return evaluate(rng, self.sampler, inputs)

    def _oracle(self, choice: Any) -> Any:
        """The oracle of a run, else the factor's own, else the one that chooses by itself."""
        choice = self.oracle if choice is None else choice
        return (
            self._automatic if choice is None or (isinstance(choice, str) and choice == "auto") else make_oracle(choice)
        )

    def _check(self, incoming: Incoming) -> None:
        """Check that the function is what its signature says, and the same as when its messages were learned."""
        learned = any(not getattr(operator, "empty", True) for operator in self.operators.values())
        record = self.root.function_records.setdefault(self.form, FunctionRecord())
        self.n_evaluations += record.check(self.sampler, incoming, learned)

    def _refuse_power(self, power: float) -> None:
        if power != 1.0:
            raise UnsupportedError(f"factor {self.name!r} is a black box: it has no power {power}, only 1")

    def __repr__(self) -> str:
        return (
            f"<factor {self.name}({', '.join(self.sampler.inputs)}) -> {self.sampler.output.__name__}: "
            f"{self.n_asked} of {self.n_messages} messages asked>"
        )
