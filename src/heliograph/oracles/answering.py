"""From estimated statistics to an `Answer`: project every port, judge every row, and blank the rows that failed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from heliograph.families import Family, Gaussian
from heliograph.oracles.answer import Answer
from heliograph.oracles.axes import Projection
from heliograph.oracles.calling import evaluate
from heliograph.oracles.frames import Frame, blocks_of, ports_of
from heliograph.oracles.problem import Port, Problem, groups_of
from heliograph.oracles.sampler import Sampler

__all__ = ["answer_of", "at_port", "blank", "choose", "exact", "fields_of", "split_problems"]

_FIELDS = {  # of an answer, and of the projections that it is made of
    "beliefs": "belief",
    "standard_errors": "errors",
    "covariances": "covariance",
    "chart_covariances": "chart_covariance",
    "expected_kl": "expected_kl",
}
_FEW = 4.0  # draws
_CONSTANT = 1e-3  # of the square of a frame's scale, which is a trillionth of the value where there is no other
_FAINTEST = -1e11  # a log weight of this size has five decimals left
_LARGEST = 1e75  # of a frame's centre and scale: errors of second moments are of their fourth power


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
    n_draws: np.ndarray,
) -> Answer:
    """Project; a row fails if it is marked, or if no port has statistics that belong to a member of its family.

    A port without such statistics is unknown, and takes no other with it; an output without any spread is known exactly.
    """
    # at such a log weight the rounding hides the terms of the inputs' messages
    failed = failed | (log_z < _FAINTEST) | _rounded_weights(problem.output, mean[:, blocks_of(problem)[-1]])
    projections, lost = _projections(problem, frame, mean, covariances, n_draws, failed)
    failed = failed | np.logical_and.reduce(list(lost.values()))
    found = {p.name: at_port(p.message, projections[p.name], failed | lost[p.name]) for p in ports_of(problem)}
    found |= {name: exact(message, failed) for name, message in problem.fixed.items()}
    return Answer(
        **fields_of({k: found[k] for k in problem.sampler.ports if k in found}),
        log_z=np.where(failed, -np.inf, log_z),
        log_z_error=np.where(failed, np.inf, log_z_error),
        ess=ess,
        pareto_k=pareto_k,
        failed=failed,
        n_evaluations=n_evaluations,
    )


def fields_of(ports: Mapping[str, Projection]) -> dict[str, dict[str, Any]]:
    """The fields of an `Answer` that have an entry for each port."""
    return {field: {k: getattr(p, name) for k, p in ports.items()} for field, name in _FIELDS.items()}


def at_port(message: Family, p: Projection, unknown: np.ndarray) -> Projection:
    """A port's projection where it is wanted: without errors where the message is a point mass, blank where unknown."""
    known = message.is_point
    return Projection(
        choose(unknown | known, message, p.belief),
        tuple(blank(e, unknown, known) for e in p.errors),
        blank(p.covariance, unknown, known),
        blank(p.chart_covariance, unknown, known),
        blank(p.expected_kl, unknown, known),
        ~unknown,
    )


def exact(message: Family, failed: np.ndarray) -> Projection:
    """A message that is known, without errors unless the row failed."""
    shapes = [s.shape for s in message.expected_statistics()]
    q = sum(int(np.prod(s[1:], dtype=int)) for s in shapes)
    errors = tuple(blank(np.zeros(s), failed, False) for s in shapes)
    covariance = blank(np.zeros((len(failed), q, q)), failed, False)
    return Projection(message, errors, covariance, covariance, blank(np.zeros(len(failed)), failed, False), ~failed)


def _projections(
    problem: Problem,
    frame: Frame,
    mean: np.ndarray,
    covariances: tuple[np.ndarray, ...],
    n_draws: np.ndarray,
    failed: np.ndarray,
) -> tuple[dict[str, Projection], dict[str, np.ndarray]]:
    """The projection of every port, and the rows (n,) bool in which it has none."""
    blocks = blocks_of(problem)
    on_edge = mean[:, blocks[-1]].sum(axis=1)
    found: dict[str, Projection] = {}
    lost: dict[str, np.ndarray] = {}
    for port, block, covariance in zip(ports_of(problem), blocks, covariances, strict=False):
        expected = mean[:, block]
        if port is problem.output:
            covariance = covariance + _edge_error(port, on_edge, expected.shape[1])
        if port.axis.discrete:
            expected, covariance = _never_certain(port, expected, covariance, n_draws)
        centre, scale = frame.centres[port.name], frame.scales[port.name]
        usable = np.isfinite(expected).all(axis=1) & np.isfinite(covariance).all(axis=(1, 2)) & ~failed
        usable &= (np.abs(centre) < _LARGEST).all(axis=1) & (np.abs(scale) < _LARGEST).all(axis=1)
        expected = np.where(usable[:, None], expected, 0.0)
        covariance = np.where(usable[:, None, None], covariance, 0.0)
        if not usable.all():
            centre, scale = np.where(usable[:, None], centre, 0.0), np.where(usable[:, None], scale, 1.0)
        p = port.axis.project(expected, covariance, centre, scale)
        if port is problem.output and isinstance(port.message, Gaussian):
            p = _certain_where_constant(port, p, usable, expected, frame)
        found[port.name] = p
        lost[port.name] = (~usable | ~p.sound) & ~port.message.is_point
        if port is problem.output:  # most of the output lies beyond the largest double below the edge
            lost[port.name] |= on_edge > 0.5
    return found, lost


