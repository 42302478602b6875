"""Plain importance sampling from a fixed proposal, message by message, fast: the paper's own sampler, eq. (2).

Half a million draws per message are a matter of memory traffic. Each message has draws of its own, as in the paper: nothing is
shared but the buffers, which are small enough for a core's cache. A log weight is linear in two statistics of each port
(message and proposal are of the same family), so all of them are one product of a short vector with those statistics.
"""

from __future__ import annotations

import numpy as np

from heliograph.oracles.calling import evaluate
from heliograph.oracles.frames import Frame, frame_of
from heliograph.oracles.importance.plain_lines import PlainLine, has_line, line_class
from heliograph.oracles.importance.proposal import Proposal, log_density
from heliograph.oracles.importance.sums import Sums
from heliograph.oracles.importance.weighing import log_output, weigh
from heliograph.oracles.problem import Problem

__all__ = ["PLAIN_CHUNK", "PLAIN_FIRST", "add_row", "serves"]

PLAIN_CHUNK = 8192  # draws at a time: some ten arrays of 64 KB, the second-level cache of a core
PLAIN_FIRST = 4096  # draws from which a row's frame is taken
_NOTHING = (
    -170.0
)  # the least log weight, relative to the largest: squares of less leave the normal numbers, which is slow


def serves(problem: Problem) -> bool:
    """Whether this way is for such a problem: random inputs and an output of one real number each."""
    ports = (*problem.inputs, problem.output)
    return bool(problem.inputs) and all(has_line(type(p.message)) for p in ports)


def add_row(
    rng: np.random.Generator, problem: Problem, proposal: Proposal, n_samples: int, sums: Sums, i: int
) -> tuple[Frame, bool]:
    """Draw for a problem of one row and put its sums in row i; its frame, and whether some weight was no number."""
    drawn = _draw(rng, problem, proposal, min(PLAIN_FIRST, n_samples))
    frame = _frame(problem, proposal, *drawn)
    lines, at = [], 0
    for port in (*problem.inputs, problem.output):
        centre, scale = float(frame.centres[port.name][0, 0]), float(frame.scales[port.name][0, 0])
        lines.append(line_class(type(port.message))(centre, scale, slice(at, at + 2)))
        at += 2
    constant, slopes = _linear(problem, proposal, lines)
    every = 4 if n_samples > 8 * PLAIN_CHUNK else 1
    work = _Work(lines, constant, slopes, sums.tails.shape[2], every)
    work.add(*drawn)
    left = n_samples - len(drawn[1])
    while left:
        drawn = _draw(rng, problem, proposal, min(left, PLAIN_CHUNK))
        work.add(*drawn)
        left -= len(drawn[1])
    work.put(sums, i, n_samples)
    return frame, work.bad


