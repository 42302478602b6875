"""The reference belief of a deterministic factor of one unknown number: sums over even cells of its chart.

Ninety-six cells over eight deviations of the cavity see every smooth message to rounding. Where they do not (a needle, two
modes far apart, a kink), the cells that hold mass, or that may because the output passes the mode of its message in them, are
cut into smaller ones, a few times over. What may still be hidden between nodes, and what leaving out every other node
changes, is the reference's doubt (docs/decisions/0044).
"""

from __future__ import annotations

import numpy as np

from heliograph.oracles.references.line_cells import ROUGH, Line, Seen, Sums, aliased, cut, look_wide, sum_up
from heliograph.oracles.references.output import output_of
from heliograph.oracles.references.record import Question, Reference

__all__ = ["one_unknown"]

_LEVELS = (256, 1024, 1024, 1024)  # cells that each closer look adds
_CLEAR = 1e-6  # nats of doubt that mean nothing
_BAD = (0.03, 0.3)  # nats of doubt where the cavity begins to be the better reference, and alone is
_ROWS = 512  # at a time in a closer look


def one_unknown(question: Question) -> Reference:
    """Reference beliefs of the unknown input or of the output."""
    line, to = Line(question, output_of(question.out)), question.to
    seen = look_wide(line)
    sums = sum_up(line, seen, to)
    moments, log_z = _read(line, seen, sums, to)
    wild, seen = aliased(line, seen)
    sums = sums._replace(doubt=np.where(wild, 1.0, sums.doubt))
    doubt = np.minimum(sums.doubt + sums.hidden, 1.0)
    left = np.flatnonzero(doubt > ROUGH[0])
    if len(left):
        moments = np.array(moments[0]), np.array(moments[1])
    for start in range(0, len(left), _ROWS):
        rows = left[start : start + _ROWS]
        some = line.some(rows)
        finer, finer_log_z, finer_doubt = _look_closer(some, Seen(*(a[:, rows] for a in seen)), sums.take(rows), to)
        # from the one to the other without a jump: what is learned is a smooth function or none
        share = np.clip(np.log(doubt[rows] / ROUGH[0]) / np.log(ROUGH[1] / ROUGH[0]), 0.0, 1.0)
        moments[0][rows] += share * (finer[0] - moments[0][rows])
        moments[1][rows] *= (finer[1] / moments[1][rows]) ** share
        if log_z is not None and finer_log_z is not None:
            log_z[rows] += share * (finer_log_z - log_z[rows])
        doubt[rows] += share * (finer_doubt - doubt[rows])
        line.n_evaluations += some.n_evaluations
    moments = _or_cavity(line, moments, doubt, to)
    columns = [np.log(doubt + _CLEAR)]
    if to != line.port:  # the view of the unknown has these already: how its reference differs from the cavity
        columns += [sums.moved, 0.5 * np.log(sums.variance)]
    return Reference(moments, np.stack(columns, axis=1), log_z, doubt, line.n_evaluations, doubt)


def _or_cavity(
    line: Line, moments: tuple[np.ndarray, np.ndarray], doubt: np.ndarray, to: str | None
) -> tuple[np.ndarray, np.ndarray]:
    """The cavity in place of moments that are in doubt: its corrections are bounded, and do not spoil those of other rows."""
    rows = np.flatnonzero(doubt > _BAD[0])
    if not len(rows):
        return moments
    chart, message = (line.chart, line.message) if to == line.port else (line.out.chart, line.out.message)
    rows = rows[message.proper[rows]]
    share = np.clip((doubt[rows] - _BAD[0]) / (_BAD[1] - _BAD[0]), 0.0, 1.0)
    mean, variance = chart.moments(message[rows])
    first, second = np.array(moments[0]), np.array(moments[1])
    first[rows] += share * (mean - first[rows])
    second[rows] *= (variance / second[rows]) ** share
    return first, second


def _look_closer(
    line: Line, seen: Seen, sums: Sums, to: str | None
) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray | None, np.ndarray]:
    """The moments in question by smaller cells where mass is or may be, and what is still in doubt."""
    n = len(line.mean)
    moments, doubt = (np.zeros(n), np.ones(n)), np.ones(n)
    log_z = np.zeros(n) if to is None else None
    rows, some = np.arange(n), line
    for size in _LEVELS:
        seen, stuck = cut(some, seen, sums, size)
        sums = sum_up(some, seen, to)
        (first, second), own_log_z = _read(some, seen, sums, to)
        moments[0][rows], moments[1][rows] = first, second
        if log_z is not None and own_log_z is not None:
            log_z[rows] = own_log_z
        doubt[rows] = np.minimum(sums.doubt + sums.hidden, 1.0)
        left = np.flatnonzero((doubt[rows] > ROUGH[1]) & ~stuck)
        if not len(left):
            break
        rows, seen, sums = rows[left], Seen(*(a[:, left] for a in seen)), sums.take(left)
        evaluated = some.n_evaluations if some is not line else 0
        line.n_evaluations += evaluated
        some = line.some(rows)
    if some is not line:
        line.n_evaluations += some.n_evaluations
    return moments, log_z, doubt


def _read(
    line: Line, seen: Seen, sums: Sums, to: str | None
) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray | None]:
    """The moments of the port in question, or log Z, from weighed nodes."""
    if to == line.port and line.chart.gaussian:
        return (line.mean + line.sd * sums.moved, line.variance * sums.variance), None
    w = sums.w / sums.w.sum(axis=0)
    if to == line.port:
        return line.chart.project(line.mean + line.sd * seen.nodes, w), None
    moments = line.out.chart.project(line.out.look(seen.value)[0], w)
    if to is not None:
        return moments, None
    log_z = sums.log_total + np.log(line.sd) + line.chart.log_constant(line.message)
    return moments, log_z - line.out.log_constant()
