"""Where an importance sampler draws the inputs: products of messages, and mixtures of Gaussians fitted on the axes.

The density used in the weights is always that of the whole mixture, whichever part a draw came from, so a part that
covers the cavity bounds the weights however badly another part was fitted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

from heliograph.families import Family
from heliograph.numerics.logarithms import LOG_2PI
from heliograph.oracles.problem import Problem, continuous_columns

__all__ = ["Pieces", "Proposal", "draw", "log_density", "n_uniforms", "take_proposal"]


class Pieces(NamedTuple):
    """Intervals of the only axis, side by side or apart, in each of which draws are uniform."""

    low: np.ndarray  # (n, k), sorted; the last ones may be empty
    high: np.ndarray  # (n, k)
    share: np.ndarray  # (n, k), rows sum to 1


class Proposal(NamedTuple):
    """A mixture for every row: first the products, then the Gaussians, then pieces; and a table for every discrete input."""

    weights: np.ndarray  # (n, P + K), or (n, P + K + 1) with pieces; rows sum to 1
    products: tuple[tuple[Family, ...], ...]  # P of them: one proper message for each continuous input
    means: np.ndarray  # (n, K, C)
    roots: np.ndarray  # (n, K, C, C), lower Cholesky factors of the covariances
    inverses: np.ndarray  # (n, K, C, C), their inverses
    tables: tuple[np.ndarray, ...]  # (n, number of values) for each discrete input
    pieces: Pieces | None = None


def take_proposal(proposal: Proposal, rows: np.ndarray) -> Proposal:
    """The proposals of some rows."""
    return Proposal(
        proposal.weights[rows],
        tuple(tuple(m[rows] for m in product) for product in proposal.products),
        proposal.means[rows],
        proposal.roots[rows],
        proposal.inverses[rows],
        tuple(t[rows] for t in proposal.tables),
        None if proposal.pieces is None else Pieces(*(a[rows] for a in proposal.pieces)),
    )


def n_uniforms(problem: Problem) -> int:
    """Uniform numbers a draw takes: one to choose the part, then those of the inputs."""
    return 1 + sum(p.axis.n_uniforms for p in problem.inputs)


def draw(problem: Problem, proposal: Proposal, uniforms: np.ndarray) -> np.ndarray:
    """Coordinates (n, s, D) from uniforms (n, s, n_uniforms)."""
    n, s = uniforms.shape[:2]
    u = np.zeros((n, s, problem.n_coordinates))
    n_products = len(proposal.products)
    continuous = problem.continuous
    parts = proposal.weights.shape[1]
    part = np.zeros((n, s), dtype=int)
    for edge in np.cumsum(proposal.weights, axis=1).T[:-1]:  # in turn: a sum over a short axis takes longer
        part += uniforms[:, :, 0] >= edge[:, None]
    for c, product in enumerate(proposal.products):
        mine = part == c
        i, j = np.nonzero(mine)
        at = 1
        for port, message in zip(continuous, product, strict=True):
            own = slice(at, at + port.axis.n_uniforms)
            if parts == 1:
                u[:, :, port.columns] = port.axis.draw(message, uniforms[:, :, own])
            elif port.axis.linear:  # drawing for all is cheaper than a matrix for each draw
                every = port.axis.draw(message, uniforms[:, :, own])
                u[:, :, port.columns] = np.where(mine[..., None], every, u[:, :, port.columns])
            else:
                u[i, j, port.columns] = port.axis.draw(message[i], uniforms[i, j, own][:, None, :])[:, 0]
            at = own.stop
    n_gaussians = proposal.means.shape[1]
    if n_gaussians:
        i, j = np.nonzero((part >= n_products) & (part < n_products + n_gaussians))
        k = part[i, j] - n_products
        columns = continuous_columns(problem)
        z = special.ndtri(uniforms[i, j, 1 : 1 + len(columns)])
        u[i[:, None], j[:, None], columns] = proposal.means[i, k] + np.einsum("mab,mb->ma", proposal.roots[i, k], z)
    if proposal.pieces is not None:
        mine = part == parts - 1
        for i in np.flatnonzero(mine.any(axis=1)):
            u[i, mine[i], 0] = _along(Pieces(*(a[i] for a in proposal.pieces)), uniforms[i, mine[i], 1])
    at = 1 + sum(p.axis.n_uniforms for p in continuous)
    for port, table in zip(problem.discrete, proposal.tables, strict=True):
        steps = np.cumsum(table, axis=1)[:, None, :-1]
        u[:, :, port.columns.start] = (uniforms[:, :, at : at + 1] >= steps).sum(axis=-1)
        at += 1
    return u


def log_density(problem: Problem, proposal: Proposal, u: np.ndarray) -> np.ndarray:
    """``log`` of the proposal's density of the coordinates, (n, s)."""
    terms = []
    with np.errstate(divide="ignore"):  # a part of weight 0 has log weight -inf, as it should
        log_weights = np.log(proposal.weights)[:, None, :]
    for c, product in enumerate(proposal.products):
        total = np.zeros(u.shape[:2]) + log_weights[:, :, c]
        for port, message in zip(problem.continuous, product, strict=True):
            v = u[..., port.columns]
            total += port.axis.log_message(message, v) + port.axis.log_jacobian(v)
        terms.append(total)
    if proposal.means.shape[1]:
        v = u[..., continuous_columns(problem)]
        log_roots = np.log(np.diagonal(proposal.inverses, axis1=-2, axis2=-1)).sum(axis=-1)  # (n, K)
        for k in range(proposal.means.shape[1]):
            z = (v - proposal.means[:, None, k]) @ np.swapaxes(proposal.inverses[:, k], -1, -2)
            norm = log_roots[:, k] - 0.5 * v.shape[-1] * LOG_2PI
            terms.append(log_weights[:, :, len(proposal.products) + k] + norm[:, None] - 0.5 * (z * z).sum(axis=-1))
    if proposal.pieces is not None:
        inside = np.stack([_log_along(Pieces(*(a[i] for a in proposal.pieces)), u[i, :, 0]) for i in range(len(u))])
        terms.append(log_weights[:, :, -1] + inside)
    log_q = _log_sum(terms)
    for port, table in zip(problem.discrete, proposal.tables, strict=True):
        value = u[:, :, port.columns.start].astype(int)
        log_q = log_q + np.log(np.take_along_axis(table, value, axis=1))
    return log_q


