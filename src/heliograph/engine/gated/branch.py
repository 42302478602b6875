"""One branch of a model with gates, and what several of them predict together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from heliograph.engine.posterior import Posterior
from heliograph.engine.predicting import Prediction, joined_predictions, predicted_in
from heliograph.errors import ModelError
from heliograph.families import Family
from heliograph.graph.records import Node
from heliograph.graph.replay import Replay
from heliograph.graph.variable import Variable
from heliograph.numerics.special import logsumexp

__all__ = ["Branch", "mixed_log_likelihood", "posterior_of", "predicted_by"]


@dataclass(frozen=True, eq=False)
class Branch:
    """One combination of the switches' values.

    Attributes
    ----------
    switches
        Their values by node; `values` has them by name.
    probability, log_evidence
        Of the branch given the data, and of the data and the switches' values together.
    posterior, model
        What EP found, and the model that it ran on; None where the branch is impossible.
    """

    switches: Mapping[Node, int]
    probability: float
    log_evidence: float
    posterior: Posterior | None
    model: Replay | None

    @property
    def values(self) -> dict[str, int]:
        """The values of the switches by name."""
        return {node.name: value for node, value in self.switches.items()}

    @property
    def words(self) -> str:
        """The values of the switches in words."""
        return " and ".join(f"{name} = {value}" for name, value in self.values.items())

    def has(self, x: Variable | str) -> bool:
        """Whether a variable, or one of this name, is part of the branch."""
        if self.posterior is None or self.model is None:
            return False
        return x in self.posterior if isinstance(x, str) else self.model.has(x)

    def knows(self, x: Variable | str) -> bool:
        """Return whether a variable, or counts of this name, are part of the branch, observed or not."""
        if self.model is None:
            return False
        if not isinstance(x, str):
            return self.model.has(x)
        return x in self.model.graph.counts or any(node.name == x for node in self.model.graph.nodes)

    def __getitem__(self, x: Variable | str) -> Family:
        if self.posterior is None or self.model is None:
            raise ModelError(f"the branch {self.words} is impossible and has no beliefs")
        if not self.has(x):
            raise ModelError(f"the branch {self.words} has no variable {x if isinstance(x, str) else x.name!r}")
        return self.posterior[x if isinstance(x, str) else self.model.variable(x)]

    def covariance(self, a: Variable, b: Variable) -> np.ndarray:
        """The joint covariance of two variables or expressions in this branch."""
        if self.posterior is None or self.model is None:
            raise ModelError(f"the branch {self.words} is impossible and has no beliefs")
        return self.posterior.covariance(self.model.variable(a), self.model.variable(b))

    def __repr__(self) -> str:
        return f"Branch({self.words}: probability {self.probability:.4g}, log evidence {self.log_evidence:.6g})"


def posterior_of(branch: Branch) -> Posterior:
    """What EP found in a possible branch."""
    assert branch.posterior is not None
    return branch.posterior


def predicted_by(
    rng: np.random.Generator, branches: Sequence[Branch], target: Variable | str, name: str, n: int
) -> Prediction:
    """Draws of a variable by the branches that have it, as many of each as its probability makes."""
    if not branches:
        raise ModelError(f"no branch with a positive probability has a variable {name!r}")
    weights = np.array([b.probability for b in branches])
    parts: list[Prediction] = []
    for b, count in zip(branches, rng.multinomial(n, weights / weights.sum()).tolist(), strict=True):
        if count:
            assert b.model is not None
            here = target if isinstance(target, str) else b.model.variable(target)
            parts.append(predicted_in(rng, posterior_of(b).source(), b.model.graph, here, set(), count))
    if len({p.samples.shape[1:] for p in parts}) > 1:
        raise ModelError(f"{name!r} has another shape in some branches; ask each of posterior.branches for it")
    return joined_predictions(parts)


def mixed_log_likelihood(branches: Sequence[Branch]) -> dict[str, np.ndarray]:
    """How probable each observed value is under all branches that have it, by the name of its variable; NaN where missing."""
    found: dict[str, list[tuple[float, np.ndarray]]] = {}
    for b in branches:
        for name, values in posterior_of(b).log_likelihood(pointwise=True).items():
            if name not in b.values:  # only in its branch does a switch count as observed
                found.setdefault(name, []).append((b.probability, values))
    mixed: dict[str, np.ndarray] = {}
    for name, parts in found.items():
        if len({values.shape for _, values in parts}) > 1:
            raise ModelError(f"{name!r} has another shape in some branches; ask each of posterior.branches")
        weights = np.array([p for p, _ in parts])
        log_w = np.log(weights / weights.sum()).reshape(-1, *([1] * parts[0][1].ndim))
        mixed[name] = np.asarray(logsumexp(log_w + np.stack([values for _, values in parts]), axis=0))
    return mixed
