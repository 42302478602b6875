"""Whether a joint Gaussian belief can be trusted where its unknowns meet in curved factors: products, maxima, black boxes.

EP replaces each of these by a Gaussian site. The posterior of two unknowns whose product is well known lies along a hyperbola,
and no Gaussian follows that: EP's standard deviations are then too small, by a third in bad cases. So a settled run draws from
its own belief, weighs every draw by the factors over their sites, and compares the moments (docs/decisions/0054).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from heliograph.engine.blocks.dense import DenseSystem
from heliograph.engine.blocks.rows import over
from heliograph.engine.compiled import CompiledModel
from heliograph.engine.plates.block import BlockPlate
from heliograph.engine.plates.gathering import gather_all
from heliograph.engine.tables import Tables
from heliograph.numerics.special import logsumexp

__all__ = ["Curved", "curved_sites"]

_SEED = 0  # of the check's own draws, so that equal runs give equal answers
_DRAWS = 4000
_FEWEST = 128  # draws, below which they tell nothing
_EVALUATIONS = 1_000_000  # of factors, at most, unless the fewest draws of many rows take more
_MOST_ROWS = 30_000  # beyond which nothing is checked: so many rows leave little room for a bend
_BYTES = 4e8  # that the draws may take
_OFF = 0.1  # of a standard deviation, or of its logarithm: a difference worth a warning, beyond its noise
_NOISE = 1.5  # at least, over the root of the effective number of draws
_WIDER = 3.0  # over the root of the number of unknowns: what is added to a variance of 1
_LOW = 0.03  # of the draws: with an effective number below this nothing was found out


class Curved(NamedTuple):
    """Unknowns whose belief is not as Gaussian as their posterior."""

    names: str
    ratio: float  # of the standard deviation that was found to EP's; NaN where the draws were too unlike the posterior
    shift: float  # of the mean, in standard deviations
    evidence: float = 0.0  # what must be added to EP's, as far as that is known


def curved_sites(compiled: CompiledModel, tables: Tables, boxes: bool = True) -> list[Curved]:
    """The unknowns of curved factors whose moments weighted draws do not confirm; `boxes`: those of black boxes too."""
    found: list[Curved] = []
    for block in compiled.blocks:
        meetings = [m for m in _meetings(compiled, block, boxes) if _worth_a_look(m.plate, tables)]
        if meetings and block.factor.refused is None:
            found += _compare(block, tables, meetings)
    return found


class _Meeting(NamedTuple):
    plate: Any  # the plate of the curved factor
    port: str  # of the block


def _meetings(compiled: CompiledModel, block: BlockPlate, boxes: bool) -> list[_Meeting]:
    learned: frozenset[int] = frozenset() if boxes else frozenset(compiled.learning_plates)
    found: list[_Meeting] = []
    for port in block.factor.vector_sites:
        node = block.factor.at[port].node
        others = [p for p, _ in compiled.graph.edges_of(node) if p.position not in learned | {block.plate.position}]
        if len(others) == 1 and hasattr(others[0].factor, "log_at"):
            found.append(_Meeting(others[0], port))
    return found


def _worth_a_look(plate: Any, tables: Tables) -> bool:
    """Return whether the factor of a plate says that its belief may be bent, if it can tell."""
    return not hasattr(plate.factor, "bends") or plate.factor.bends(gather_all(tables, plate))


def _compare(block: BlockPlate, tables: Tables, meetings: list[_Meeting]) -> list[Curved]:
    factor, joint = block.factor, block.joint(tables)
    n_rows = sum(m.plate.size for m in meetings)
    n = min(_DRAWS, max(_EVALUATIONS // n_rows, _FEWEST))
    if joint is None or n_rows > _MOST_ROWS or 8.0 * n * factor.block.n_columns > _BYTES:
        return []
    base, log_own = _draws(factor.system, joint.solution, n)
    log_weight = log_own.copy()
    drawn: list[tuple[str, np.ndarray]] = []
    for plate, port in meetings:
        rows, d = factor.at[port].rows, factor.at[port].dimension or 1
        values = (over(rows, base) + rows.constant[:, None]).reshape(-1, d, n).transpose(0, 2, 1)  # (m, S, d)
        weight = _log_weight(plate, tables, block, port, values)
        if weight is None:
            continue
        log_weight += weight
        drawn.append((tables.graph.nodes[factor.at[port].node].name, values))
    if not drawn or not np.isfinite(log_weight).any():
        return []
    weight, own = (np.exp(w - logsumexp(w)) for w in (log_weight, log_own))
    # the largest of as many differences as there are unknowns, each with a standard deviation of 1
    noise = max(_NOISE, float(np.sqrt(2.0 * np.log(2.0 * len(base)))))
    return [c for name, values in drawn if (c := _judge(name, values, weight, own, noise)) is not None]


def _draws(system: Any, solution: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Draws (N, n) of the base scalars, and the log weights that make them draws of the belief.

    Draws of a belief that is too narrow would hardly see the tails that it misses: half of them are wider, as much as the
    number of unknowns lets them be.
    """
    rng = np.random.default_rng(_SEED)
    if not isinstance(system, DenseSystem):
        return system.sample(rng, solution, n).T, np.zeros(n)
    d = solution.root.shape[1]
    z = rng.standard_normal((n, d))
    width = np.sqrt(1.0 + _WIDER / np.sqrt(d))
    z[n // 2 :] *= width
    far = np.sum(z**2, axis=1)
    wide = -0.5 * far / width**2 - d * np.log(width)
    return (solution.mean + z @ solution.root.T).T, -0.5 * far - np.logaddexp(-0.5 * far, wide)


def _log_weight(plate: Any, tables: Tables, block: BlockPlate, port: str, values: np.ndarray) -> np.ndarray | None:
    """``log`` of factors over sites, summed over rows, at draws of the vectors that they meet; None where it is not known."""
    incoming = gather_all(tables, plate)
    own = next(k for k, e in plate.edges.items() if e.node == block.factor.at[port].node)
    said = plate.factor.log_at(incoming, values)
    joint = block.joint(tables)
    if said is None or joint is None:
        return None
    log_t, kept = said
    cavity = incoming[own]
    good = cavity.proper & ~cavity.is_point & np.isfinite(log_t).any(axis=1)
    u = values[good][..., kept]
    if len(kept) == values.shape[-1]:  # the site itself: a vector that is made of fewer numbers has no density
        shift, precision = (n[good] for n in tables.sent[plate.position, own].naturals)
        site = np.einsum("msi,mi->ms", u, shift) - 0.5 * np.einsum("msi,mij,msj->ms", u, precision, u)
    else:
        mean, covariance = joint.vectors[port]
        site = _log_normal(u, mean[good][:, kept], covariance[good][:, kept[:, None], kept])
        site -= _log_normal(u, cavity.mean[good][:, kept], cavity.covariance[good][:, kept[:, None], kept])
    return (log_t[good] - site).sum(axis=0)


def _log_normal(x: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Log densities of draws (m, S, d), up to a constant."""
    gap = x - mean[:, None]
    return -0.5 * np.einsum("msi,mij,msj->ms", gap, np.linalg.inv(covariance), gap)


def _judge(name: str, values: np.ndarray, weight: np.ndarray, own: np.ndarray, noise: float) -> Curved | None:
    """The difference that weights make to the moments of some vectors under the belief's own, where it is beyond its noise."""
    effective = 1.0 / np.sum(weight**2)
    if effective < _LOW * len(weight):
        return Curved(name, np.nan, np.nan)
    (mean, sd), (new_mean, new_sd) = _moments(values, own), _moments(values, weight)
    live = sd > 0
    shift = np.abs(np.where(live, new_mean - mean, 0.0)) / np.where(live, sd, 1.0)
    log_ratio = np.log(np.where(live, new_sd, 1.0) / np.where(live, sd, 1.0))
    if max(shift.max(), np.abs(log_ratio).max()) <= _OFF + noise / np.sqrt(effective):
        return None
    worst = np.unravel_index(np.abs(log_ratio).argmax(), log_ratio.shape)
    return Curved(name, float(np.exp(log_ratio[worst])), float(shift.max()))


def _moments(values: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard deviations of draws (m, S, d)."""
    mean = np.einsum("s,msd->md", weight, values)
    return mean, np.sqrt(np.einsum("s,msd->md", weight, (values - mean[:, None]) ** 2))
