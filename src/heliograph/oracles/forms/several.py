"""Factors of several outputs: beliefs of the inputs by one integral, and those of the outputs by draws from these.

The product of the messages on all outputs is a weight of the inputs, of which the log is known: the form of `density.py`, with the
messages in place of an observed value. Any oracle then finds the beliefs of the inputs and log Z. The outputs' own beliefs are sums
over draws from what was found, weighed by all messages, in sixteen independent parts whose spread is their stated error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.special import logsumexp

from heliograph.errors import FactorError, UnsupportedError
from heliograph.families import Family, Gaussian, concatenate
from heliograph.oracles.answer import Answer, Oracle
from heliograph.oracles.answering import at_port, fields_of
from heliograph.oracles.axes import Projection, axis_of
from heliograph.oracles.calling import call, try_values
from heliograph.oracles.forms.density import ask_density
from heliograph.oracles.problem import Problem, groups_of, log_inputs, take_rows
from heliograph.oracles.sampler import Sampler

__all__ = ["ask_several", "together"]

_PARTS, _DRAWS = 16, 1024  # independent parts, and draws of each
_BROADER = 2.25  # times the variance of the beliefs that draws come from
_FEWEST = 200.0  # effective draws, below which the beliefs of the outputs are unknown


def together(sampler: Sampler, incoming: Mapping[str, Any]) -> tuple[Sampler, dict[str, Any]]:
    """The factor as one of inputs with a log weight, and its messages."""
    for port in sampler.children:
        message = incoming[port]
        if message.point is not None and message.is_point.any() and not type(message).discrete:
            raise UnsupportedError(
                f"output {port!r} of factor {sampler.name!r} is observed exactly, and a factor of several outputs has no density: "
                f"put noise between the two, for example model.gaussian('y', {port}, variance=..., observed=y)"
            )
    weight = _Together(sampler, {p: incoming[p] for p in sampler.children})
    one = sampler._replace(more=(), output=Gaussian, log_density=weight, impossible=None)
    packed = np.concatenate([_packed(incoming[p]) for p in sampler.children], axis=1)
    return one, {p: incoming[p] for p in sampler.inputs} | {one.child: packed}


def ask_several(oracle: Oracle, rng: np.random.Generator, sampler: Sampler, incoming: Mapping[str, Any]) -> Answer:
    """The beliefs of every direction, one row for each incoming tuple."""
    one, given = together(sampler, incoming)
    inputs = ask_density(oracle, rng, one, given)
    parts = []
    for rows, problem in groups_of(one, {p: given[p] for p in one.inputs} | {one.child: _uniform(len(inputs.failed))}):
        found = {k: m[rows] for k, m in inputs.beliefs.items() if k in one.inputs}
        seen = {p: incoming[p][rows] for p in sampler.children}
        parts.append((rows, _outputs(rng, sampler, problem, found, seen, inputs.failed[rows])))
    return _joined(sampler, incoming, inputs, parts)


def _uniform(n: int) -> Gaussian:
    return Gaussian.from_naturals((np.zeros(n), np.zeros(n)))


class _Together:
    """The log of the product of all outputs' messages, at samples whose messages come packed as a value."""

    def __init__(self, sampler: Sampler, messages: Mapping[str, Family]) -> None:
        self.sampler = sampler
        self.kinds = {p: (type(m), [a.shape[1:] for a in m.naturals]) for p, m in messages.items()}

    def __call__(self, packed: Any, **inputs: Any) -> np.ndarray:
        values = outputs_of(self.sampler, self.sampler.function(**inputs), len(packed), inputs)
        total, at = np.zeros(len(packed)), 0
        for port, (value, wrong) in values.items():
            family, shapes = self.kinds[port]
            message, at = _unpacked(family, shapes, packed, at)
            axis: Any = axis_of(family, message)
            log_m = axis.log_message(message, axis.coordinates(value)[:, None])[:, 0]
            total = total + (
                log_m if wrong is None else np.where(wrong == 1, np.nan, np.where(wrong > 1, -np.inf, log_m))
            )
        return total


