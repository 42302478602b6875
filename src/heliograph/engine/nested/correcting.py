"""EP's evidence corrected by importance sampling: draws of the joint belief, weighed by the factors over their sites."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heliograph.engine.blocks.rows import over
from heliograph.engine.compiled import CompiledModel
from heliograph.engine.plates.block import BlockPlate
from heliograph.engine.plates.gathering import gather_all
from heliograph.engine.tables import Tables
from heliograph.errors import UnsupportedError
from heliograph.families import Gaussian
from heliograph.graph.records import Plate
from heliograph.numerics.special import logsumexp

__all__ = ["Corrected", "corrected_log_evidence"]

_DRAWS = 1000
_FEW = 200_000, 200  # evaluations of likelihoods at one value for a first look, and draws at the least
_ROWS = 50_000  # of a plate at a time


class Corrected(NamedTuple):
    """A log evidence by importance sampling."""

    log_evidence: float
    effective: float  # share of the draws that count


def corrected_log_evidence(compiled: CompiledModel, tables: Tables, seed: int, few: bool = False) -> Corrected:
    """``log`` of the block's integral under its sites times the mean of ``product of factors / product of sites`` over draws.

    It is for models whose unobserved variables are all in one block, which other factors meet one scalar at a time: likelihoods.
    The same seed gives the same draws at all values of the hyper-parameters, so that their noise is common to them. With `few`
    there are less where data are long.
    """
    block = _only_block(compiled)
    factor, joint = block.factor, block.joint(tables)
    if joint is None:
        return Corrected(-np.inf, 0.0)
    rng, rows = np.random.default_rng(seed), sum(len(factor.at[port].rows) for port in factor.scalar_sites)
    n_draws = min(_DRAWS, max(_FEW[0] // max(rows, 1), _FEW[1])) if few else _DRAWS
    base = factor.system.sample(rng, joint.solution, n_draws).T  # (N, S)
    log_weight = np.zeros(n_draws)
    for port in factor.scalar_sites:
        at = factor.at[port]
        centre = joint.mean[at.start : at.start + len(at.rows)]
        values = over(at.rows, base) + at.rows.constant[:, None]  # (n, S)
        shift, tau = tables.others(block.plate, port).naturals
        gap = values - centre[:, None]
        log_weight -= (shift - tau * centre) @ gap - 0.5 * tau @ gap**2
        for plate, edge in _likelihoods(compiled, block.plate, at.node):
            log_weight += _log_factor(tables, plate, edge, values)
    total = float(logsumexp(log_weight))
    effective = float(np.exp(2.0 * total - logsumexp(2.0 * log_weight))) / n_draws
    return Corrected(factor.log_mass(joint) + total - float(np.log(n_draws)), effective)


def _only_block(compiled: CompiledModel) -> BlockPlate:
    blocks, graph = compiled.blocks, compiled.graph
    inside = {e.node for b in blocks for e in b.plate.edges.values()}
    open_ = [n.name for n in graph.nodes if not n.fully_observed and n.position not in inside | compiled.hidden]
    if len(blocks) != 1 or open_ or blocks[0].factor.vector_sites or compiled.learning_plates:
        why = (
            f"variables {open_[:4]} are not in it"
            if open_
            else f"there are {len(blocks)}, or sites on vectors, or black boxes"
        )
        raise UnsupportedError(
            f"correct=True needs a model whose unobserved variables are one block of jointly Gaussian ones, and {why}; "
            "use correct=False"
        )
    return blocks[0]


def _likelihoods(compiled: CompiledModel, own: Plate, node: int) -> list[tuple[Plate, str]]:
    found = compiled.graph.edges_of(node)
    others = [(p, port) for p, port in found if p.position != own.position]
    for plate, port in others:
        free = [e for k, e in plate.edges.items() if k != port and not compiled.graph.nodes[e.node].fully_observed]
        if free:
            raise UnsupportedError(
                f"correct=True takes factors that meet one unobserved variable each, and {plate.name!r} meets two; "
                "use correct=False"
            )
    return others


def _log_factor(tables: Tables, plate: Plate, port: str, values: np.ndarray) -> np.ndarray:
    """``log`` of the product of a plate's factors at draws of the node at a port, ``(S,)``: many draws as one long plate."""
    incoming, n_draws = gather_all(tables, plate), values.shape[1]
    drawn = values[plate.edges[port].entries(plate.size)].T  # (S, n)
    n, at_once = plate.size, max(1, _ROWS // max(plate.size, 1))
    found: list[np.ndarray] = []
    for start in range(0, n_draws, at_once):
        part = drawn[start : start + at_once]
        rows = np.tile(np.arange(n), len(part))
        long = {name: x[rows] for name, x in incoming.items() if name != port}
        long[port] = Gaussian.point_mass(part.reshape(-1))
        found.append(np.asarray(plate.factor.log_z(long)).reshape(len(part), n).sum(axis=1))
    return np.concatenate(found)
