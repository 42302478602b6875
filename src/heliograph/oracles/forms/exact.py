"""An observed output of a deterministic function of one unknown number: the density by the change of variables.

``p(y) = sum_k m(z_k) / |f'(z_k)|`` over the roots of ``f(z) = y``, and the belief of z has that share of its mass at each root. One
root alone is a point mass. Categories beside the number have roots of their own for every combination.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from heliograph.errors import FactorError, UnsupportedError
from heliograph.families import Family
from heliograph.oracles.answer import Answer, gather
from heliograph.oracles.answering import answer_of, choose, split_problems
from heliograph.oracles.calling import call
from heliograph.oracles.forms.roots import Roots, roots_of
from heliograph.oracles.frames import blocks_of, frame_of_points, ports_of, statistics_of
from heliograph.oracles.problem import Problem, log_inputs, stand_in, take_rows, walk
from heliograph.oracles.sampler import Sampler

__all__ = ["answer_exactly"]

_STEPS = np.array([1e-2, 1e-3, 1e-4, 1e-5])  # of finite differences, in deviations of the cavity: the best one counts
_ALONE = 1e-12  # of the mass: what other roots may have beside one that counts as the only one
_ROUNDING = 1e-15
_ANOTHER = 0.05  # of the larger slope, by which a derivative that was given may differ from differences


def answer_exactly(rng: np.random.Generator, sampler: Sampler, incoming: Mapping[str, Any]) -> Answer:
    """Beliefs of every direction where the output is known: one row for each incoming tuple."""
    parts, problems = split_problems(rng, sampler, incoming)
    for rows, problem in problems:
        _refuse(problem)
        parts.append((rows, _answer(rng, problem)))
    return gather(parts)


def _refuse(problem: Problem) -> None:
    sampler, unknown = problem.sampler, sum(p.axis.n_coordinates for p in problem.continuous)
    if not sampler.stochastic and unknown == 1 and problem.output.axis.n_coordinates == 1:
        return
    why = "it draws random numbers" if sampler.stochastic else f"{unknown} of its inputs are unknown real numbers"
    if not sampler.stochastic and unknown == 1:
        why = "its output is a vector"
    raise UnsupportedError(
        f"the output of factor {sampler.name!r} is observed exactly, and {why}: no draw of a continuous value ever equals an "
        "observation. Put noise between the two, for example model.gaussian('y', f(...), variance=..., observed=y), or give "
        "@hg.factor(..., log_density=) the log density of an observed value, or use oracle='abc'"
    )


class _Atoms(NamedTuple):
    """Places where all the mass is."""

    row: np.ndarray  # (c,)
    u: np.ndarray  # (c, D)
    log_w: np.ndarray  # (c,)
    error: np.ndarray  # (c,) relative standard error of the weight


def _answer(rng: np.random.Generator, problem: Problem) -> Answer:
    choices = np.array(list(product(*(range(p.axis.n_values) for p in problem.discrete))))
    n, m = problem.n, len(choices)
    row = np.repeat(np.arange(n), m)  # a line for every row and combination of categories
    lines = _Lines(rng, take_rows(problem, row), np.tile(choices, (n, 1)))
    found = roots_of(lines.gap, lines.centre, lines.scale)
    _refuse_flat(problem, found, row)
    atoms = _weighed(lines, found, row)
    doubtful = np.bincount(row[found.doubtful], minlength=n) > 0
    return _projected(problem, atoms, doubtful, found.n_evaluations + lines.n_more)


class _Lines:
    """The function along its unknown number, for every row and combination of categories."""

    def __init__(self, rng: np.random.Generator, problem: Problem, choices: np.ndarray) -> None:
        self.rng, self.problem, self.choices = rng, problem, choices
        (self.port,) = problem.continuous
        mean, covariance = stand_in(problem, 10.0)
        self.centre, self.scale = mean[:, 0], np.sqrt(0.5 * covariance[:, 0, 0])
        out = problem.output
        self.wanted = out.axis.coordinates(np.asarray(out.message.point))[:, 0]
        self.n_more = 0

    def places(self, line: np.ndarray, at: np.ndarray) -> np.ndarray:
        """Coordinates (c, D) of numbers (c,) on lines."""
        u = np.empty((len(line), self.problem.n_coordinates))
        u[:, self.port.columns.start] = at
        for j, port in enumerate(self.problem.discrete):
            u[:, port.columns.start] = self.choices[line, j]
        return u

    def gap(self, line: np.ndarray, at: np.ndarray) -> np.ndarray:
        """The output's coordinate less that of the observed value; NaN where the function has no value."""
        walked = walk(self.rng, take_rows(self.problem, line), self.places(line, at)[:, None])
        gap = walked.v[:, 0, 0] - self.wanted[line]
        return gap if walked.wrong is None else np.where(walked.wrong[:, 0] > 0, np.nan, gap)

    def slope(self, line: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The derivative of the output's coordinate by the input's, and its error."""
        best, error = self._measured_slope(line, at)
        if self.problem.sampler.derivative is None:
            return best, error
        given = self._given_slope(line, at)
        wrong = np.abs(given - best) > _ANOTHER * np.maximum(np.abs(given), np.abs(best)) + 10 * error
        if wrong.any():  # the roots took hundreds of calls, so these few hardly cost anything
            k = int(np.argmax(wrong))
            ratio = f"{given[k] / best[k]:.4g} times" if best[k] else "unlike"
            raise FactorError(
                f"derivative of factor {self.problem.sampler.name!r} is wrong: at {self.port.name}="
                f"{self.port.axis.value(self.places(line, at)[k : k + 1, self.port.columns]).squeeze():.6g} it is {ratio} what the "
                "function itself changes by; mend it, or leave it out"
            )
        return given, _ROUNDING * np.abs(given)

    def _measured_slope(self, line: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """By differences of several widths, the best of them."""
        c = len(line)
        h = np.concatenate([_STEPS, 0.5 * _STEPS]) * self.scale[line, None]
        there = np.concatenate([at[:, None] + h, at[:, None] - h], axis=1)
        value = self.gap(np.repeat(line, there.shape[1]), there.ravel()).reshape(c, 2, 2, len(_STEPS))
        self.n_more += value.size
        wide, narrow = ((value[:, 0] - value[:, 1]) / (2 * h.reshape(c, 2, -1))).swapaxes(0, 1)
        best = (4 * narrow - wide) / 3
        size = np.abs(self.wanted[line])[:, None] + np.nanmax(np.abs(value), axis=(1, 2), initial=0.0)  # in any unit
        rounding = _ROUNDING * size / (self.scale[line, None] * _STEPS)
        error = np.abs(best - narrow) + rounding
        chosen = np.argmin(np.where(np.isnan(error), np.inf, error), axis=1)
        return best[np.arange(c), chosen], error[np.arange(c), chosen]

    def _given_slope(self, line: np.ndarray, at: np.ndarray) -> np.ndarray:
        """By the user's own derivative."""
        problem, sampler = self.problem, self.problem.sampler
        u = self.places(line, at)
        inputs = {p.name: p.axis.value(u[:, p.columns]) for p in problem.inputs}
        inputs |= {k: a[line] for k, a in problem.constants.items()}
        assert sampler.derivative is not None
        given = sampler._replace(function=sampler.derivative)
        slope = call(self.rng, given, inputs, len(line))
        if slope.shape != line.shape or slope.dtype.kind not in "fiub":
            raise FactorError(
                f"derivative of factor {sampler.name!r} returned {slope.dtype} of shape {slope.shape} for {len(line)} "
                "samples; it takes what the function takes, and gives one number for each sample"
            )
        out = problem.output.axis
        slope = slope * np.exp(self.port.axis.log_jacobian(u[:, self.port.columns]))
        return slope * np.exp(-out.log_jacobian(self.wanted[line][:, None]))


def _refuse_flat(problem: Problem, found: Roots, row: np.ndarray) -> None:
    """A function that equals the observed value on an interval has a probability there, and no density."""
    if found.flat.any():
        y = np.asarray(problem.output.message.point)[row[np.argmax(found.flat)]]
        raise UnsupportedError(
            f"factor {problem.sampler.name!r} gives exactly {y:g}, which was observed, on a whole interval of its input: that is "
            "an event with a probability, not a value with a density. Observe the event instead (a factor with output=hg.Bernoulli "
            "that compares), or put noise between the output and the observation"
        )


def _weighed(lines: _Lines, found: Roots, row: np.ndarray) -> _Atoms:
    """The mass at every root, up to the factor of the output's own unit, which is put in."""
    line, at = found.row, found.at
    u = lines.places(line, at)
    if not len(line):
        return _Atoms(row[line], u, np.zeros(0), np.zeros(0))
    slope, error = lines.slope(line, at)
    some = take_rows(lines.problem, line)
    size = np.abs(slope)
    unit = some.output.axis.log_jacobian(lines.wanted[line][:, None])  # from the axis of the output to the output
    with np.errstate(divide="ignore"):
        log_w = log_inputs(some, u[:, None])[:, 0] - np.log(size) - unit
    relative = np.where(size > 0, error / np.where(size > 0, size, 1.0), np.inf)
    return _Atoms(row[line], u, log_w, relative)


def _projected(problem: Problem, atoms: _Atoms, doubtful: np.ndarray, n_evaluations: int) -> Answer:
    """The moments of the atoms; a row fails without any, or where one has no weight that is a number."""
    n, (row, u, log_w, error) = problem.n, atoms
    count = np.bincount(row, minlength=n)
    bad = np.bincount(row, ~np.isfinite(log_w) | ~(error < 0.1), minlength=n) > 0
    failed = (count == 0) | bad | doubtful
    log_w = np.where(failed[row], -np.inf, log_w)
    log_z = np.array([logsumexp(log_w[row == i]) if not failed[i] else -np.inf for i in range(n)])
    w = np.exp(log_w - np.where(failed, 0.0, log_z)[row])
    v = problem.output.axis.coordinates(np.asarray(problem.output.message.point))[row]
    frame = frame_of_points(problem, row, u[:, None], v[:, None], log_w[:, None])
    t = statistics_of(problem, frame, row, u[:, None], v[:, None], np.zeros((len(row), 1)))[:, 0]
    mean = np.zeros((n, t.shape[1]))
    np.add.at(mean, row, w[:, None] * t)
    off = (w * np.minimum(error, 1.0))[:, None] * (t - mean[row])
    covariances = []
    for block in blocks_of(problem):
        total = np.zeros((n, block.stop - block.start, block.stop - block.start))
        np.add.at(total, row, off[:, block, None] * off[:, None, block])
        covariances.append(total)
    log_z_error = np.sqrt(np.bincount(row, (w * np.minimum(error, 1.0)) ** 2, minlength=n))
    certain = np.full(n, 1e18)  # there are no other places
    answer = answer_of(
        problem,
        frame,
        mean,
        tuple(covariances),
        log_z,
        log_z_error,
        certain,
        np.full(n, -1.0),
        failed,
        n_evaluations,
        certain,
    )
    return _with_points(problem, answer, atoms, w)


def _with_points(problem: Problem, answer: Answer, atoms: _Atoms, w: np.ndarray) -> Answer:
    """The answer with point masses where one place has all the mass."""
    top = np.zeros(problem.n)
    np.maximum.at(top, atoms.row, w)
    alone = (top >= 1 - _ALONE) & ~answer.failed
    if not alone.any():
        return answer
    first = np.zeros(problem.n, dtype=int)
    order = np.argsort(w, kind="stable")
    first[atoms.row[order]] = order  # the heaviest comes last, and stays
    beliefs, errors = dict(answer.beliefs), dict(answer.standard_errors)
    squares, charts, kl = (dict(d) for d in (answer.covariances, answer.chart_covariances, answer.expected_kl))
    for port in (p for p in ports_of(problem) if p in problem.continuous):
        place = np.where(
            alone, port.axis.value(atoms.u[first][:, port.columns]), port.axis.value(np.zeros((problem.n, 1)))
        )
        beliefs[port.name] = choose(alone, _points(port.message, place), beliefs[port.name])
        kl[port.name] = np.where(alone, 0.0, kl[port.name])
        errors[port.name] = tuple(_zero(e, alone) for e in errors[port.name])
        squares[port.name], charts[port.name] = _zero(squares[port.name], alone), _zero(charts[port.name], alone)
    return answer._replace(
        beliefs=beliefs, standard_errors=errors, covariances=squares, chart_covariances=charts, expected_kl=kl
    )


def _points(message: Family, place: np.ndarray) -> Family:
    return message.point_like(place)


def _zero(a: np.ndarray, where: np.ndarray) -> np.ndarray:
    return np.where(where.reshape((-1,) + (1,) * (a.ndim - 1)), 0.0, a)
