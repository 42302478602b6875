"""The posterior of a model with gates: what EP found in every branch, weighed by the branch's probability."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np

from heliograph.engine.covariances import check_pair
from heliograph.engine.gated.branch import Branch, mixed_log_likelihood, posterior_of, predicted_by
from heliograph.engine.posterior import Posterior
from heliograph.engine.predicting import Prediction, check_draws, summed
from heliograph.engine.priors import DRAWS, Priors, correlation_of_draws, lengths_of
from heliograph.engine.readable import ReadablePosterior, check_model, digests_of
from heliograph.engine.saving import save_posterior
from heliograph.engine.trace import Trace
from heliograph.engine.unsent import Unsent
from heliograph.errors import ModelError
from heliograph.families import Bernoulli, Categorical, Family, Mixture
from heliograph.graph.builder import Builder
from heliograph.graph.records import Graph, Node
from heliograph.graph.variable import Variable
from heliograph.numerics.checks import generator_of

__all__ = ["GatedPosterior"]

_SHOWN = 8  # branches in a summary


class GatedPosterior(ReadablePosterior):
    """The beliefs of a model with gates.

    ``posterior[switch]`` holds the probabilities of the branches. ``posterior[x]`` is a `Mixture` over the
    branches. If only some branches have x, it is the belief given that one of these holds, and
    ``posterior.probability(x)`` is the probability of that.

    Attributes
    ----------
    converged, status
        Whether the runs of all branches have settled, and the same in words.
    log_evidence
        That of the whole model, summed over the branches.
    branches
        Every branch with its own evidence and beliefs.
    """

    def __init__(
        self, model: Builder, switches: Sequence[Node], branches: Sequence[Branch], log_evidence: float
    ) -> None:
        self._live, self._version = model.graph, model.graph.version
        self._switches = {node.name: node for node in switches}
        self.branches = tuple(branches)
        self.log_evidence = log_evidence  # of the whole model
        self._possible = [b for b in branches if b.probability > 0]
        self._digests = digests_of(model.graph.snapshot())
        open_ = [b for b in branches if b.posterior is not None and not b.posterior.converged]
        self.converged = not open_
        self.status = (
            "converged" if not open_ else "; ".join(f"where {b.words}: {posterior_of(b).status}" for b in open_)
        )

    @property
    def best(self) -> Branch:
        """The most probable branch."""
        return max(self.branches, key=lambda b: b.probability)

    # ---- how the runs went --------------------------------------------------------------------------------------
    @property
    def _runs(self) -> list[Posterior]:
        return [b.posterior for b in self.branches if b.posterior is not None]

    @property
    def graph(self) -> Graph:
        """The graph of the run in the most probable branch."""
        return posterior_of(self.best).graph

    @property
    def trace(self) -> Trace:
        """The history of the run in the most probable branch."""
        return posterior_of(self.best).trace

    @property
    def unsent(self) -> Unsent:
        """The messages that could not be computed in the most probable branch."""
        return posterior_of(self.best).unsent

    @property
    def n_sweeps(self) -> int:
        """The sweeps of all runs."""
        return sum(p.n_sweeps for p in self._runs)

    @property
    def error_estimate(self) -> float:
        """Nats that learned messages may have added to the posterior, the most in any branch."""
        return float(np.max([p.error_estimate for p in self._runs]))

    @property
    def structure(self) -> dict[str, str]:
        """How each of the user's unobserved variables was kept: "joint" with others, "factorised", or "enumerated"."""
        found = dict.fromkeys(self._switches, "enumerated")
        for p in self._runs:
            found = {**p.structure, **found}
        return found

    def digests(self) -> dict[str, str]:
        """Checksums of what was observed, in any branch, by name."""
        found = {name: {digest} for name, digest in self._digests.items()}
        for p in self._runs:
            for name, digest in p.digests().items():
                if name not in self._switches:
                    found.setdefault(name, set()).add(digest)
        return {name: " ".join(sorted(each)) for name, each in found.items()}

    # ---- reading ------------------------------------------------------------------------------------------------
    def __getitem__(self, variable: Variable | str) -> Any:
        name = self._checked(variable)
        if name in self._switches:
            return self._switch(self._switches[name])
        there = self._having(variable)
        total = sum(b.probability for b in there)
        beliefs, weights = [b[variable] for b in there], np.array([b.probability / total for b in there])
        first = beliefs[0]
        if len(beliefs) == 1:
            return first
        if any(type(b) is not type(first) or b.shape != first.shape for b in beliefs):
            raise ModelError(
                f"{name!r} is of another family or shape in some branches; ask each of posterior.branches for it"
            )
        rows = type(first).join([b.reshape((b.size,)) for b in beliefs])
        mixed = Mixture(weights, rows.reshape((len(beliefs), *first.shape)))
        return mixed.projected() if isinstance(first, (Bernoulli, Categorical)) else mixed

    def _checked(self, x: object) -> str:
        if isinstance(x, str):
            return x
        if not isinstance(x, Variable):
            raise ModelError(f"a posterior is asked for a variable or its name, not {type(x).__name__}")
        check_model(x.name, x.model.graph, self._live, self._version)
        return x.name

    def _having(self, x: Variable | str) -> list[Branch]:
        there = [b for b in self._possible if b.has(x)]
        if not there:
            raise ModelError(
                f"no branch with a positive probability has a variable {x if isinstance(x, str) else x.name!r}; there are "
                f"{list(self)}"
            )
        return there

    def _switch(self, node: Node) -> Family:
        p = np.zeros(node.dimension or 2)
        for b in self._possible:
            if node in b.switches:
                p[b.switches[node]] += b.probability
        if not p.any():
            raise ModelError(f"no branch with a positive probability has a variable {node.name!r}")
        p /= p.sum()
        return Bernoulli(p[1]) if node.family is Bernoulli else Categorical(p)

    def probability(self, variable: Variable | str) -> float:
        """The probability of the branches that have a variable: 1 for one outside all gates."""
        self._checked(variable)
        return float(sum(b.probability for b in self._having(variable)))

    def covariance(self, a: Variable, b: Variable) -> np.ndarray:
        """The joint covariance of two variables or expressions, given that a branch holds that has both."""
        check_pair(a, b)
        for x in (a, b):
            self._checked(x)
        there = [k for k in self._having(a) if k.has(b)]
        if not there:
            raise ModelError(f"no branch has both {a.name!r} and {b.name!r}")
        w = np.array([k.probability for k in there])
        w /= w.sum()
        inside = np.stack([k.covariance(a, b) for k in there])
        left, right = (np.stack([np.reshape(k[x].mean, -1) for k in there]) for x in (a, b))
        between = (left - w @ left).T @ (w[:, None] * (right - w @ right))
        return np.tensordot(w, inside, axes=1) + between.reshape(inside.shape[1:])

    def __iter__(self) -> Iterator[str]:
        """The names of the switches, then of the variables that are unobserved in some branch."""
        found = dict.fromkeys(self._switches)
        for b in self._possible:
            found |= dict.fromkeys(posterior_of(b))
        return iter(found)

    def as_prior(self) -> Mapping[str, Family]:
        """The members with the means and variances of the user's unobserved variables by name, for the next batch."""
        beliefs = {name: self[name] for name in self}
        read = {k: b.projected() if isinstance(b, Mixture) else b for k, b in beliefs.items()}
        return Priors(read, lambda: correlation_of_draws(self.sample(DRAWS, list(read)), lengths_of(read)))

    def sample(
        self, size: int = 1000, variables: Sequence[str | Variable] | None = None, *, seed: Any = 0
    ) -> dict[str, np.ndarray]:
        """Joint draws by name, each from one branch, drawn by its probability; NaN where that branch has no such variable.

        The arguments are those of `Posterior.sample`.
        """
        rng, n = generator_of(seed), check_draws(size)
        weights = np.array([b.probability for b in self._possible])
        counts = rng.multinomial(n, weights / weights.sum())
        order = rng.permutation(n)
        names = list(self) if variables is None else [self._checked(x) for x in variables]
        parts: list[tuple[dict[str, Any], int]] = []
        for b, count in zip(self._possible, counts.tolist(), strict=True):
            if count:
                known = {
                    name: b[name].sample(rng, count)
                    for name in names
                    if b.has(name) and name not in set(posterior_of(b))
                }
                parts.append(({**known, **posterior_of(b).sample(count, seed=rng), **b.values}, count))
        return {name: _drawn([(part.get(name), m) for part, m in parts], name)[order] for name in names}

    def predict(self, target: Variable | str, *, draws: int = 4000, seed: Any = 0, **data: Any) -> Prediction:
        """Predict a variable as `Posterior.predict` does, each draw in a branch that is drawn by its probability.

        If only some branches have the variable, the prediction is given that one of these holds.
        """
        name = self._checked(target)
        if data:
            raise ModelError(
                "a posterior over gates predicts for the data that its model has: write the rows to be predicted into it, as "
                f"NaN among the observed values, and ask for posterior[{name!r}]"
            )
        there = [b for b in self._possible if b.knows(target)]
        return predicted_by(generator_of(seed), there, target, name, check_draws(draws))

    def log_likelihood(self, pointwise: bool = False) -> Any:
        """``log E p(y_i | parents)`` under the posterior: its sum, or with `pointwise` an array for every observed variable.

        The expectation is over the branches, too; of a variable that only some have, over these.
        """
        return summed(mixed_log_likelihood(self._possible), pointwise)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the beliefs to a file of JSON and arrays, which `load_posterior` reads back without the model."""
        save_posterior(self, path, None)

    def notes(self) -> list[str]:
        """Sentences on how the runs went, and the most probable branches."""
        best = sorted(self.branches, key=lambda b: -b.probability)
        lines = [f"log evidence {self.log_evidence:.6g}; {self.status}", *map(repr, best[:_SHOWN])]
        return lines if len(best) <= _SHOWN else [*lines, f"and {len(best) - _SHOWN} branches that are less probable"]

    def __repr__(self) -> str:
        return f"GatedPosterior({', '.join(self)}; {len(self.branches)} branches, the best {self.best.words})"


def _drawn(parts: Sequence[tuple[Any, int]], name: str) -> np.ndarray:
    """The draws of all branches one after the other; a switch has one value for a whole branch."""
    shapes = {np.shape(draws)[1:] for draws, _ in parts if draws is not None}
    if len(shapes) != 1:
        raise ModelError(
            f"{name!r} is no unobserved variable of a drawn branch, or has another shape in some: ask posterior.branches"
        )
    shape = shapes.pop()
    return np.concatenate(
        [np.broadcast_to(np.nan if draws is None else draws, (m, *shape)).astype(float) for draws, m in parts]
    )
