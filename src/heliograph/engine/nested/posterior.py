"""The posterior of a model with hyper-parameters: a mixture of what EP found at their values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from os import PathLike
from typing import Any, cast

import numpy as np

from heliograph.engine.covariances import check_pair
from heliograph.engine.nested.integrating import Whole
from heliograph.engine.nested.marginal import Marginal
from heliograph.engine.nested.points import Point
from heliograph.engine.nested.reading import at, covariance_of, likelihood_of, number_of
from heliograph.engine.nested.records import Integration
from heliograph.engine.nested.shares import Share, shares_of
from heliograph.engine.posterior import Posterior
from heliograph.engine.predicting import Prediction, Script, Source, check_draws, joined_predictions, predicted, summed
from heliograph.engine.priors import DRAWS, Priors, correlation_of_draws, lengths_of
from heliograph.engine.readable import ReadablePosterior, check_model, checked_names
from heliograph.engine.saving import save_posterior
from heliograph.engine.trace import Trace
from heliograph.engine.unsent import Unsent
from heliograph.errors import ModelError
from heliograph.families import Family, Mixture, MultivariateGaussian
from heliograph.families.coordinates import event_size, logs_of
from heliograph.graph.records import Graph
from heliograph.graph.symbols import Symbol
from heliograph.graph.variable import Variable
from heliograph.numerics.checks import generator_of

__all__ = ["IntegratedPosterior"]

_LONG = 12  # entries of a vector, beyond which its covariance is not interpolated: too many numbers, and often nearly singular
_NUMBERS = 2e7  # that the components of one belief may take: of very large variables fewer nodes are read


class IntegratedPosterior(ReadablePosterior):
    """The beliefs of a model with hyper-parameters.

    ``posterior[theta]`` is the marginal of a hyper-parameter. ``posterior[x]`` is a `Mixture` over the values of
    the hyper-parameters, which is read like a belief: mean, variance, sd, quantile, interval, cdf, sample.
    Expressions work as with any posterior.

    Attributes
    ----------
    converged, status
        Whether the runs and the integration have settled, and the same in words.
    log_evidence
        That of the whole model, integrated over the hyper-parameters.
    integration
        How the integral was computed, with its estimated error.
    """

    def __init__(
        self,
        script: Script,
        whole: Whole,
        values: Mapping[str, np.ndarray],
        integration: Integration,
        log_evidence: float,
        doubts: str,
    ) -> None:
        """`values` holds the hyper-parameters at the nodes; `doubts` is empty, or says why the run has not converged."""
        assert script.model is not None
        self._script, self._live, self._version = script, script.model.graph, script.model.graph.version
        self._whole = whole
        self._values = values
        self._mixtures: dict[str, Mixture] = {}  # that draws have asked for
        self.integration = integration
        self.log_evidence = log_evidence  # of the whole model
        self.converged = not doubts
        self.status = "; ".join([doubts or "converged", *integration.remarks])

    @property
    def best(self) -> Posterior:
        """The posterior at the best of the values that were tried; its standard deviations are too small."""
        return at(max(self._whole.points, key=lambda p: p.log_density))

    # ---- how the runs went --------------------------------------------------------------------------------------
    @property
    def trace(self) -> Trace:
        """The history of the run at the best value."""
        return self.best.trace

    @property
    def unsent(self) -> Unsent:
        """The messages that could not be computed at the best value."""
        return self.best.unsent

    @property
    def n_sweeps(self) -> int:
        """The sweeps of all runs."""
        return self.integration.n_sweeps

    @property
    def error_estimate(self) -> float:
        """Nats that learned messages may have added to the posterior, the most at any value that counts."""
        heavy = np.abs(self.integration.weights) > 0.01
        found = [
            p.posterior.error_estimate for p, h in zip(self._whole.points, heavy, strict=True) if h and p.posterior
        ]
        return float(np.max(found, initial=0.0))

    @property
    def structure(self) -> dict[str, str]:
        """How each of the user's unobserved variables was kept: "joint" with others, or "factorised"."""
        return self.best.structure

    # ---- reading ------------------------------------------------------------------------------------------------
    def __getitem__(self, x: Variable | Symbol | str) -> Any:
        if isinstance(x, Symbol):
            return self._symbol(x)
        if isinstance(x, str):
            return self._marginal(x) if x in self._values else self._mixed([at(p)[x] for p in self._whole.points])
        if not isinstance(x, Variable):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ModelError(
                f"a posterior is asked for a variable, a hyper-parameter or its name, not {type(x).__name__}"
            )
        self._check(x.model.graph, x.name)
        number = number_of(self._whole, self._values, x)
        if number is not None:
            return Marginal(x.name, number, self._whole.weights)
        return self._mixed([self._read(p, x) for p in self._whole.points])

    def _check(self, graph: Graph, name: str) -> None:
        check_model(name, graph, self._live, self._version)

    def _symbol(self, x: Symbol) -> Marginal:
        self._check(x.model.graph, x.name)
        if x.hyper is not None:
            return self._marginal(x.hyper.name)
        n = len(self._whole.weights)
        each = [x.at({k: v[i] for k, v in self._values.items()}) for i in range(n)]
        return Marginal(x.name, np.stack(each), self._whole.weights)

    def _marginal(self, name: str) -> Marginal:
        return Marginal(name, self._values[name], self._whole.weights)

    def _read(self, point: Point, x: Variable) -> Family:
        assert point.model is not None
        return at(point)[point.model.variable(x)]

    def _mixed(self, beliefs: list[Family]) -> Mixture:
        """What EP found at the points, interpolated at the nodes; of long vectors the components, one by one."""
        if isinstance(beliefs[0], MultivariateGaussian) and event_size(beliefs[0]) > _LONG:
            beliefs = [cast(MultivariateGaussian, b).marginals() for b in beliefs]
        first = beliefs[0]
        shape, n = first.shape, first.size
        fixed = first.reshape((n,)).is_point
        coordinates = logs_of(type(first))
        rows = [coordinates.encode(b.reshape((n,))) for b in beliefs]
        found = np.stack([np.where(fixed[:, None], 0.0, r) for r in rows])  # (P, n, q)
        if not np.isfinite(found).all():
            raise ModelError("the belief of this variable is improper at some values of the hyper-parameters")
        spread, weights = self._nodes(found[0].size)
        at_nodes = np.tensordot(spread, found, axes=1)  # (K, n, q)
        k, d = len(weights), event_size(first)
        members, valid = coordinates.decode(at_nodes.reshape(k * n, -1), d)
        if not valid.all():
            raise ModelError(
                "the belief of this variable cannot be interpolated between values of the hyper-parameters"
            )
        if fixed.any():
            known = first.reshape((n,))[np.tile(np.arange(n), k)]
            members = members.where(~np.tile(fixed, k), known)
        return Mixture(weights, members.reshape((k, *shape)))

    def _nodes(self, n_numbers: int) -> tuple[np.ndarray, np.ndarray]:
        """The matrix from points to nodes, and their weights; fewer, of equal weight, for very large variables."""
        spread, weights = self._whole.spread, self._whole.weights
        most = max(64, int(_NUMBERS / max(n_numbers, 1)))
        if len(weights) <= most:
            return spread, weights
        order = np.lexsort(self._whole.u.T[::-1])
        ends = np.cumsum(weights[order])
        chosen = order[np.minimum(np.searchsorted(ends, (np.arange(most) + 0.5) / most), len(order) - 1)]
        return spread[chosen], np.full(most, 1.0 / most)

    def covariance(self, a: Variable, b: Variable) -> np.ndarray:
        """The joint covariance of two variables or expressions: that at each value, and that of their means between values."""
        check_pair(a, b)
        for x in (a, b):
            self._check(x.model.graph, x.name)
        return covariance_of(self._whole, lambda x: number_of(self._whole, self._values, x), a, b)

    def log_likelihood(self, pointwise: bool = False) -> Any:
        """As `Posterior.log_likelihood`; what is expected is so over the hyper-parameters, too."""
        return summed(likelihood_of(self._whole), pointwise)

    def as_prior(self) -> Mapping[str, Family]:
        """The members with the means and variances of the user's unobserved variables by name, for the next batch."""
        names = [n.name for n in self._live.nodes if n.given and n.observed is None and n.name not in self._values]
        long = [
            n.name for n in self._live.nodes if n.name in names and (n.dimension or 0) > _LONG and n.family.gaussian
        ]
        if long:
            raise ModelError(
                f"the joint belief of the long vector {long[0]!r} over hyper-parameters is no prior; read its mean and sd"
            )
        read = {name: self[name].projected() for name in names}
        return Priors(read, lambda: correlation_of_draws(self.sample(DRAWS, names), lengths_of(read)))

    # ---- for people ---------------------------------------------------------------------------------------------
    @property
    def graph(self) -> Graph:
        """The graph of the run at the best value."""
        return self.best.graph

    def __iter__(self) -> Iterator[str]:
        """The names of the hyper-parameters, then of the unobserved variables."""
        free = [n.name for n in self.graph.nodes if n.given and not n.fully_observed and n.name not in self._values]
        return iter([*self._values, *free])

    def notes(self) -> list[str]:
        """Sentences on how the runs went."""
        return [f"log evidence {self.log_evidence:.6g}; {self.status}", repr(self.integration)]

    def save(self, path: str | PathLike[str]) -> None:
        """Write the beliefs to a file of JSON and arrays, which `load_posterior` reads back without the model."""
        save_posterior(self, path, None)

    def sample(
        self, size: int = 1000, variables: Sequence[str | Variable | Symbol] | None = None, *, seed: Any = 0
    ) -> dict[str, np.ndarray]:
        """Joint draws by name: the hyper-parameters at one point for each draw, and the variables as EP found them there.

        The arguments are those of `Posterior.sample`.
        """
        rng = generator_of(seed)
        names = list(self) if variables is None else checked_names(variables, list(self))
        parts: list[dict[str, np.ndarray]] = []
        for share in self._shares(rng, check_draws(size)):
            graph = at(share.point).graph
            free = [n for n in graph.nodes if n.given and not n.fully_observed]
            draws = self._draw(share, rng, [n.position for n in free], share.n)
            one = {n.name: draws[n.position].reshape(share.n, *n.shape, *draws[n.position].shape[2:]) for n in free}
            hypers = {name: np.repeat(np.asarray(v)[None], share.n, axis=0) for name, v in share.values.items()}
            parts.append({**one, **{name: v for name, v in hypers.items() if name in self._values}})
        order = rng.permutation(size)
        return {name: np.concatenate([p[name] for p in parts])[order] for name in names}

    def predict(self, target: Variable | str, *, draws: int = 4000, seed: Any = 0, **data: Any) -> Prediction:
        """Predict a variable, as `Posterior.predict` does; each draw has its own values of the hyper-parameters."""
        rng = generator_of(seed)
        parts: list[Prediction] = []
        for share in self._shares(rng, check_draws(draws)):
            source = Source(at(share.point).graph, partial(self._draw, share), self._script, share.values)
            parts.append(predicted(rng, source, target, data, share.n))
        return joined_predictions(parts)

    def _shares(self, rng: np.random.Generator, n: int) -> list[Share]:
        return shares_of(rng, self._whole, {**self.integration.fixed, **self._values}, n, set(self._values))

    def _draw(self, share: Share, rng: np.random.Generator, nodes: Sequence[int], n: int) -> dict[int, np.ndarray]:
        """Draws of the nearest run, moved to the means and sds that the beliefs have at these values of the hyper-parameters."""
        run = at(share.point)
        draws = run.source().draw(rng, nodes, n)
        for k in nodes:
            node = run.graph.nodes[k]
            if node.name in share.values:  # a number here, which the run does not look at
                draws[k] = np.broadcast_to(np.reshape(share.values[node.name], draws[k].shape[1:]), draws[k].shape)
                continue
            if not node.family.gaussian or not node.given or node.fully_observed:
                continue
            mixed, here = self._kept(node.name), run[node.name]
            if len(mixed.weights) != len(self._whole.weights):
                continue  # of very large variables the beliefs are not known at every value
            there = mixed.components[share.node]
            shape = draws[k].shape[1:]
            mean, sd, old_mean, old_sd = (np.reshape(a, shape) for a in (there.mean, there.sd, here.mean, here.sd))
            draws[k] = mean + (draws[k] - old_mean) * np.where(old_sd > 0, sd / np.where(old_sd > 0, old_sd, 1.0), 0.0)
        return draws

    def _kept(self, name: str) -> Mixture:
        if name not in self._mixtures:
            self._mixtures[name] = self[name]
        return self._mixtures[name]

    def __repr__(self) -> str:
        return f"IntegratedPosterior({', '.join(self._values)} integrated over {self.integration.n_evaluations} evaluations)"