def outputs_of(
    sampler: Sampler, given: Any, n: int, inputs: Mapping[str, Any]
) -> dict[str, tuple[np.ndarray, np.ndarray | None]]:
    """What a function of several outputs gave, by port, with what no family holds marked (`Values.wrong`)."""
    families = (sampler.output, *sampler.more)
    if not isinstance(given, (tuple, list)) or len(given) != len(families):
        what = f"{len(given)} values" if isinstance(given, (tuple, list)) else type(given).__name__
        raise FactorError(
            f"factor {sampler.name!r} says {len(families)} outputs and returned {what}; return a tuple, one array for each output"
        )
    arrays = {k: a for k, a in inputs.items() if k in sampler.inputs}
    found = {}
    for port, family, value in zip(sampler.children, families, given, strict=True):
        part = sampler._replace(
            function=lambda value=value, **_: value, output=family, more=(), stochastic=False, sized=False
        )
        checked = try_values(np.random.default_rng(0), part, arrays, n)
        found[port] = checked.out, checked.wrong
    return found


def _packed(message: Family) -> np.ndarray:
    """A message as rows of numbers: its naturals, and where it is a point mass its value."""
    n = len(message)
    width = message.naturals[0].shape[-1] if type(message).point_rank else 1
    point = (
        np.full((n, width), np.nan)
        if message.point is None
        else np.asarray(message.point, dtype=float).reshape(n, width)
    )
    return np.concatenate([*(a.reshape(n, -1) for a in message.naturals), point], axis=1)


def _unpacked(family: type[Family], shapes: list[tuple[int, ...]], packed: np.ndarray, at: int) -> tuple[Any, int]:
    """The reverse, from column `at` on, and the column after it."""
    naturals = []
    for shape in shapes:
        size = int(np.prod(shape, dtype=int))
        naturals.append(packed[:, at : at + size].reshape(len(packed), *shape))
        at += size
    width = shapes[0][0] if family.point_rank else 1
    point = packed[:, at : at + width]
    seen = None if np.isnan(point).all() else (point if family.point_rank else point[:, 0])
    return family.from_naturals(tuple(naturals), seen), at + width


def _outputs(
    rng: np.random.Generator,
    sampler: Sampler,
    problem: Problem,
    beliefs: Mapping[str, Family],
    seen: Mapping[str, Family],
    failed: np.ndarray,
) -> dict[str, Projection]:
    """Beliefs of the outputs of rows of one kind; a row is unsound where draws were too few."""
    rows: dict[str, list[Projection]] = {p: [] for p in seen}
    for i in range(problem.n):
        here = np.array([i])
        one, own = take_rows(problem, here), {p: m[here] for p, m in seen.items()}
        u, log_q = _drawn(rng, one, {p: m[here] for p, m in beliefs.items()})
        inputs = {p.name: p.axis.value(u[:, p.columns]) for p in one.inputs}
        inputs |= {k: np.repeat(a, len(u), axis=0) for k, a in one.constants.items()}
        values = outputs_of(sampler, call(rng, sampler, inputs, len(u)), len(u), inputs)
        log_w = log_inputs(one, u[None])[0] - log_q
        coordinates = {}
        for port, (value, wrong) in values.items():
            axis: Any = axis_of(type(own[port]), own[port])
            coordinates[port] = axis.coordinates(value)
            log_m = axis.log_message(own[port], coordinates[port][None])[0]
            log_w = log_w + (log_m if wrong is None else np.where(wrong > 0, -np.inf, log_m))
        for port in seen:
            rows[port].append(_projected(own[port], coordinates[port], log_w, bool(failed[i])))
    return {p: _stacked(found) for p, found in rows.items()}


