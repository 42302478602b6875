"""The integral that an oracle computes, for rows of a plate in which the same ports are fixed.

`groups_of` cuts a plate into such problems; `walk` calls the user's function at given coordinates.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from heliograph.errors import FactorError, ModelError, UnsupportedError
from heliograph.families import Categorical, Family
from heliograph.oracles.axes import axis_of
from heliograph.oracles.calling import try_values
from heliograph.oracles.sampler import Sampler

__all__ = [
    "NOTICEABLE",
    "Port",
    "Problem",
    "Walked",
    "continuous_columns",
    "groups_of",
    "log_inputs",
    "log_unknown",
    "refuse_observed",
    "stand_in",
    "take_incoming",
    "take_rows",
    "walk",
]

NOTICEABLE = 1e-6  # share of the mass that may lie where a function gives no value


class Port(NamedTuple):
    """A port whose variable is not known: its message, its axis and its columns among the coordinates."""

    name: str
    axis: Any  # an Axis: a Line, or Values where discrete
    message: Family  # (n,)
    columns: slice


class Problem(NamedTuple):
    """One integral per row, all of the same kind."""

    sampler: Sampler
    inputs: tuple[Port, ...]  # random inputs
    constants: dict[str, np.ndarray]  # port -> (n, ...): data, and point masses
    fixed: dict[str, Family]  # the point-mass inputs among them
    output: Port  # its columns count from 0 in the output's own coordinates
    n: int
    identity: np.ndarray  # (n,) a number for each row that depends on its messages and data alone, not on its place

    @property
    def n_coordinates(self) -> int:
        """Columns of all random inputs."""
        return sum(p.axis.n_coordinates for p in self.inputs)

    @property
    def continuous(self) -> tuple[Port, ...]:
        """The random inputs with a density."""
        return tuple(p for p in self.inputs if not p.axis.discrete)

    @property
    def discrete(self) -> tuple[Port, ...]:
        """The random inputs of finitely many values."""
        return tuple(p for p in self.inputs if p.axis.discrete)


def groups_of(sampler: Sampler, incoming: Mapping[str, Any]) -> Iterator[tuple[np.ndarray, Problem]]:
    """Cut a plate into problems, with the rows of each."""
    messages, data, n = _sorted_out(sampler, incoming)
    identity = _identities([*messages.values()], [*data.values()], n)
    pattern = np.zeros(n, dtype=int)
    for bit, port in enumerate(sampler.inputs):
        if port in messages:
            pattern += messages[port].is_point.astype(int) << bit
    for code in np.unique(pattern):
        rows = np.flatnonzero(pattern == code)
        constants = {k: a[rows] for k, a in data.items()}
        inputs, fixed, at = [], {}, 0
        for bit, port in enumerate(sampler.inputs):
            if port not in messages:
                continue
            message = messages[port][rows]
            if code >> bit & 1:
                fixed[port], constants[port] = message, np.asarray(message.point)
                continue
            axis = axis_of(type(message), message)
            inputs.append(Port(port, axis, message, slice(at, at + axis.n_coordinates)))
            at += axis.n_coordinates
        message = messages[sampler.child][rows]
        axis = axis_of(type(message), message)
        output = Port(sampler.child, axis, message, slice(0, axis.n_coordinates))
        yield rows, Problem(sampler, tuple(inputs), constants, fixed, output, len(rows), identity[rows])


def take_incoming(incoming: Mapping[str, Any], rows: np.ndarray) -> dict[str, Any]:
    """Some rows of a plate of messages and data, in their order; what is the same for all rows stays."""
    n = max((len(m) for m in incoming.values() if np.ndim(m) or isinstance(m, Family)), default=0)
    if len(rows) == n:
        return dict(incoming)
    return {k: m[rows] if isinstance(m, Family) or (np.ndim(m) and len(m) == n) else m for k, m in incoming.items()}


def take_rows(problem: Problem, rows: np.ndarray) -> Problem:
    """The same kind of integral for some of the rows."""
    return problem._replace(
        inputs=tuple(p._replace(message=p.message[rows]) for p in problem.inputs),
        constants={k: a[rows] for k, a in problem.constants.items()},
        fixed={k: m[rows] for k, m in problem.fixed.items()},
        output=problem.output._replace(message=problem.output.message[rows]),
        n=len(rows),
        identity=problem.identity[rows],
    )


def _identities(messages: list[Family], data: list[np.ndarray], n: int) -> np.ndarray:
    """A number for each row from its content; rows that are alike are counted, so that each has one of its own."""
    columns = [a.reshape(n, -1) for m in messages for a in m.naturals]
    columns += [np.asarray(m.point).reshape(n, -1) for m in messages if m.point is not None]
    columns += [np.asarray(a, dtype=float).reshape(n, -1) for a in data]
    table = np.concatenate(columns, axis=1) + 0.0  # -0 is 0
    seen: dict[bytes, int] = {}
    identity = np.empty(n, dtype=np.uint64)
    for i, row in enumerate(np.ascontiguousarray(table)):
        content = row.tobytes()
        seen[content] = seen.get(content, -1) + 1
        digest = hashlib.blake2b(content, digest_size=8, salt=seen[content].to_bytes(16, "little")).digest()
        identity[i] = int.from_bytes(digest, "little")
    return identity


class Walked(NamedTuple):
    """The function at coordinates (n, s, D)."""

    v: np.ndarray  # (n, s, Dout), the output's coordinates; anything where there is no value
    edge: np.ndarray  # (n, s), -1 or 1 where the output had rounded onto the lower or upper edge of its support
    wrong: (
        np.ndarray | None
    )  # (n, s), 1 where the function gave no value of the output's family, 2 where an infinite one
    complain: Callable[[int], FactorError]  # the error that names a point, counted along the flattened (n, s)


def walk(rng: np.random.Generator, problem: Problem, u: np.ndarray) -> Walked:
    """Call the function at coordinates (n, s, D)."""
    n, s = u.shape[:2]
    inputs = {p.name: _flat(p.axis.value(u[..., p.columns])) for p in problem.inputs}
    inputs |= {k: np.repeat(a, s, axis=0) for k, a in problem.constants.items()}
    found = try_values(rng, problem.sampler, inputs, size=n * s)
    _check_length(problem, found.out)
    out = found.out.reshape((n, s, *found.out.shape[1:]))
    wrong = None if found.wrong is None else found.wrong.reshape(n, s)
    axis = problem.output.axis
    if np.isfinite(axis.largest) and (np.abs(out) > axis.largest).any():
        beyond = np.abs(out) > axis.largest
        out = np.where(beyond, 0.0, out)
        beyond = beyond.any(axis=-1) if beyond.ndim > 2 else beyond
        wrong = np.where(beyond, 2, 0 if wrong is None else wrong).astype(np.int8)
    return Walked(axis.coordinates(out), axis.edge(out), wrong, found.complain)


def _check_length(problem: Problem, out: np.ndarray) -> None:
    """A vector output must have the dimension of its message, a label be one of its categories."""
    length = problem.output.message.naturals[0].shape[-1]
    if problem.sampler.output.discrete and out.max() >= problem.output.axis.n_values:
        raise FactorError(
            f"factor {problem.sampler.name!r} returned category {int(out.max())}, "
            f"but the message at port {problem.output.name!r} has {length} categories"
        )
    if problem.sampler.output.point_rank and out.shape[1] != length:
        raise FactorError(
            f"factor {problem.sampler.name!r} returned vectors of length {out.shape[1]}, "
            f"but the message at port {problem.output.name!r} has dimension {length}"
        )


def log_inputs(problem: Problem, u: np.ndarray) -> np.ndarray:
    """``log`` of the product of the incoming input messages, as a density of the coordinates."""
    total = np.zeros(u.shape[:2])
    for p in problem.inputs:
        v = u[..., p.columns]
        total += p.axis.log_message(p.message, v) + p.axis.log_jacobian(v)
    return total


def _flat(x: np.ndarray) -> np.ndarray:
    return x.reshape((x.shape[0] * x.shape[1], *x.shape[2:]))


def _sorted_out(sampler: Sampler, incoming: Mapping[str, Any]) -> tuple[dict[str, Family], dict[str, np.ndarray], int]:
    """Messages, data arrays, and the length of the plate."""
    missing = [p for p in sampler.ports if p not in incoming]
    if missing:
        raise ModelError(f"factor {sampler.name!r} needs a message at every port; {missing} have none")
    messages = {k: incoming[k] for k in sampler.ports if isinstance(incoming[k], Family)}
    if sampler.child not in messages:
        value = np.asarray(incoming[sampler.child])
        if sampler.output is Categorical:
            raise ModelError(
                f"give the output of factor {sampler.name!r} as Categorical.point_mass(index, n_categories)"
            )
        messages[sampler.child] = sampler.output.point_mass(value)  # type: ignore[attr-defined]
    if type(messages[sampler.child]) is not sampler.output:
        raise UnsupportedError(
            f"factor {sampler.name!r} gives a {sampler.output.__name__}, but the message at port {sampler.child!r} "
            f"is a {type(messages[sampler.child]).__name__}"
        )
    shapes = {k: m.shape for k, m in messages.items()}
    if any(len(s) != 1 for s in shapes.values()) or len(set(shapes.values())) != 1:
        raise ModelError(f"factor {sampler.name!r} needs messages of one plate shape (n,), not {shapes}")
    n = next(iter(shapes.values()))[0]
    data = {}
    for k in sampler.inputs:
        if k not in messages:
            a = np.asarray(incoming[k])
            a = np.broadcast_to(a, (n,)) if a.ndim == 0 else a
            if len(a) != n:
                raise ModelError(f"data at port {k!r} of factor {sampler.name!r} has {len(a)} rows for {n} messages")
            data[k] = a
    return messages, data, n


def stand_in(problem: Problem, scale: float, vague: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Mean (n, C) and covariance (n, C, C) on the axes: twice the messages' own, or ``N(0, scale^2)`` where improper.

    In rows that are `vague` a message broader than that has its place taken too.
    """
    n, columns = problem.n, continuous_columns(problem)
    mean, covariance = np.zeros((n, len(columns))), np.zeros((n, len(columns), len(columns)))
    at = 0
    for port in problem.continuous:
        d = port.axis.n_coordinates
        own = slice(at, at + d)
        covariance[:, own, own] = scale**2 * np.eye(d)
        proper = np.flatnonzero(port.message.proper)
        if len(proper):
            m, v = port.axis.moments(port.message[proper])
            if vague is not None:
                narrow = ~vague[proper] | (np.diagonal(v, axis1=1, axis2=2).max(axis=1) <= scale**2)
                proper, m, v = proper[narrow], m[narrow], v[narrow]
            mean[proper, own], covariance[proper, own, own] = m, 2.0 * v
        at += d
    return mean, covariance


