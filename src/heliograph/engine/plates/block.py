"""A Gaussian block in a run: one linear system per sweep answers every port."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heliograph.engine.blocks.plate import BlockFactor, Joint, vector_beliefs
from heliograph.engine.blocks.system import Error
from heliograph.engine.plates.exchange import Exchange
from heliograph.engine.plates.protocol import EvidencePoint, PlateKind
from heliograph.engine.schedule import Task
from heliograph.engine.tables import Rows, Tables
from heliograph.families import Family, Gaussian
from heliograph.graph.records import Plate

__all__ = ["BlockPlate"]


_NARROW = 0.01  # variance of a narrow cavity over the belief's, times the squared number of scalars per site
_WIDE = 1e-6  # of the least known weight: the precision of a site that stands for no information
_FEW = 0.12  # base scalars per site, above which a run starts from uniform sites


class Narrow(NamedTuple):
    """The beliefs at whose means a block showed narrow cavities."""

    mean: np.ndarray  # (n,)
    variance: np.ndarray  # (n,)


class BlockPlate(PlateKind):
    """Messages by `BlockFactor`; the joint belief is solved for once for all ports."""

    def __init__(self, plate: Plate, factor: BlockFactor) -> None:
        self.plate = plate
        self.factor = factor
        self._latest: tuple[object, Joint | None] | None = None  # the state of the messages, and the belief under them

    def start(self, rng: np.random.Generator, tables: Tables) -> None:
        """Send the block's marginals first, because the other factors need them as cavities."""
        joint = self.joint(tables)
        if joint is None:
            self._start_wide(tables)
            return
        for port in self.factor.ports:
            if port in self.factor.shown:
                self._store(tables, port, joint)

    def _start_wide(self, tables: Tables) -> None:
        """Begin with a very wide distribution where uniform sites leave none, as for a product of two unknowns.

        Without this the run could not begin: other factors send nothing while their cavities are improper.
        """
        factor = self.factor
        weight = _WIDE * min((float(k.weight.min(initial=np.inf)) for k in factor.block.known), default=1.0)
        sites: dict[str, Family] = {}
        for port in factor.site_ports:
            site = tables.others(self.plate, port)
            wide = _precision_of(site, weight)
            sites[port] = wide if site.point is None and not np.any(site.naturals[-1]) else site
        joint = factor.solve(sites)
        if joint is not None:
            for port in factor.site_ports:
                tables.store(self.plate, port, factor.marginal(port, joint), None)
            self._latest = None

    def send(self, exchange: Exchange, task: Task, damping: float, rows: Rows = None) -> None:
        """The marginals of the joint belief, without what came in; a block is exact, and never damped."""
        self._store(exchange.tables, task.to, self.joint(exchange.tables))
        exchange.counts.n_messages += exchange.tables.sent[task].size

    def log_evidence(self, at: EvidencePoint) -> float:
        """The block's integral under its sites; its nodes count here, and nowhere else."""
        joint = self.joint(at.exchange.tables)
        return np.nan if joint is None else self.factor.log_mass(joint)

    def centres(self, tables: Tables, known: dict[int, np.ndarray]) -> dict[int, np.ndarray]:
        """The means of the joint belief."""
        joint = self.joint(tables)
        return {} if joint is None else {n: m for n, m in self.factor.centres(joint).items() if n in known}

    def estimated_errors(self, tables: Tables) -> dict[int, Error] | None:
        """How wrong the standard deviations of each node may be; None where the block is solved."""
        system = self.factor.system
        if system.refused is None:
            return None
        joint, block = self.joint(tables), self.factor.block
        starts = {p.node: p.start for p in self.factor.at.values()}
        return {
            k: Error(np.inf) if joint is None else system.error(block.rows[k], starts.get(k, -1), joint.solution)
            for k in block.nodes
        }

    # ---- the joint belief -----------------------------------------------------------------------------------
    def joint(self, tables: Tables) -> Joint | None:
        """The joint belief under the messages of a table; None where it is not a distribution."""
        if self._latest is not None and self._latest[0] is tables.state:
            return self._latest[1]
        joint = self.factor.solve(self.sites(tables))
        self._latest = tables.state, joint
        return joint

    @property
    def share(self) -> float:
        """Base scalars for each number that holds a site."""
        factor = self.factor
        n_numbers = factor.n_sites + sum(len(factor.at[p].rows) for p in factor.vector_sites)
        return factor.block.n_columns / max(n_numbers, 1)

    @property
    def starts_uniform(self) -> bool:
        """Whether sites are so few that uniform ones are the better start."""
        return self.share > _FEW

    def take(self, tables: Tables, joint: Joint) -> None:
        """Believe what was solved for elsewhere under the messages of a table."""
        self._latest = tables.state, joint

    def narrow(self, tables: Tables) -> Narrow | None:
        """Give the other factors narrow cavities at the means of the belief.

        What a factor says of a narrow cavity is its slope and its curvature there: a step of Newton's method, without
        derivatives. None where there is no belief, and where sites are few, so that such a start is worse than a uniform one.
        """
        factor, joint, share = self.factor, self.joint(tables), self.share
        n = factor.n_sites
        if joint is None or share > _FEW:
            return None
        scale = _NARROW * share**2
        found = {p: (joint.vectors[p][0], joint.vectors[p][1] * scale) for p in factor.vector_sites}
        mean = np.concatenate([joint.mean[:n], *(m.reshape(-1) for m, _ in found.values())])
        spread = [joint.variance[:n] * scale, *(np.einsum("mii->mi", v).reshape(-1) for _, v in found.values())]
        variance = np.concatenate(spread)
        if not (variance > 0).all():
            return None
        for port in factor.scalar_sites:
            part = slice(factor.at[port].start, factor.at[port].start + len(factor.at[port].rows))
            message = Gaussian.from_naturals((mean[part] / variance[part], 1.0 / variance[part]))
            tables.store(self.plate, port, message, None)
        for port, (m, v) in found.items():
            tables.store(self.plate, port, vector_beliefs(m, v), None)
        self._latest = tables.state, joint  # sending does not change the incoming messages
        return Narrow(mean, variance / scale)

    def sites(self, tables: Tables) -> dict[str, Family]:
        """What other factors say of the expressions of the block, by port."""
        return {port: tables.others(self.plate, port) for port in self.factor.site_ports}

    def _store(self, tables: Tables, port: str, joint: Joint | None) -> None:
        site = tables.others(self.plate, port) if port in self.factor.site_ports else None
        tables.store(self.plate, port, self.factor.answer(port, site, joint), None)
        self._latest = tables.state, joint  # sending does not change the incoming messages


def _precision_of(site: Family, weight: float) -> Family:
    """Messages around 0 with this precision in every direction."""
    shift, precision = site.naturals
    if precision.ndim == shift.ndim:
        return site.from_naturals((np.zeros_like(shift), np.full_like(precision, weight)))
    return site.from_naturals(
        (np.zeros_like(shift), np.broadcast_to(weight * np.eye(shift.shape[-1]), precision.shape))
    )