def _drawn(rng: np.random.Generator, one: Problem, beliefs: Mapping[str, Family]) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates (s, D) of draws around the beliefs of one row, part after part, and the log density that they have."""
    width = sum(1 if p.axis.discrete else p.axis.n_uniforms for p in one.inputs)
    uniforms = np.clip(_uniforms(rng, width), 1e-12, 1 - 1e-12)
    u, log_q, at = np.zeros((len(uniforms), one.n_coordinates)), np.zeros(len(uniforms)), 0
    for port in one.inputs:
        if port.axis.discrete:
            p = 0.5 * port.axis.probabilities(beliefs[port.name])[0] + 0.5 / port.axis.n_values
            chosen = np.minimum(np.searchsorted(np.cumsum(p), uniforms[:, at]), port.axis.n_values - 1)
            u[:, port.columns.start], log_q, at = chosen, log_q + np.log(p[chosen]), at + 1
            continue
        wide = port.axis.broaden(beliefs[port.name], _BROADER)
        k = port.axis.n_uniforms
        drawn = port.axis.draw(wide, uniforms[None, :, at : at + k])
        u[:, port.columns], at = drawn[0], at + k
        log_q = log_q + (port.axis.log_message(wide, drawn) + port.axis.log_jacobian(drawn))[0]
    return u, log_q


def _uniforms(rng: np.random.Generator, width: int) -> np.ndarray:
    """Uniform numbers (s, width), part after part: even ones on a line, each part shifted a little, else Latin hypercubes."""
    if width == 1:
        shift = (np.arange(_PARTS)[:, None] + 0.5) / _PARTS
        return ((np.arange(_DRAWS) + shift) / _DRAWS).reshape(-1, 1)
    places = rng.permuted(np.tile(np.arange(_DRAWS), (_PARTS, width, 1)), axis=2).swapaxes(1, 2)
    return ((places + rng.random(places.shape)) / _DRAWS).reshape(-1, width)


def _projected(message: Family, v: np.ndarray, log_w: np.ndarray, failed: bool) -> Projection:
    """The belief of one output of one row from weighed draws, its errors from the spread of the parts."""
    axis: Any = axis_of(type(message), message)
    log_w = np.where(np.isnan(log_w), -np.inf, log_w)
    total = _log_sum(log_w)
    w = np.exp(log_w - total) if np.isfinite(total) else np.zeros(len(log_w))
    few = failed or not np.isfinite(total) or 1.0 / np.square(w).sum() < _FEWEST
    if few:
        w = np.full(len(w), 1.0 / len(w))
    centre = w @ v
    scale = np.sqrt(np.maximum(w @ (v - centre) ** 2, 1e-24 * (1 + centre**2)))
    if axis.scale_is_log_gap:
        scale = _log_sum(np.log(np.maximum(w, 1e-300)) + v[:, 0]) - centre
    t = axis.statistics(v[None], centre[None], scale[None])[0]
    parts = w.reshape(_PARTS, -1)
    mass = parts.sum(axis=1)
    mean = w @ t
    off = np.einsum("ps,psq->pq", parts, (t - mean).reshape(*parts.shape, -1)) / max(float(mass.mean()), 1e-300)
    covariance = off.T @ off / max(len(parts) - 1, 1) / len(parts)
    p = axis.project(mean[None], covariance[None], centre[None], scale[None])
    return p._replace(sound=p.sound & (not few))


def _log_sum(a: np.ndarray) -> float:
    return float(np.asarray(logsumexp(a)))


def _stacked(found: list[Projection], order: Any = slice(None)) -> Projection:
    """Batches as one, in an order."""
    beliefs = concatenate([p.belief for p in found])[order]
    errors = tuple(np.concatenate(e)[order] for e in zip(*(p.errors for p in found), strict=True))
    names = ("covariance", "chart_covariance", "expected_kl", "sound")
    return Projection(beliefs, errors, *(np.concatenate([getattr(p, k) for p in found])[order] for k in names))


def _joined(
    sampler: Sampler,
    incoming: Mapping[str, Any],
    inputs: Answer,
    parts: list[tuple[np.ndarray, dict[str, Projection]]],
) -> Answer:
    """The answer about the inputs, with the outputs in it."""
    order = np.argsort(np.concatenate([rows for rows, _ in parts]), kind="stable")
    found: dict[str, Projection] = {}
    for port in sampler.children:
        p, message = _stacked([of[port] for _, of in parts], order), incoming[port]
        found[port] = at_port(message, p, inputs.failed | (~p.sound & ~message.is_point))
    fields = {name: getattr(inputs, name) | own for name, own in fields_of(found).items()}
    spent = inputs.n_evaluations + _PARTS * _DRAWS * len(inputs.failed)
    ordered = {name: {p: of[p] for p in sampler.ports if p in of} for name, of in fields.items()}
    return inputs._replace(**ordered, n_evaluations=spent)
