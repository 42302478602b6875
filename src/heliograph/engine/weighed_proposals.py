"""What draws of the unknowns are drawn from: a belief, wider and reflected ones, and kernels around the draws that weigh most.

Every draw is weighed by the model over the mixture of all that it may have been drawn from, so that a portion that finds
nothing costs draws, and never makes an answer wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from heliograph.engine.blocks.records import Block
from heliograph.engine.weighed_draws import Drawn
from heliograph.families import Bernoulli, Beta, Family, Gaussian
from heliograph.graph.records import Graph
from heliograph.numerics.special import gammaln, logsumexp

__all__ = ["Component", "Kernels", "Mixture", "Portion", "coordinates"]

_TINY = 1e-300
_CLUSTERS = 8  # kernels
_MOVES = 4  # of the centres to the middle of the draws that are nearest to them
_RESAMPLED = 1000
_DOF = 5.0  # of the kernels, which are Student's: a tail that was missed may be drawn
_DOUBT = 0.05  # the least probability of either value of a switch
_WIDTH = 1.5  # of a kernel's variance over that of its draws


class Values(NamedTuple):
    """Draws before any function is computed: base scalars (N, S) of every block, and entries (m, S) of other nodes."""

    blocks: list[np.ndarray]
    nodes: dict[int, np.ndarray]  # those that were not observed


class Component(Protocol):
    """Something that draws, and knows the density of what anything drew."""

    def draw(self, rng: np.random.Generator, n: int, free: dict[int, np.ndarray]) -> Values:
        """Draw that many; `free` are the entries of nodes in no block that are to be drawn."""
        ...

    def log_density(self, drawn: Drawn) -> np.ndarray:
        """Of what was drawn freely, all else being functions of that."""
        ...


class Portion(NamedTuple):
    """Gaussian blocks, and nodes beside them by themselves."""

    blocks: list[tuple[np.ndarray, np.ndarray]]  # mean, and a root of the covariance
    nodes: dict[int, Family]

    def draw(self, rng: np.random.Generator, n: int, free: dict[int, np.ndarray]) -> Values:
        """Draw that many."""
        nodes = {k: _sampled(belief[free[k]], rng, n) for k, belief in self.nodes.items()}
        bases = [mean[:, None] + root @ rng.standard_normal((root.shape[1], n)) for mean, root in self.blocks]
        return Values(bases, nodes)

    def log_density(self, drawn: Drawn) -> np.ndarray:
        """Of what was drawn freely."""
        total = np.zeros(drawn.n)
        for k, free in drawn.alone.items():
            total += self.nodes[k][free].log_density(drawn.values[k][free].T).sum(axis=1)
        for block, (mean, root) in zip(drawn.blocks, self.blocks, strict=True):
            total += _log_normal(block.base[block.free], mean[block.free], root[block.free])
        return total


def _sampled(belief: Family, rng: np.random.Generator, n: int) -> np.ndarray:
    """Draws (m, n) of every entry."""
    drawn = belief.sample(rng, n).T
    return drawn if isinstance(belief, (Gaussian, Bernoulli)) else np.maximum(drawn, _TINY)


def _log_normal(x: np.ndarray, mean: np.ndarray, root: np.ndarray) -> np.ndarray:
    lower = np.linalg.cholesky(root @ root.T)
    z = np.linalg.solve(lower, x - mean[:, None])
    return -0.5 * (len(lower) * np.log(2 * np.pi) + np.sum(z**2, axis=0)) - np.log(np.diag(lower)).sum()


class Mixture(NamedTuple):
    """Several components, with the number of draws of each."""

    components: Sequence[Component]
    numbers: Sequence[int]

    def draw(
        self, rng: np.random.Generator, graph: Graph, blocks: Sequence[Block], beliefs: dict[int, Family]
    ) -> Drawn:
        """As many draws as the numbers say, from one component after the other; `beliefs` are of nodes in no block."""
        # one rule for all components: what the run is certain of, as it is of a switch to rounding, has one value in all draws
        free = {node: np.flatnonzero(~belief.is_point) for node, belief in beliefs.items()}
        parts = [c.draw(rng, n, free) for c, n in zip(self.components, self.numbers, strict=True)]
        drawn = Drawn(graph, sum(self.numbers))
        for node, belief in beliefs.items():
            values = np.repeat(belief.mean[:, None], drawn.n, axis=1)
            if all(node in p.nodes for p in parts):
                values[free[node]] = np.concatenate([p.nodes[node] for p in parts], axis=1)
            drawn.add_node(graph.nodes[node], values, free[node])
        for k, block in enumerate(blocks):
            drawn.add_block(block, np.concatenate([p.blocks[k] for p in parts], axis=1))
        return drawn

    def log_density(self, drawn: Drawn) -> np.ndarray:
        """Of what was drawn freely, under the mixture."""
        share = np.log(np.array(self.numbers) / sum(self.numbers))
        return logsumexp(np.array([c.log_density(drawn) for c in self.components]) + share[:, None], axis=0)


def coordinates(drawn: Drawn) -> np.ndarray:
    """What was drawn freely, as numbers (d, S) over the whole line: logarithms of positive values, log odds of shares."""
    parts = [_line(drawn.graph, k, drawn.values[k][free])[0] for k, free in _numbers(drawn).items()]
    return np.concatenate([*(b.base[b.free] for b in drawn.blocks), *parts])


def _numbers(drawn: Drawn) -> dict[int, np.ndarray]:
    """The nodes in no block that are numbers, and the entries of each that were not observed."""
    return {k: free for k, free in drawn.alone.items() if not drawn.graph.nodes[k].family.discrete}


def _switches(drawn: Drawn) -> dict[int, np.ndarray]:
    return {k: free for k, free in drawn.alone.items() if drawn.graph.nodes[k].family.discrete}


def _line(graph: Graph, node: int, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values on the whole line, and the logarithm of what they change by."""
    family = graph.nodes[node].family
    if family is Gaussian:
        return x, np.zeros_like(x)
    if family is Beta:
        rest = np.maximum(1.0 - x, _TINY)
        return np.log(x) - np.log(rest), -np.log(x) - np.log(rest)
    return np.log(x), -np.log(x)


