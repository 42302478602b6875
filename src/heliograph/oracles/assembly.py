"""From estimated statistics to an `Answer`: project every port, judge every row, and blank the rows that failed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from heliograph.families import Family, Gamma, concatenate
from heliograph.oracles.answer import Answer
from heliograph.oracles.axis import Projection
from heliograph.oracles.problem import Port, Problem

__all__ = [
    "Frame",
    "answer_of",
    "blank",
    "blocks_of",
    "choose",
    "frame_of",
    "frame_of_points",
    "join_frames",
    "statistics_of",
]

_FAINTEST = -1e11  # a log weight of this size has five decimals left


class Frame(NamedTuple):
    """The centre and scale, port by port, in which statistics are summed."""

    centres: dict[str, np.ndarray]  # port -> (n, D)
    scales: dict[str, np.ndarray]  # port -> (n, D)


def ports_of(problem: Problem) -> tuple[Port, ...]:
    """The ports that get a projected belief: random inputs, and the output unless it is all observed."""
    return (*problem.inputs, problem.output)


def frame_of(problem: Problem, u: np.ndarray, v: np.ndarray, log_weights: np.ndarray) -> Frame:
    """A frame from the first weighted draws; it need not be good, only near."""
    return frame_of_points(problem, np.arange(len(u)), u, v, log_weights)


def join_frames(frames: list[Frame]) -> Frame:
    """Frames of consecutive rows as one."""
    first = frames[0]
    return Frame(
        {k: np.concatenate([f.centres[k] for f in frames]) for k in first.centres},
        {k: np.concatenate([f.scales[k] for f in frames]) for k in first.scales},
    )


def frame_of_points(problem: Problem, row: np.ndarray, u: np.ndarray, v: np.ndarray, log_weights: np.ndarray) -> Frame:
    """The same from weighted points (c, g, D), c of them of row ``row[c]``."""
    n = problem.n
    top = _highest(n, row, log_weights)
    alike = np.isneginf(top)[row][:, None]  # where nothing has a weight
    log_w = np.where(alike, 0.0, log_weights - np.where(np.isfinite(top), top, 0.0)[row][:, None])
    w = np.exp(log_w)
    total = np.maximum(_summed(n, row, w.sum(axis=1)[:, None]), 1e-300)  # a row may have no points
    centres, scales = {}, {}
    for port in ports_of(problem):
        c = v if port is problem.output else u[..., port.columns]
        mean = _summed(n, row, (w[:, None] @ c)[:, 0]) / total
        centres[port.name] = mean
        if isinstance(port.message, Gamma):
            # its frame has the mean itself, which may be hundreds of nats above the mean logarithm
            higher = _highest(n, row, log_w + c[..., 0])
            mass = _summed(n, row, np.exp(log_w + c[..., 0] - higher[row][:, None]).sum(axis=1)[:, None])
            found = mass > 0
            log_mean = np.where(found, higher[:, None], 0.0) + np.log(np.where(found, mass, 1.0)) - np.log(total)
            scales[port.name] = np.where(found, log_mean - mean, 0.0)
            continue
        variance = _summed(n, row, (w[:, None] @ (c - mean[row][:, None]) ** 2)[:, 0]) / total
        # a variance of 0 (one draw has all the weight) or a rounding error must not become the unit: nor what is far
        # below the spread of the points that count at all, whose weights may not be known yet
        counts = (log_w > -40.0)[..., None]
        low, high = np.full(mean.shape, np.inf), np.full(mean.shape, -np.inf)
        np.minimum.at(low, row, np.where(counts, c, np.inf).min(axis=1))
        np.maximum.at(high, row, np.where(counts, c, -np.inf).max(axis=1))
        spread = np.where(high > low, high - low, 0.0)
        scales[port.name] = np.maximum(np.sqrt(variance), np.abs(mean) * 1e-12 + 1e-6 * spread + 1e-60)
    return Frame(centres, scales)


def _highest(n: int, row: np.ndarray, values: np.ndarray) -> np.ndarray:
    top = np.full(n, -np.inf)
    np.maximum.at(top, row, values.max(axis=1))
    return top


def _summed(n: int, row: np.ndarray, values: np.ndarray) -> np.ndarray:
    total = np.zeros((n, *values.shape[1:]))
    np.add.at(total, row, values)
    return total


def blocks_of(problem: Problem) -> tuple[slice, ...]:
    """Where the statistics of each port stand, and last the shares of outputs that rounded onto a lower or upper edge."""
    blocks, at = [], 0
    for q in (*(p.axis.n_statistics for p in ports_of(problem)), 2):
        blocks.append(slice(at, at + q))
        at += q
    return tuple(blocks)


def statistics_of(
    problem: Problem, frame: Frame, rows: Any, u: np.ndarray, v: np.ndarray, edge: np.ndarray
) -> np.ndarray:
    """All statistics (n, s, Q) of draws, relative to the frame of their rows."""
    parts = []
    for port in ports_of(problem):
        c = v if port is problem.output else u[..., port.columns]
        parts.append(port.axis.statistics(c, frame.centres[port.name][rows], frame.scales[port.name][rows]))
    edges = np.stack([edge < 0, edge > 0], axis=-1).astype(float)
    return np.concatenate([*parts, edges], axis=-1)


def answer_of(
    problem: Problem,
    frame: Frame,
    mean: np.ndarray,
    covariances: tuple[np.ndarray, ...],
    log_z: np.ndarray,
    log_z_error: np.ndarray,
    ess: np.ndarray,
    pareto_k: np.ndarray,
    failed: np.ndarray,
    n_evaluations: int,
) -> Answer:
    """Project; a row fails if it is marked, or if no port has statistics that belong to a member of its family.

    A port without such statistics (the output of a constant function has no spread) is unknown, and takes no other with it.
    """
    blocks = blocks_of(problem)
    on_edges = mean[:, blocks[-1]]
    on_edge = on_edges.sum(axis=1)
    projections: dict[str, Projection] = {}
    # so far from what was seen a log weight is all rounding: what the inputs' messages say is not in it any more
    failed = failed | (log_z < _FAINTEST)
    failed, lost = failed | _rounded_weights(problem.output, on_edges), {}
    none_known = np.ones(problem.n, dtype=bool)
    for port, block, covariance in zip(ports_of(problem), blocks, covariances, strict=False):
        expected = mean[:, block]
        if port is problem.output:
            covariance = covariance + _edge_error(port, on_edge, expected.shape[1])
        if port.axis.discrete:
            expected, covariance = _never_certain(port, expected, covariance, ess)
        usable = np.isfinite(expected).all(axis=1) & np.isfinite(covariance).all(axis=(1, 2)) & ~failed
        expected = np.where(usable[:, None], expected, 0.0)
        covariance = np.where(usable[:, None, None], covariance, 0.0)
        p = port.axis.project(expected, covariance, frame.centres[port.name], frame.scales[port.name])
        projections[port.name] = p
        lost[port.name] = (~usable | ~p.sound) & ~port.message.is_point
        if port is problem.output:  # most of the output lies beyond the last double
            lost[port.name] |= on_edge > 0.5
        none_known &= lost[port.name]
    failed = failed | none_known
    beliefs: dict[str, Family] = dict(problem.fixed)
    errors, plain, chart, kl = {}, {}, {}, {}
    for port in ports_of(problem):
        p = projections[port.name]
        known = port.message.is_point
        unknown = failed | lost[port.name]
        beliefs[port.name] = choose(unknown | known, port.message, p.belief)
        errors[port.name] = tuple(blank(e, unknown, known) for e in p.errors)
        plain[port.name] = blank(p.covariance, unknown, known)
        chart[port.name] = blank(p.chart_covariance, unknown, known)
        kl[port.name] = blank(p.expected_kl, unknown, known)
    for name, message in problem.fixed.items():
        shapes = [s.shape for s in message.expected_statistics()]  # type: ignore[attr-defined]
        errors[name] = tuple(blank(np.zeros(s), failed, False) for s in shapes)
        q = sum(int(np.prod(s[1:], dtype=int)) for s in shapes)
        plain[name] = chart[name] = blank(np.zeros((problem.n, q, q)), failed, False)
        kl[name] = blank(np.zeros(problem.n), failed, False)
    order = [k for k in problem.sampler.ports if k in beliefs]
    return Answer(
        beliefs={k: beliefs[k] for k in order},
        log_z=np.where(failed, -np.inf, log_z),
        standard_errors={k: errors[k] for k in order},
        covariances={k: plain[k] for k in order},
        chart_covariances={k: chart[k] for k in order},
        expected_kl={k: kl[k] for k in order},
        log_z_error=np.where(failed, np.inf, log_z_error),
        ess=ess,
        pareto_k=pareto_k,
        failed=failed,
        n_evaluations=n_evaluations,
    )


def _rounded_weights(output: Port, shares: np.ndarray) -> np.ndarray:
    """Where outputs on an edge matter to every port: their weights are not known unless the message is flat there."""
    steep = np.zeros(shares.shape, dtype=bool)
    if type(output.message).chart in ("log", "logit"):
        steep = np.stack([output.message.naturals[0] != 0, output.message.naturals[-1] != 0], axis=1)
    return np.asarray((steep & (shares > 1e-3)).any(axis=1))


def _edge_error(port: Port, share: np.ndarray, q: int) -> np.ndarray:
    """What rounding an output to the edge of its support may have cost: it lies somewhere beyond the last double."""
    depth = {"logit": 37.0, "log": 708.0}.get(type(port.message).chart, 0.0)
    return ((depth * share) ** 2)[:, None, None] * np.eye(q)


def _never_certain(
    port: Port, expected: np.ndarray, covariance: np.ndarray, ess: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """A value that no draw showed is not impossible: give it half a draw, times what its message says of it."""
    p = np.concatenate([1 - expected, expected], axis=1) if expected.shape[1] == 1 else expected
    n_values = p.shape[1]
    grid = np.broadcast_to(np.arange(n_values, dtype=float)[None, :, None], (len(p), n_values, 1))
    log_m = port.axis.log_message(port.message, grid)
    odds = np.exp(log_m - log_m.max(axis=1, keepdims=True))
    unseen = np.where(p <= 0, 0.5 / (ess[:, None] + 1) * odds, 0.0)
    if n_values == 2:  # of a Bernoulli neither value is ever impossible
        unseen = np.where((p <= 0) & (unseen == 0), 1e-150, unseen)
    p = np.where(p <= 0, unseen, p)
    p = p / p.sum(axis=1, keepdims=True)
    if expected.shape[1] == 1:
        p, unseen = p[:, 1:], unseen.max(axis=1, keepdims=True)
    extra = (unseen**2)[:, :, None] * np.eye(p.shape[1])
    return p, covariance + extra


def choose(first: np.ndarray, a: Family, b: Family) -> Family:
    """Entries of `a` where `first`, else of `b`."""
    if not first.any():
        return b
    n = len(first)
    return concatenate([a, b])[np.where(first, np.arange(n), n + np.arange(n))]


def blank(a: np.ndarray, failed: np.ndarray, known: Any) -> np.ndarray:
    """Infinite where the row failed, 0 where the value is known."""
    trailing = (1,) * (a.ndim - 1)
    a = np.where(np.reshape(np.broadcast_to(known, failed.shape), (-1, *trailing)), 0.0, a)
    return np.where(failed.reshape(-1, *trailing), np.inf, a)
