"""A Gaussian block as one factor of the graph: it reads a message per expression and answers with the joint belief.

To the rest of the engine a block is a plate with a port at every node of its own. What comes in at a port is the product of the
messages that other factors sent to the node: a site ``exp(shift z - tau z^2 / 2)`` on every expression. What goes out is the
marginal of the joint belief, divided by what came in.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from heliograph.engine.blocks.choosing import Limits, system_for
from heliograph.engine.blocks.connections import parts_of_rows, parts_of_scalars, parts_without_private
from heliograph.engine.blocks.dependence import dependence
from heliograph.engine.blocks.folding import FoldedSystem, folded_system
from heliograph.engine.blocks.private import Fold, fold_of, private_nodes, without_private
from heliograph.engine.blocks.records import Block
from heliograph.engine.blocks.rows import Rows, joined, take
from heliograph.engine.blocks.system import Cavities, Sites, VectorSites, cavities_of, with_weak_sites
from heliograph.engine.joint_plates import port_of
from heliograph.factors import Factor
from heliograph.families import Family, Gaussian, MultivariateGaussian
from heliograph.graph.records import Graph, Node
from heliograph.numerics.sparse import TooExpensiveError

__all__ = ["BlockFactor", "Joint", "vector_beliefs"]

# share of a marginal's precision that is not the site's own, below which its cavity is solved for separately
_DOMINATED = 1e-7
_SMALLEST = 1e-300  # a variance below this is a point mass, or nearly
_FEW = 64  # base scalars up to which it is not worth while to look for private ones
_SINGULAR = 1e-9  # an eigenvalue of a correlation matrix below this counts as 0: that direction has no variance
_LOST = 1e-13  # of a marginal's precision: a cavity with less is only the rounding of a division


class Joint(NamedTuple):
    """The joint belief of a block, and the marginals of the expressions that a run looks at in every sweep."""

    solution: Any  # of the block's linear system
    mean: np.ndarray  # (n,) of the sites and the other scalars that are shown
    variance: np.ndarray  # (n,)
    vectors: dict[
        str, tuple[np.ndarray, np.ndarray]
    ]  # port with sites on vectors -> means (m, d), covariances (m, d, d)
    plain: bool = (
        False  # every variance is a positive number, and no site is nearly all that is known of its expression
    )
    cavities: Cavities | None = None  # of sites so much stronger than all else that a division would lose the cavity


class _Port(NamedTuple):
    node: int
    rows: Rows
    dimension: int | None
    start: int  # of its rows among those whose marginals a `Joint` holds; -1 where there are none


class BlockFactor(Factor):
    """The factor of one block."""

    name = "block"
    families: ClassVar = {}

    def __init__(self, graph: Graph, block: Block, sites: set[int], limits: Limits = Limits()) -> None:  # noqa: B008
        """`sites` are the nodes at which other factors meet the block."""
        self.block = block
        nodes = [n for n in (graph.nodes[k] for k in block.nodes) if not n.fully_observed]
        fold = _fold(block, nodes, sites)
        free = [n for n in nodes if n.position in sites or (n.given and not _is_private(fold, block, n))]
        scalar = [n for n in free if n.dimension is None]
        scalar.sort(key=lambda n: n.position not in sites)  # sites first
        self.scalar_sites = tuple(port_of(n.position) for n in scalar if n.position in sites)
        self.vector_sites = tuple(port_of(n.position) for n in free if n.position in sites and n.dimension is not None)
        self.site_ports = frozenset((*self.scalar_sites, *self.vector_sites))
        self.shown = frozenset(port_of(n.position) for n in free)
        ends = np.cumsum([0, *(len(block.rows[n.position]) for n in scalar)])
        starts = {n.position: int(k) for n, k in zip(scalar, ends[:-1], strict=True)}
        self.n_sites = int(ends[len(self.scalar_sites)])
        self.at = {
            port_of(n.position): _Port(n.position, block.rows[n.position], n.dimension, starts.get(n.position, -1))
            for n in free  # what no factor reads is computed when the posterior is read
        }
        self.ports = tuple(self.at)  # type: ignore[misc]
        rows = joined([block.rows[n.position] for n in scalar], block.n_columns)
        vectors = tuple((self.at[p].rows, self.at[p].dimension or 1) for p in self.vector_sites)
        if fold is None:
            self.system = system_for(block.known, rows, self.n_sites, vectors, limits)
        else:
            self.system = folded_system(fold, rows, self.n_sites, limits)

    @property
    def refused(self) -> TooExpensiveError | None:
        """The reason for which the block is estimated; None where it is solved."""
        return self.system.refused

    @property
    def cost(self) -> float:
        """Roughly, the operations of one dense solve."""
        n = float(self.block.n_columns)
        return n**3 + self.n_sites * n**2

    @cached_property
    def _heaviest(self) -> float:
        """The largest known precision."""
        return max((float(k.weight.max(initial=0.0)) for k in self.block.known), default=1.0) or 1.0

    @cached_property
    def parts(self) -> dict[str, np.ndarray]:  # type: ignore[override]
        """The connected part of the block that each entry of a node belongs to, -1 for constants."""
        if isinstance(self.system, FoldedSystem):
            part = parts_without_private(self.system.fold)
        else:
            groups = [(k.rows, 1) for k in self.block.known] + [(self.system.site_rows, 1)]
            groups += [(self.at[p].rows, self.at[p].dimension or 1) for p in self.vector_sites]
            part = parts_of_scalars(groups, self.block.n_columns)
        return {
            port: parts_of_rows(p.rows, part).reshape(-1, p.dimension or 1).max(axis=1) for port, p in self.at.items()
        }

    @cached_property
    def _reads(self) -> dict[str, frozenset[str]]:
        if not self.site_ports:  # nothing else speaks to the block
            return dict.fromkeys(self.at, frozenset())
        return dependence(self._short_rows(), [*self.scalar_sites, *self.vector_sites], lambda: self.parts)

    def _short_rows(self) -> dict[str, Rows] | None:
        """The rows of every port, without private scalars; None where entries are vectors."""
        if any(p.dimension is not None for p in self.at.values()):
            return None
        if not isinstance(self.system, FoldedSystem):
            return {port: p.rows for port, p in self.at.items()}
        fold, found = self.system.fold, dict[str, Rows]()
        for port, (_, rows, _, start) in self.at.items():
            site = port in self.scalar_sites
            left = None if site else without_private(rows, fold.number, fold.rest.n_columns)
            found[port] = take(fold.site_rows, np.arange(start, start + len(rows))) if left is None else left
        return found

    def depends(self, to: str, points: frozenset[str]) -> frozenset[str]:
        """The ports whose sites the belief of `to` depends on, apart from the sites of its own rows."""
        return self._reads[to]

    # ---- the joint belief -----------------------------------------------------------------------------------
    def solve(self, sites: Mapping[str, Family]) -> Joint | None:
        """The joint belief under the sites that came in; None where it is not a distribution."""
        shift, tau = np.empty(self.n_sites), np.empty(self.n_sites)
        places, values = list[np.ndarray](), list[np.ndarray]()  # of sites that are point masses
        for port in self.scalar_sites:
            message, start = sites[port], self.at[port].start
            part = slice(start, start + message.size)
            shift[part], tau[part] = message.naturals
            if message.point is not None and message.is_point.any():
                at = np.flatnonzero(message.is_point)
                shift[start + at], tau[start + at] = 0.0, 0.0
                places.append(start + at)
                values.append(message.point[at])
        vectors = tuple(
            VectorSites(self.at[p].rows, *(np.asarray(a) for a in sites[p].naturals)) for p in self.vector_sites
        )
        said = Sites(shift, tau, vectors)
        exact = {"fixed": np.concatenate(places), "values": np.concatenate(values)} if places else {}
        return self.under(said._replace(**exact))

    def under(self, said: Sites) -> Joint | None:
        """The joint belief under sites in one record; None where it is not a distribution."""
        solution = self.system.solve(said)
        if solution is None:
            solution = self.system.solve(with_weak_sites(said, self._heaviest))
        if solution is None:
            return None
        mean, variance = self.system.marginals(solution)
        strong = (said.tau * variance[: self.n_sites] > 1.0 - _DOMINATED).nonzero()[0]
        exact = said.fixed is not None
        cavities = cavities_of(self.system, strong, said) if len(strong) and not exact else None
        varies = variance.min(initial=1.0) > _SMALLEST and variance.max(initial=1.0) < np.inf
        found = dict(zip(self.vector_sites, self.system.vector_moments(solution), strict=True))
        return Joint(solution, mean, variance, found, not (len(strong) or exact) and bool(varies), cavities)

    def marginal(self, port: str, joint: Joint) -> Family:
        """The belief of every entry of a node."""
        _, rows, d, start = self.at[port]
        if start >= 0:
            part = slice(start, start + len(rows))
            return Gaussian.from_mean_variance(joint.mean[part], joint.variance[part])
        whole = self.system.whole(rows, joint.solution) if d == len(rows) else None
        if whole is not None:
            return whole
        if port in joint.vectors:
            return vector_beliefs(*joint.vectors[port])
        mean, variance = self.system.moments(rows, joint.solution, d)
        if d is None:
            return Gaussian.from_mean_variance(mean, variance)
        return vector_beliefs(mean.reshape(-1, d), variance)

    def answer(self, to: str, site: Family | None, joint: Joint | None) -> Family:
        """The marginal divided by what came in; NaN where the joint belief is not a distribution."""
        _, rows, d, start = self.at[to]
        if joint is None:
            n = len(rows) // (d or 1)
            if d is None:
                return Gaussian.from_naturals((np.full(n, np.nan), np.full(n, np.nan)))
            return MultivariateGaussian.from_naturals((np.full((n, d), np.nan), np.full((n, d, d), np.nan)))
        if joint.plain and start >= 0 and site is not None:  # scalars, nothing exact, no site that is all that is known
            part = slice(start, start + len(rows))
            (shift, tau), p = site.naturals, 1.0 / joint.variance[part]
            return Gaussian.from_naturals((p * joint.mean[part] - shift, p - tau))
        belief = self.marginal(to, joint)
        if site is None:
            return belief
        if d is not None:
            return belief / site
        cavity = _cavity(belief, site)
        if joint.cavities is not None:
            at = joint.cavities.sites - start
            mine = (at >= 0) & (at < len(rows))
            at, tau = at[mine], 1.0 / joint.cavities.variance[mine]
            cavity.naturals[0][at], cavity.naturals[1][at] = tau * joint.cavities.mean[mine], tau
        return cavity

    def belief_of(self, node: Node, joint: Joint) -> Family:
        """The belief of any node of the block, whether it has a port or not."""
        port = port_of(node.position)
        if port in self.at:
            return self.marginal(port, joint)
        mean, variance = self.system.moments(self.block.rows[node.position], joint.solution, node.dimension)
        if node.dimension is None:
            return Gaussian.from_mean_variance(mean, variance)
        return vector_beliefs(mean.reshape(-1, node.dimension), variance)

    def log_mass(self, joint: Joint) -> float:
        """``log`` of the block's integral under its sites, their statistics counted from the beliefs' means."""
        return self.block.log_constant + self.system.log_mass(joint.solution)

    def centres(self, joint: Joint) -> dict[int, np.ndarray]:
        """The mean of every node, entry by entry."""
        found: dict[int, np.ndarray] = {}
        for port, (node, rows, d, start) in self.at.items():
            if port in joint.vectors:
                found[node] = joint.vectors[port][0]
                continue
            mean = joint.mean[start : start + len(rows)] if start >= 0 else self.system.means(rows, joint.solution)
            found[node] = mean if d is None else mean.reshape(-1, d)
        return found


def _fold(block: Block, nodes: list[Node], sites: set[int]) -> Fold | None:
    """The block without the scalars that only one site reads, where leaving them out pays."""
    if block.n_columns <= _FEW or any(n.position in sites and n.dimension is not None for n in nodes):
        return None
    rows = joined([block.rows[n.position] for n in nodes if n.position in sites], block.n_columns)
    base = [n.position for n in nodes if n.position in block.base and n.dimension is None]
    private = private_nodes(block, base, rows) if len(rows) else []
    return fold_of(block, private, rows) if private else None


def _is_private(fold: Fold | None, block: Block, node: Node) -> bool:
    """Whether any entry of a node is made of private scalars."""
    return fold is not None and bool((fold.number[block.rows[node.position].sparse.indices] < 0).any())


def vector_beliefs(mean: np.ndarray, covariance: np.ndarray) -> MultivariateGaussian:
    """Beliefs of vectors: point masses where nothing varies.

    Where exact values fix some combinations of a vector, its covariance is singular, and a billionth of each variance is added.
    Components have units of their own, so that only correlations can tell.
    """
    d = mean.shape[1]
    diagonal = np.einsum("nii->ni", covariance)
    size = diagonal.max(axis=1, keepdims=True)
    known = size[:, 0] <= 0
    unit = np.sqrt(np.where(diagonal > 0, diagonal, np.where(size > 0, size, 1.0)))
    correlation = covariance / unit[:, :, None] / unit[:, None, :]
    singular = known | (np.linalg.eigvalsh(correlation)[:, 0] <= _SINGULAR)
    added = np.where(known, 1.0, np.where(singular, _SINGULAR, 0.0))[:, None] * unit**2
    covariance = covariance + added[:, :, None] * np.eye(d)
    belief = MultivariateGaussian(mean, covariance)
    if not known.any():
        return belief
    shift, precision = belief.naturals
    open_ = ~known
    naturals = np.where(open_[:, None], shift, 0.0), np.where(open_[:, None, None], precision, 0.0)
    return MultivariateGaussian.from_naturals(naturals, np.where(open_[:, None], np.nan, mean))


def _cavity(belief: Family, site: Family) -> Gaussian:
    """Belief over site; uniform where the site is exact, or where nothing but rounding is left of it."""
    (h, p), (s, t) = belief.naturals, site.naturals
    tau = p - t
    if belief.point is None and site.point is None and (tau > _LOST * p).all() and (p > 0).all():
        return Gaussian.from_naturals((h - s, tau))
    known = belief.is_point & ~site.is_point
    lost = (np.abs(tau) <= _LOST * np.abs(p)) | site.is_point | known
    naturals = np.where(lost, 0.0, h - s), np.where(lost, 0.0, tau)
    if belief.point is None or not known.any():
        return Gaussian.from_naturals(naturals)
    return Gaussian.from_naturals(naturals, np.where(known, belief.point, np.nan))