def continuous_columns(problem: Problem) -> np.ndarray:
    """Columns of the continuous inputs among the coordinates."""
    return np.concatenate([np.arange(p.columns.start, p.columns.stop) for p in problem.continuous] or [np.arange(0)])


def refuse_observed(problem: Problem) -> None:
    """Raise where the output is a continuous value known exactly."""
    if not problem.output.axis.discrete and problem.output.message.is_point.any():
        raise UnsupportedError(
            f"the output of factor {problem.sampler.name!r} is observed exactly, and no draw of a continuous value "
            "ever equals an observation: put noise between the two (a Gaussian around the output), or use oracle='abc'"
        )


def log_unknown(problem: Problem, walked: Walked, log_in: np.ndarray, rule: np.ndarray) -> np.ndarray:
    """A bound (n,) on the log mass at points where the function gave no value; -inf where there are none.

    `log_in` is the log density of the inputs' messages and `rule` the log weight of each point, both (n, s). An infinite
    value has no mass under a message that falls off.
    """
    if walked.wrong is None:
        return np.full(problem.n, -np.inf)
    axis, message = problem.output.axis, problem.output.message
    most = np.broadcast_to(axis.log_highest(message)[:, None], log_in.shape)
    most = np.where((walked.wrong == 2) & axis.falls_off(message)[:, None], -np.inf, most)
    terms = np.where(walked.wrong > 0, log_in + rule, -np.inf)
    terms = np.where(np.isneginf(terms) | np.isneginf(most), -np.inf, terms + np.where(np.isneginf(most), 0.0, most))
    with np.errstate(divide="ignore"):  # no mass at all
        return np.asarray(logsumexp(terms, axis=1))