def _along(pieces: Pieces, uniforms: np.ndarray) -> np.ndarray:
    """Positions (s,) from uniforms: the inverse of a distribution function that is linear in each piece."""
    steps = np.cumsum(pieces.share)
    k = np.minimum(np.searchsorted(steps, uniforms * steps[-1], side="left"), len(steps) - 1)
    k = np.where(pieces.share[k] > 0, k, np.argmax(pieces.share))  # rounding past the last piece
    within = (uniforms * steps[-1] - (steps[k] - pieces.share[k])) / pieces.share[k]
    return pieces.low[k] + np.clip(within, 0.0, 1.0) * (pieces.high[k] - pieces.low[k])


def _log_along(pieces: Pieces, u: np.ndarray) -> np.ndarray:
    """The log density (s,) of positions."""
    k = np.maximum(np.searchsorted(pieces.low, u, side="right") - 1, 0)
    width = pieces.high[k] - pieces.low[k]
    inside = (u >= pieces.low[k]) & (u <= pieces.high[k]) & (width > 0) & (pieces.share[k] > 0)
    height = np.where(inside, pieces.share[k], 1.0) / np.where(inside, width, 1.0)
    return np.where(inside, np.log(height), -np.inf)


def _log_sum(terms: list[np.ndarray]) -> np.ndarray:
    if len(terms) == 1:
        return terms[0]
    top = terms[0]
    for t in terms[1:]:
        top = np.maximum(top, t)
    safe = np.where(np.isfinite(top), top, 0.0)
    total = np.zeros_like(top)
    for t in terms:
        total += np.exp(t - safe)
    with np.errstate(divide="ignore"):  # a point that no part reaches has density 0
        return safe + np.log(total)
