"""Whether a proposal for two unknown numbers leaves out a place that matters, found on a grid over the cavity.

Pilots follow the mass. A second mode with a thousandth of it, some deviations away, may get no draw and is then missed,
though it may make up a tenth of a variance: ``max(a, b)`` seen near 3 is either of the two, and the unlikely one is far from its
mean. A grid of 625 evaluations shows where the output passes the mode of its message, and that place gets draws.
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from heliograph.oracles.importance.proposal import Proposal, log_density
from heliograph.oracles.problem import Port, Problem, log_inputs, walk

__all__ = ["can_look_for_modes", "with_lost_modes"]

_REACH, _CELLS = 6.0, 24  # deviations of the cavity to either side, and cells on each axis
_UNDER = 30.0  # times fewer draws than a place deserves: it is left out
_MATTERS = 0.01  # share of a variance that may be left out: a KL of some 1e-5
_PARTS = 8  # Gaussians for the places that matter most
_GIVEN = 0.2  # share of the draws that they get
_WIDTH = 0.6  # deviation of each, in cells


def can_look_for_modes(problem: Problem) -> bool:
    """Whether two numbers with proper messages are unknown, and the output is one number without noise."""
    ports = problem.inputs
    two = len(ports) == 2 and all(not p.axis.discrete and p.axis.n_coordinates == 1 for p in ports)
    scalar = problem.output.axis.n_coordinates == 1 and not problem.sampler.stochastic
    return two and scalar and all(bool(p.message.proper.all()) for p in ports)


def with_lost_modes(rng: np.random.Generator, problem: Problem, proposal: Proposal) -> tuple[Proposal, np.ndarray, int]:
    """The proposals with Gaussians more where these left something out; the rows (n,) bool where; the calls spent."""
    n, k = problem.n, _CELLS
    moments = [p.axis.moments(p.message) for p in problem.inputs]
    centre = np.concatenate([m for m, _ in moments], axis=1)  # (n, 2)
    step = np.concatenate([np.sqrt(c[:, 0]) for _, c in moments], axis=1) * 2 * _REACH / k
    corners = _lattice(centre, step, np.arange(k + 1.0) - k / 2)
    walked = walk(rng, problem, corners)
    log_like = problem.output.axis.log_message(problem.output.message, walked.v)
    nothing = np.isnan(log_like) if walked.wrong is None else np.isnan(log_like) | (walked.wrong > 0)
    log_like = np.where(nothing, -np.inf, log_like)
    u = _lattice(centre, step, np.arange(k) + 0.5 - k / 2)
    v = _at_corners(np.where(nothing, 0.0, walked.v[..., 0]))
    log_like, covered = _log_likelihood(problem.output, v, _at_corners(log_like))
    log_mass = log_inputs(problem, u) + log_like
    top = log_mass.max(axis=1, keepdims=True)
    mass = np.exp(log_mass - np.where(np.isfinite(top), top, 0.0))
    mass /= np.maximum(mass.sum(axis=1, keepdims=True), 1e-300)
    share = _shares(mass, u, v, step, covered)
    drawn = np.exp(log_density(problem, proposal, u)) * step.prod(axis=1)[:, None]
    lost = np.where(_UNDER * drawn < share, share, 0.0)
    rows = lost.sum(axis=1) > _MATTERS
    return (_with_parts(proposal, u, lost, step) if rows.any() else proposal), rows, corners.shape[1] * n


def _lattice(centre: np.ndarray, step: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Points (n, k * k, 2) at multiples of the steps from the centre."""
    a, b = (g.ravel() for g in np.meshgrid(places, places, indexing="ij"))
    return centre[:, None] + step[:, None] * np.stack([a, b], axis=-1)


def _at_corners(values: np.ndarray) -> np.ndarray:
    """Values (n, (k + 1)^2) at nodes as those at the four corners of cells, (4, n, k^2)."""
    n, k = len(values), _CELLS
    table = values.reshape(n, k + 1, k + 1)
    return np.stack([table[:, i : i + k, j : j + k].reshape(n, k * k) for i in (0, 1) for j in (0, 1)])


def _log_likelihood(output: Port, v: np.ndarray, log_like: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mean of the output's message over cells (n, c): by the corners, or by the part in which the output is wanted.

    And that part of each cell, which a narrow message does not fill.
    """
    with np.errstate(divide="ignore"):  # a cell may hold nothing
        found = logsumexp(log_like, axis=0) - np.log(4.0)
    covered = np.ones(found.shape)
    if output.axis.discrete or not output.message.proper.any():
        return found, covered
    proper = np.flatnonzero(output.message.proper)
    message = output.message[proper]
    low, high, mode = v[:, proper].min(axis=0), v[:, proper].max(axis=0), output.axis.mode(message)[:, None]
    # the area under a bump, and how much of the cell it covers if the output changes evenly over it
    width = np.sqrt(2 * np.pi * output.axis.moments(message)[1][:, 0])
    passed = (low < mode) & (mode < high)
    part = np.minimum(width / np.where(high > low, high - low, width), 1.0)
    covered[proper] = part
    log_at_mode = output.axis.log_message(message, mode[..., None])
    found[proper] = np.maximum(found[proper], np.where(passed, log_at_mode + np.log(part), -np.inf))
    return found, covered


def _shares(mass: np.ndarray, u: np.ndarray, v: np.ndarray, step: np.ndarray, covered: np.ndarray) -> np.ndarray:
    """What part (n, c) of the mass or of a variance cells hold: the largest over inputs (n, c, 2) and output (4, n, c).

    Where in a cell its mass is, is not known. Of inputs counts by how much more than a cell they are away: two cells beside a
    narrow ridge would be a variance that hides what lies elsewhere. Within a cell the output may be far beyond its corners:
    near a pole they have either sign, and their mean is nothing.
    """
    share = mass
    for k in (0, 1):
        width = step[:, k, None]
        centre = (mass * u[..., k]).sum(axis=1, keepdims=True)
        squares = mass * np.maximum(np.abs(u[..., k] - centre) - width, 0.0) ** 2
        within = mass * (covered * width) ** 2 / (2 * np.pi)
        share = np.maximum(share, squares / np.maximum((squares + within).sum(axis=1, keepdims=True), 1e-300))
    place, beyond = v.mean(axis=0), v.max(axis=0) - v.min(axis=0)
    centre = (mass * place).sum(axis=1, keepdims=True)
    squares = mass * (np.abs(place - centre) + beyond) ** 2
    return np.maximum(share, squares / np.maximum(squares.sum(axis=1, keepdims=True), 1e-300))


def _with_parts(proposal: Proposal, u: np.ndarray, lost: np.ndarray, step: np.ndarray) -> Proposal:
    """The proposal with a Gaussian at each of the cells that are missed most."""
    most = np.argsort(-lost, axis=1, kind="stable")[:, :_PARTS]
    shares = np.take_along_axis(lost, most, axis=1)
    total = shares.sum(axis=1, keepdims=True)
    given = np.where(total > 0, _GIVEN, 0.0)
    shares = shares / np.where(total > 0, total, 1.0)
    means = np.take_along_axis(u, most[..., None], axis=1)
    roots = np.broadcast_to((_WIDTH * step)[:, None, :, None] * np.eye(2), (*most.shape, 2, 2))
    return proposal._replace(
        weights=np.concatenate([(1 - given) * proposal.weights, given * shares], axis=1),
        means=np.concatenate([proposal.means, means], axis=1),
        roots=np.concatenate([proposal.roots, roots], axis=1),
        inverses=np.concatenate([proposal.inverses, np.linalg.inv(roots)], axis=1),
    )
