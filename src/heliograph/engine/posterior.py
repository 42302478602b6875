"""The result of inference: beliefs by variable, evidence, trace, and whether the run converged."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np

from heliograph.engine.blocks.plate import BlockFactor, Joint
from heliograph.engine.blocks.reading import belief_in_block, rows_in_block
from heliograph.engine.compiled import CompiledModel
from heliograph.engine.covariances import check_pair, covariance_of, joint_correlation, joint_covariance
from heliograph.engine.evidence import log_evidence
from heliograph.engine.plates import Exchange
from heliograph.engine.predicting import (
    Prediction,
    Seed,
    Source,
    check_draws,
    drawn,
    pointwise_log_likelihood,
    predicted,
    sampled,
    summed,
)
from heliograph.engine.priors import Priors
from heliograph.engine.readable import ReadablePosterior, check_model
from heliograph.engine.reading import belief_of_expression, dependent_groups, in_run
from heliograph.engine.saving import save_posterior
from heliograph.engine.status import unsent_sentence
from heliograph.engine.tables import Snapshot
from heliograph.engine.trace import Trace
from heliograph.engine.unsent import Unsent
from heliograph.errors import ConvergenceWarning, ModelError, OracleWarning
from heliograph.families import Family
from heliograph.families.tables import shortened
from heliograph.graph.records import Affine, Graph, Node
from heliograph.graph.variable import Variable

__all__ = ["Posterior"]


class Posterior(ReadablePosterior):
    """The beliefs of a run.

    ``posterior[w]`` is the belief of a variable, or of some of its entries, as a batch of its family with the
    variable's shape; ``posterior["w"]`` finds it by name. Observed entries are point masses. A posterior belongs to
    the model as it was when the run began: what is added or observed later does not change it.

    Attributes
    ----------
    converged, status
        Whether the beliefs have settled (docs/convergence.md), and the same in words with the remedy.
    error_estimate
        Nats that learned messages may have added to the posterior; 0 if there are none.
    trace
        The history of the run.
    """

    def __init__(
        self,
        compiled: CompiledModel,
        exchange: Exchange,
        trace: Trace,
        converged: bool,
        status: str,
        error_estimate: float,
    ) -> None:
        self._compiled, self._graph = compiled, compiled.graph
        self._exchange = exchange  # over messages of its own
        self._complete = not compiled.schedule.final  # whether the messages that only a reader needs were sent
        self.trace = trace
        self.converged = converged  # what this promises is in docs/convergence.md
        self.status = status  # the same in words: converged, or why not and what to do
        self.error_estimate = error_estimate  # nats that learned messages may have added to the posterior; 0 if none is

    @property
    def unsent(self) -> Unsent:
        """The messages that could not be computed."""
        return self._exchange.unsent

    def _send_the_rest(self) -> None:
        """Send the messages that nothing in the loop reads, once."""
        if self._complete:
            return
        self._complete = True
        missing = len(self.unsent)
        for task in self._compiled.schedule.final:
            self._compiled.send(self._exchange, task)
        self.trace.late = self._exchange.counts
        if len(self.unsent) > missing:
            self.converged, self.status = False, unsent_sentence(self._graph, self.unsent)
            warnings.warn(self.status, OracleWarning if self.unsent.n_failed else ConvergenceWarning, stacklevel=4)

    def messages(self) -> Snapshot:
        """All messages, those that only a reader needs included; a run of the same structure can begin with them."""
        self._send_the_rest()
        return self._exchange.tables.snapshot(copy=False)

    def _belief(self, node: Node) -> Family:
        """The belief of a node, completed only if something is missing there."""
        if node.position in self._compiled.hidden and not node.fully_observed:
            return self._hidden_belief(node)
        if node.position in self._compiled.late:
            self._send_the_rest()
        return self._exchange.tables.belief(node)

    @property
    def n_sweeps(self) -> int:
        """The number of sweeps; 0 where one exact pass was enough."""
        return len(self.trace)

    def __getitem__(self, variable: Variable | str) -> Family:
        if isinstance(variable, str):
            node = self._find(variable)
            return self._belief(node).reshape(node.shape)
        _check_variable(variable)
        self._check_model(variable)
        node = variable.node
        if not in_run(self._graph, node) and node.made is not None:
            return belief_of_expression(
                self._graph, self._belief, self._joint_belief, lambda: self._groups, node, variable.entries()
            )
        if not in_run(self._graph, node):
            raise ModelError(
                f"variable {node.name!r} was added to the model after this posterior was computed; run infer again"
            )
        belief = self._belief(self._graph.nodes[node.position])
        if variable.index is None:
            return belief.reshape(variable.shape)
        return belief[variable.index.reshape(-1)].reshape(variable.shape)

    def _check_model(self, variable: Variable) -> None:
        """Refuse variables of other models, and of this one as it is since it was given other data."""
        check_model(variable.name, variable.model.graph, self._graph.live or self._graph, self._graph.version)

    def _joint_belief(self, form: Affine) -> Family | None:
        """The belief of an expression that lies in one block; None of any other."""
        for kind in self._compiled.blocks:
            rows = rows_in_block(self._graph, kind.factor.block, form)
            joint = None if rows is None else kind.joint(self._exchange.tables)
            if rows is not None and joint is not None:
                return belief_in_block(kind.factor, joint, form, rows)
        return None

    def _hidden_belief(self, node: Node) -> Family:
        """The belief of an expression inside a block that no factor of the run reads."""
        for kind in self._compiled.blocks:
            joint = kind.joint(self._exchange.tables)
            if node.position in kind.factor.block.rows and joint is not None:
                return kind.factor.belief_of(node, joint)
        return node.uniform()

    @property
    def structure(self) -> dict[str, str]:
        """How each of the user's unobserved variables was kept: "joint" with others, or "factorised".

        For a block that was too large to be solved, it says how wrong the estimated standard deviations may be.
        """
        words = {e.node: "joint" for p in self._graph.plates for e in p.edges.values() if e.joint}
        for kind in self._compiled.blocks:
            words |= dict.fromkeys(kind.factor.block.nodes, "factorised" if kind.factor.block.alone else "joint")
            errors = kind.estimated_errors(self._exchange.tables) or {}
            words |= {k: f"joint, standard deviations {e.in_words()}" for k, e in errors.items()}
        free = [n for n in self._graph.nodes if n.given and not n.fully_observed]
        return {n.name: words.get(n.position, "factorised") for n in free}

    def covariance(self, a: Variable, b: Variable) -> np.ndarray:
        """The joint covariance of two variables or expressions, of shape ``(*a.shape, *b.shape)``.

        The components of vectors count as a last axis. The covariance is 0 if nothing connects the two. If messages
        treat dependent quantities as independent, an error says so.

        >>> from heliograph.engine import Model
        >>> model = Model()
        >>> a, b = model.gaussian("a", 0.0, variance=1.0), model.gaussian("b", 0.0, variance=1.0)
        >>> y = model.gaussian("y", a + b, variance=1.0, observed=1.0)
        >>> print(f"{model.infer().covariance(a, b):.6f}")
        -0.333333
        """
        check_pair(a, b)
        for x in (a, b):
            self._check_model(x)
        return covariance_of(self._graph, self._joints(), lambda: self._groups, self.__getitem__, a, b)

    def _joints(self) -> list[tuple[BlockFactor, Joint | None]]:
        """The blocks with their joint beliefs."""
        return [(kind.factor, kind.joint(self._exchange.tables)) for kind in self._compiled.blocks]

    def save(self, path: str | PathLike[str]) -> None:
        """Write the beliefs to a file of JSON and arrays, which `load_posterior` can read without the model."""
        save_posterior(self, path, joint_covariance(self._graph, self._joints()))

    @cached_property
    def _groups(self) -> list[np.ndarray]:
        return dependent_groups(self._graph)

    def _find(self, name: str) -> Node:
        for node in self._graph.nodes:
            if node.name == name:
                return node
        names = [n.name for n in self._graph.nodes if n.given]
        raise ModelError(f"no variable is called {name!r}; there are {names}")

    @cached_property
    def log_evidence(self) -> float:
        """``log p(observed)`` as EP estimates it; exact on trees of exact factors."""
        self._send_the_rest()
        return log_evidence(self._graph, self._compiled.plates, self._exchange)

    def as_prior(self) -> Mapping[str, Family]:
        """The beliefs of the user's unobserved variables by name, as priors for the next batch.

        Use one as ``model.gaussian("w", posterior.as_prior()["w"])`` or with ``model.variable``. Taking two that
        are correlated warns: as separate priors they are independent.
        """
        priors: dict[str, Family] = {}
        for node in self._graph.nodes:
            if node.given and node.observed is None:
                belief = self._belief(node).reshape(node.shape)
                if not np.all(belief.proper):
                    raise ModelError(f"the belief of {node.name!r} is improper and cannot be a prior")
                priors[node.name] = belief
        return Priors(priors, lambda: joint_correlation(self._graph, self._joints()))

    # ---- draws and predictions ----------------------------------------------------------------------------------
    def sample(
        self, size: int = 1000, variables: Sequence[str | Variable] | None = None, *, seed: Seed = 0
    ) -> dict[str, np.ndarray]:
        """Draws of the user's unobserved variables by name, each of shape ``(size, *shape)``.

        Vectors have one more axis. Variables that are kept joint (`structure`) are drawn jointly, all others
        independently.

        Parameters
        ----------
        size, seed
            The number of draws, and the seed of their generator.
        variables
            Names, variables or expressions; all variables by default.

        Examples
        --------
        >>> from heliograph.engine import Model
        >>> model = Model()
        >>> a, b = model.gaussian("a", 0.0, variance=1.0), model.gaussian("b", 0.0, variance=1.0)
        >>> y = model.gaussian("y", a + b, variance=1e-6, observed=1.0)
        >>> draws = model.infer().sample(500, seed=1)
        >>> bool(np.std(draws["a"] + draws["b"]) < 0.002)
        True
        """
        return sampled(seed, self.source(), variables, check_draws(size))

    def predict(self, target: Variable | str, *, draws: int = 4000, seed: Seed = 0, **data: Any) -> Prediction:
        """Predict a variable, for new data given by the names of `model.data` or once more for the old data.

        Variables that the new data reach (through their own arguments or their parents') are drawn anew from their
        parents; all others have their posterior. Observed variables without new data are drawn once more.

        Parameters
        ----------
        target
            The name of a variable, or a variable or expression of the model.
        draws, seed
            The number of draws, and the seed of their generator.
        **data
            New values of named data.
        """
        return predicted(seed, self.source(), target, data, check_draws(draws))

    def log_likelihood(self, pointwise: bool = False) -> Any:
        """``log E p(y_i | parents)`` under the posterior: the sum, or, if `pointwise`, an array per variable."""
        return summed(pointwise_log_likelihood(self._graph, self._belief), pointwise)

    def _draws(self, rng: np.random.Generator, nodes: Sequence[int], n: int) -> dict[int, np.ndarray]:
        return drawn(rng, self._compiled, self._exchange.tables, self._belief, nodes, n)

    def source(self) -> Source:
        """This posterior as a source of draws."""
        return Source(self._graph, self._draws, self._graph.script)

    @property
    def graph(self) -> Graph:
        """The graph of the run."""
        return self._graph

    def __repr__(self) -> str:
        state = "converged" if self.converged else "not converged"
        return shortened(
            f"Posterior({', '.join(self)}; {state} after {self.n_sweeps} sweep{'' if self.n_sweeps == 1 else 's'})", 300
        )


def _check_variable(variable: object) -> None:
    if not isinstance(variable, Variable):
        raise ModelError(f"a posterior is asked for a variable or its name, not {type(variable).__name__}")