def _certain_where_constant(
    port: Port, p: Projection, usable: np.ndarray, expected: np.ndarray, frame: Frame
) -> Projection:
    """Point masses where all that can be are outputs of one value: ``sin(w x)`` at ``x = 0``."""
    constant = usable & ~p.sound & (expected[:, 1] - expected[:, 0] ** 2 < _CONSTANT)
    if not constant.any():
        return p
    belief = choose(constant, port.message.point_like(frame.centres[port.name][:, 0]), p.belief)
    known = np.zeros(len(constant), dtype=bool)
    errors = tuple(blank(e, known, constant) for e in p.errors)
    square, chart = (blank(c, known, constant) for c in (p.covariance, p.chart_covariance))
    return Projection(belief, errors, square, chart, blank(p.expected_kl, known, constant), p.sound | constant)


def _rounded_weights(output: Port, shares: np.ndarray) -> np.ndarray:
    """Rows in which outputs on an edge matter to every port, though their weights are unknown as the message is not flat there."""
    steep = np.zeros(shares.shape, dtype=bool)
    if output.axis.edge_depth:
        steep = np.stack([output.message.naturals[0] != 0, output.message.naturals[-1] != 0], axis=1)
    return np.asarray((steep & (shares > 1e-3)).any(axis=1))


def _edge_error(port: Port, share: np.ndarray, q: int) -> np.ndarray:
    """The error of rounding outputs to the edge of their support: they lie somewhere beyond the last double."""
    return ((port.axis.edge_depth * share) ** 2)[:, None, None] * np.eye(q)


def _never_certain(
    port: Port, expected: np.ndarray, covariance: np.ndarray, n_draws: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """A value that no draw showed is not impossible: give it half a draw, times what its message says of it.

    That is beside what the message says of the values that were drawn: one that is wanted a thousand times more needs few
    draws. Nor is less known of a value than that if a few draws showed it that hardly count.
    """
    coin = expected.shape[1] == 1
    p = np.concatenate([1 - expected, expected], axis=1) if coin else expected
    p = np.where(p < 1e-13, 0.0, p) if coin else p  # 1 - p of a p that is 1 but for rounding
    n_values = p.shape[1]
    grid = np.broadcast_to(np.arange(n_values, dtype=float)[None, :, None], (len(p), n_values, 1))
    log_m = port.axis.log_message(port.message, grid)
    m = np.exp(log_m - log_m.max(axis=1, keepdims=True))
    drawn = np.where((p > 0) & (m > 0), p / np.where(m > 0, m, 1.0), 0.0).sum(axis=1, keepdims=True)  # in such units
    # (a proposal has up to half of its draws elsewhere, and the others count twice)
    half = 0.5 * 2 / (n_draws[:, None] + 1) * m * np.maximum(drawn, 1.0)
    few = p**2 < _FEW * np.diagonal(covariance, axis1=1, axis2=2)
    unseen = np.where((p <= 0) | (few & (p < half)), half, 0.0)
    if n_values == 2:  # of a Bernoulli neither value is ever impossible
        unseen = np.where((p <= 0) & (unseen == 0), 1e-150, unseen)
    p = np.where(unseen > 0, unseen, p)
    p = p / p.sum(axis=1, keepdims=True)
    if coin:
        p, unseen = p[:, 1:], unseen.max(axis=1, keepdims=True)
    extra = (unseen**2)[:, :, None] * np.eye(p.shape[1])
    return p, covariance + extra


def choose(first: np.ndarray, a: Family, b: Family) -> Family:
    """Entries of `a` where `first`, else of `b`; `b` itself, with all that it has computed, if there are none."""
    return a.where(first, b) if first.any() else b


def blank(a: np.ndarray, failed: np.ndarray, known: Any) -> np.ndarray:
    """Infinite where the row failed, 0 where the value is known."""
    trailing = (1,) * (a.ndim - 1)
    a = np.where(np.reshape(np.broadcast_to(known, failed.shape), (-1, *trailing)), 0.0, a)
    return np.where(failed.reshape(-1, *trailing), np.inf, a)


def split_problems(
    rng: np.random.Generator, sampler: Sampler, incoming: Mapping[str, Any]
) -> tuple[list[tuple[np.ndarray, Answer]], list[tuple[np.ndarray, Problem]]]:
    """Cut a plate into rows whose answer is the function's value, as all inputs are known, and integrals of one kind each."""
    known: list[tuple[np.ndarray, Answer]] = []
    problems: list[tuple[np.ndarray, Problem]] = []
    for rows, problem in groups_of(sampler, incoming):
        if problem.inputs or sampler.stochastic:
            problems.append((rows, problem))
        else:
            known.append((rows, _answer_if_certain(rng, problem)))
    return known, problems


def _answer_if_certain(rng: np.random.Generator, problem: Problem) -> Answer:
    """A point mass at the function's value; a row fails where the message on the output holds that value impossible."""
    n, out = problem.n, problem.output
    value = evaluate(rng, problem.sampler, problem.constants, size=n)
    belief = out.message.point_like(value)
    log_z = out.axis.log_message(out.message, out.axis.coordinates(value)[:, None])[:, 0]
    failed = ~np.isfinite(log_z)

    beliefs = {**problem.fixed, out.name: choose(failed, out.message, belief)}
    return Answer(
        **fields_of({k: exact(beliefs[k], failed) for k in problem.sampler.ports if k in beliefs}),
        log_z=np.where(failed, -np.inf, log_z),
        log_z_error=blank(np.zeros(n), failed, False),
        ess=np.where(failed, 0.0, 1.0),
        pareto_k=np.full(n, -1.0),
        failed=failed,
        n_evaluations=n,
    )