def _draw(
    rng: np.random.Generator, problem: Problem, proposal: Proposal, n: int
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Inputs by port, and what the function gives for them."""
    inputs = {}
    for port, message in zip(problem.continuous, proposal.products[0], strict=True):
        inputs[port.name] = line_class(type(message)).draw(rng, message, n)
    known = {k: np.repeat(a, n, axis=0) for k, a in problem.constants.items()}
    return inputs, evaluate(rng, problem.sampler, inputs | known)


def _frame(problem: Problem, proposal: Proposal, inputs: dict[str, np.ndarray], out: np.ndarray) -> Frame:
    coordinates = [p.axis.coordinates(inputs[p.name][None]) for p in problem.inputs]
    u, v = np.concatenate(coordinates, axis=-1), problem.output.axis.coordinates(out[None])
    edge = np.zeros((1, len(out)), dtype=np.int8)
    return frame_of(
        problem, u, v, weigh(problem, u, v, log_density(problem, proposal, u), edge, log_output).log_weights
    )


def _linear(problem: Problem, proposal: Proposal, lines: list[PlainLine]) -> tuple[float, np.ndarray]:
    """``log w = constant + slopes . T``: all messages over the proposal."""
    constant, slopes = 0.0, np.zeros(2 * len(lines))
    for port, line, drawn_from in zip(problem.inputs, lines, proposal.products[0], strict=False):
        for message, sign in ((port.message, 1.0), (drawn_from, -1.0)):
            c, s = line.coefficients(message)
            constant += sign * c
            slopes[line.rows] += sign * s
    c, s = lines[-1].coefficients(problem.output.message)
    slopes[lines[-1].rows] += s
    return constant + c, slopes


class _Work:
    """The sums of one row as they grow, of T rather than of the axes' statistics, which are linear in it.

    What only the errors need (squared weights with T, and tails of their products) is summed over one chunk in `every`.
    """

    def __init__(self, lines: list[PlainLine], constant: float, slopes: np.ndarray, n_tail: int, every: int) -> None:
        self.lines, self.constant, self.slopes = lines, constant, slopes
        q = len(slopes)
        self.bad = False
        self.every, self.n_chunks = every, 0
        self.offset, self.w, self.w2, self.w2_here = -np.inf, 0.0, 0.0, 0.0
        self.wt, self.w2t, self.w2tt = np.zeros(q), np.zeros(q), np.zeros((q, q))
        self.edges = np.zeros((2, 2))  # low and high: sums of w and of w^2
        self.tails = np.full((1 + len(lines), n_tail), -np.inf)
        self.units: np.ndarray | None = None
        self.t, self.a, self.row = np.empty((q, PLAIN_CHUNK)), np.empty((q, PLAIN_CHUNK)), np.empty(PLAIN_CHUNK)

    def add(self, inputs: dict[str, np.ndarray], out: np.ndarray) -> None:
        """Add a chunk of draws."""
        n = len(out)
        edges = self.lines[-1].edges(out)
        t, a, w = self.t[:, :n], self.a[:, :n], self.row[:n]
        for line, x in zip(self.lines, (*inputs.values(), edges.inside), strict=True):
            line.fill(t[line.rows], x)
        log_w = self.slopes @ t
        log_w += self.constant
        here = float(log_w.max())
        if not here < np.inf:  # NaN or infinite: such a draw counts for nothing, and the row is marked
            self.bad = True
            log_w[~(log_w < np.inf)] = -np.inf
            t[:, ~np.isfinite(t).all(axis=0)] = 0.0
            here = float(log_w.max())
        if here > self.offset:
            self._measure_from(here)
        if self.offset == -np.inf:
            return  # nothing has a weight yet
        np.subtract(log_w, self.offset, out=w)
        np.maximum(w, _NOTHING, out=w)
        np.exp(w, out=w)
        self.w += w.sum()
        self.w2 += w @ w
        self.wt += t @ w
        for k, at in enumerate((edges.low, edges.high)):
            if len(at):
                self.edges[k] += w[at].sum(), w[at] @ w[at]
        _merge(self.tails[0], log_w[log_w > self.tails[0, 0]])
        self.n_chunks += 1
        if (self.n_chunks - 1) % self.every:
            return
        np.multiply(t, w, out=a)
        self.w2_here += w @ w
        self.w2t += a @ w
        for line in self.lines:
            first, second = a[line.rows]
            across = first @ second
            self.w2tt[line.rows, line.rows] += [[first @ first, across], [across, second @ second]]
        self._keep_largest(w, a)

    def _measure_from(self, offset: float) -> None:
        """Divide all sums so that a log weight of `offset` counts 1."""
        shrink = np.exp(self.offset - offset)
        self.w, self.wt = self.w * shrink, self.wt * shrink
        squares = (self.w2, self.w2_here, self.w2t, self.w2tt)
        self.w2, self.w2_here, self.w2t, self.w2tt = (b * shrink**2 for b in squares)
        self.edges *= [shrink, shrink**2]
        self.offset = offset

    def _keep_largest(self, w: np.ndarray, a: np.ndarray) -> None:
        """The largest weights times the size of each port's T, among those that exceed what is kept."""
        np.abs(a, out=a)
        units = np.maximum(a.sum(axis=1) / w.sum(), 1e-100) if self.units is None else self.units
        self.units = units
        for line, tail in zip(self.lines, self.tails[1:], strict=True):
            size = (1 / units[line.rows]) @ a[line.rows]
            found = size[size > np.exp(max(tail[0] - self.offset, -745.0))]
            _merge(tail, np.log(found) + self.offset)

    def put(self, sums: Sums, i: int, n_samples: int) -> None:
        """Write the row's sums where those of other draws are."""
        sums.count[i], sums.offset[i] = n_samples, self.offset
        sums.w[0, i], sums.w2[i] = self.w, self.w2
        sums.tails[i] = self.tails
        # the squares of the chunks looked at, for all: in proportion to the squared weights, which are known of all
        share = self.w2 / self.w2_here if self.w2_here > 0 else 1.0
        for line, squares in zip(self.lines, sums.w2tt, strict=False):
            m = line.statistics_from()
            sums.wt[0, i, line.rows] = m @ self.wt[line.rows]
            sums.w2t[i, line.rows] = share * (m @ self.w2t[line.rows])
            squares[i] = share * (m @ self.w2tt[line.rows, line.rows] @ m.T)
        sums.wt[0, i, -2:], sums.w2t[i, -2:] = self.edges[:, 0], self.edges[:, 1]
        sums.w2tt[-1][i] = np.diag(self.edges[:, 1])


def _merge(tail: np.ndarray, more: np.ndarray) -> None:
    """Keep the largest; the smallest of them comes first."""
    if len(more):
        both = np.concatenate([tail, more])
        tail[:] = np.partition(both, len(more))[len(more) :]