def _from_line(graph: Graph, node: int, y: np.ndarray) -> np.ndarray:
    family = graph.nodes[node].family
    if family is Gaussian:
        return y
    if family is Beta:
        return np.clip(1.0 / (1.0 + np.exp(-y)), _TINY, 1.0)
    return np.clip(np.exp(y), _TINY, 1.0 / _TINY)


class Kernels:
    """Student's kernels around clusters of weighted draws, each with the covariance of its own."""

    def __init__(self, rng: np.random.Generator, like: Drawn, weight: np.ndarray) -> None:
        """`weight` of the draws of `like`."""
        self.like = like
        shares = {k: like.values[k][free] @ weight for k, free in _switches(like).items()}
        self.switches = {k: Bernoulli(_DOUBT + (1.0 - 2.0 * _DOUBT) * share) for k, share in shares.items()}
        y = coordinates(like)[:, rng.choice(like.n, _RESAMPLED, p=weight)].T  # (s, d)
        scale = np.maximum(y.std(axis=0), 1e-12 * (1.0 + np.abs(y).max(axis=0)))
        z = y / scale
        centres = _spread(rng, z, min(_CLUSTERS, len(z)))
        for _ in range(_MOVES):
            nearest = _far(z, centres).argmin(axis=1)
            used = np.unique(nearest)
            centres = np.stack([z[nearest == k].mean(axis=0) for k in used])
        nearest = _far(z, centres).argmin(axis=1)
        within = (z - centres[nearest]).T @ (z - centres[nearest]) / len(z)
        self.kernels: list[tuple[np.ndarray, np.ndarray]] = []  # centres and roots of covariances
        counts: list[int] = []
        for k in np.unique(nearest):
            gap = z[nearest == k] - centres[k]
            share = len(gap) / (len(gap) + 2.0 * z.shape[1])
            own: np.ndarray = share * gap.T @ gap / len(gap) + (1.0 - share) * within + 1e-8 * np.eye(z.shape[1])
            root: np.ndarray = np.linalg.cholesky(_WIDTH * own)
            self.kernels.append((centres[k] * scale, scale[:, None] * root))
            counts.append(len(gap))
        self.share = np.array(counts) / sum(counts)

    def draw(self, rng: np.random.Generator, n: int, free: dict[int, np.ndarray]) -> Values:
        """Draw that many; what is a function of others is left for the functions."""
        d = len(self.kernels[0][0])
        tail = np.sqrt(rng.chisquare(_DOF, n) / _DOF)
        which = rng.choice(len(self.kernels), n, p=self.share)
        z, y = rng.standard_normal((d, n)) / tail, np.empty((d, n))
        for k, (mean, lower) in enumerate(self.kernels):
            y[:, which == k] = mean[:, None] + lower @ z[:, which == k]
        made = self._values(y)
        made.nodes.update({k: p.sample(rng, n).T for k, p in self.switches.items()})
        return made

    def _values(self, y: np.ndarray) -> Values:
        blocks: list[np.ndarray] = []
        nodes: dict[int, np.ndarray] = {}
        start = 0
        for block in self.like.blocks:
            base, n_free = np.zeros((len(block.base), y.shape[1])), int(block.free.sum())
            base[block.free] = y[start : start + n_free]
            blocks.append(base)
            start += n_free
        for k, free in _numbers(self.like).items():
            nodes[k] = _from_line(self.like.graph, k, y[start : start + len(free)])
            start += len(free)
        return Values(blocks, nodes)

    def log_density(self, drawn: Drawn) -> np.ndarray:
        """Of what was drawn freely."""
        y, d = coordinates(drawn), len(self.kernels[0][0])
        each: list[np.ndarray] = []
        for mean, lower in self.kernels:
            far = np.sum(np.linalg.solve(lower, y - mean[:, None]) ** 2, axis=0)
            each.append(-(_DOF + d) / 2 * np.log1p(far / _DOF) - np.log(np.diag(lower)).sum())
        constant = gammaln((_DOF + d) / 2) - gammaln(_DOF / 2) - d / 2 * np.log(_DOF * np.pi)
        change = np.zeros(drawn.n)
        for k, free in _numbers(drawn).items():
            change += _line(drawn.graph, k, drawn.values[k][free])[1].sum(axis=0)
        for k, free in _switches(drawn).items():
            change += self.switches[k].log_density(drawn.values[k][free].T).sum(axis=1)
        return constant + change + logsumexp(np.array(each) + np.log(self.share)[:, None], axis=0)


def _spread(rng: np.random.Generator, z: np.ndarray, n: int) -> np.ndarray:
    """That many of the points, far ones the rather (k-means++): a mode of few draws has a centre, too."""
    centres = z[rng.integers(len(z), size=1)]
    while len(centres) < n:
        far = _far(z, centres).min(axis=1)
        if not far.sum() > 0:
            break
        centres = np.concatenate([centres, z[rng.choice(len(z), 1, p=far / far.sum())]])
    return centres


def _far(z: np.ndarray, centres: np.ndarray) -> np.ndarray:
    return np.sum((z[:, None] - centres) ** 2, axis=2)
