"""Self-normalised importance sampling in the log domain, eq. (2): one run answers every direction of a whole plate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from heliograph.errors import ModelError, UnsupportedError
from heliograph.families import Family, concatenate
from heliograph.oracles.answer import Answer, gather
from heliograph.oracles.assembly import Frame, answer_of, blocks_of, frame_of, statistics_of
from heliograph.oracles.diagnostics import effective_sample_size, pareto_k, tail_length
from heliograph.oracles.fitting import fit
from heliograph.oracles.problem import Port, Problem, groups_of, log_inputs, take_rows, walk
from heliograph.oracles.proposal import Proposal, draw, log_density, n_uniforms, stand_in, take_proposal
from heliograph.oracles.sampler import Sampler
from heliograph.oracles.sums import Sums, add, empty_sums, estimate
from heliograph.oracles.uniforms import Uniforms, uniforms_for

__all__ = ["ImportanceOracle"]

_CHUNK = 2**17  # calls of the user's function at a time: some 50 MB of temporaries
_BROADEN = 2.25  # variance of the wide half of the defensive mixture; the same as 1.5 standard deviations
_STAND_INS = (1.0, 10.0, 100.0)  # widths tried on the axis of an input about which nothing is known

Match = Callable[[Port, np.ndarray], np.ndarray]  # the output's port and coordinates -> log weight


class Draws(NamedTuple):
    """Weighted draws of a chunk."""

    u: np.ndarray  # (n, s, D)
    v: np.ndarray  # (n, s, Dout)
    log_weights: np.ndarray  # (n, s)
    edge: np.ndarray  # (n, s) bool
    bad: np.ndarray  # (n,) bool: a weight was NaN or infinite


@dataclass(frozen=True)
class ImportanceOracle:
    """Draw the inputs from a proposal, push them through the function, weight by all messages.

    `proposal` is "defensive" (half cavity, half cavity with 1.5 times its standard deviations), "cavity", or a `Family`
    (or a mapping port -> Family) that is used as it is: ``Gaussian(0, 200)`` is the paper's r. With `adapt`, rows
    whose pilot has a low effective sample size or a Pareto k above `k_threshold` have theirs re-fitted. The paper's
    oracle is ``ImportanceOracle(500_000, proposal=Gaussian(0.0, 200.0), draws="random", adapt=False)``.

    With `precision`, draws are doubled until every port's relative standard error (``Answer.label_noise``) is at
    most that, or the row has used `budget` draws. Sobol' draws are rounded up to `n_replicates` times a power of two.
    """

    n_samples: int = 16_384
    proposal: str | Family | Mapping[str, Family] = "defensive"
    draws: str = "sobol"
    adapt: bool = True
    precision: float | None = None
    budget: int | None = None  # draws a message; None is 16 times n_samples
    n_pilot: int = 1024
    max_rounds: int = 8
    k_threshold: float = 0.7
    min_ess: float = 50.0
    n_replicates: int = 16  # of Sobol draws: their spread is the standard error

    def ask(self, rng: np.random.Generator, sampler: Sampler, incoming: Mapping[str, Any]) -> Answer:
        """The beliefs of every direction, one row for each incoming tuple."""
        return self.ask_matching(rng, sampler, incoming, _log_output)

    def ask_matching(
        self, rng: np.random.Generator, sampler: Sampler, incoming: Mapping[str, Any], match: Match
    ) -> Answer:
        """The same with another way to compare the output with its message."""
        parts = []
        n = 0
        for rows, problem in groups_of(sampler, incoming):
            n += len(rows)
            if match is _log_output:
                _refuse_observed(problem)
            known = np.ones(problem.n, dtype=bool)
            for port in problem.continuous:
                known &= port.message.proper
            for side in (known, ~known):
                some = np.flatnonzero(side)
                block = max(1, _CHUNK // self.n_pilot)
                for start in range(0, len(some), block):
                    here = some[start : start + block]
                    parts.append((rows[here], self._ask_block(rng, take_rows(problem, here), match)))
        return gather(parts, n)

    def _ask_block(self, rng: np.random.Generator, problem: Problem, match: Match) -> Answer:
        base = self._base(problem)
        n_spent = 0
        groups = [(np.arange(problem.n), base)]
        if self.adapt and problem.inputs:
            fitted, adapted, n_spent = self._adapt(rng, problem, base, match)
            plain = np.flatnonzero(~adapted)
            groups = [(plain, take_proposal(base, plain))] if len(plain) else []
            if adapted.any():
                groups.append((np.flatnonzero(adapted), fitted))
        parts = [(rows, self._run(rng, take_rows(problem, rows), proposal, match)) for rows, proposal in groups]
        answer = gather(parts, problem.n)
        return answer._replace(n_evaluations=answer.n_evaluations + n_spent)

    # ---- the proposal -------------------------------------------------------------------------------------------
    def _base(self, problem: Problem) -> Proposal:
        ports, n = problem.continuous, problem.n
        d = sum(p.axis.n_coordinates for p in ports)
        # half of the chance of a discrete input goes to all its values alike, so that none is never tried
        tables = tuple(_table(p) for p in problem.discrete)
        none = np.zeros((n, 0, d)), np.zeros((n, 0, d, d)), np.zeros((n, 0, d, d))
        if not isinstance(self.proposal, str):
            product = tuple(_fixed(self.proposal, p, n) for p in ports)
            return Proposal(np.ones((n, 1)), (product,), *none, tables)
        if self.proposal not in ("defensive", "cavity"):
            raise ModelError(f"a proposal is 'defensive', 'cavity' or a Family, not {self.proposal!r}")
        if all(p.message.proper.all() for p in ports):
            cavity = tuple(p.message for p in ports)
            if self.proposal == "cavity" or not ports:
                return Proposal(np.ones((n, 1)), (cavity,), *none, tables)
            wide = tuple(p.axis.broaden(p.message, _BROADEN) for p in ports)
            return Proposal(np.full((n, 2), 0.5), (cavity, wide), *none, tables)
        moments = [stand_in(problem, scale) for scale in _STAND_INS]
        means = np.stack([m for m, _ in moments], axis=1)
        roots = np.linalg.cholesky(np.stack([v for _, v in moments], axis=1))
        k = len(_STAND_INS)
        return Proposal(np.full((n, k), 1 / k), (), means, roots, np.linalg.inv(roots), tables)

    def _adapt(
        self, rng: np.random.Generator, problem: Problem, base: Proposal, match: Match
    ) -> tuple[Proposal, np.ndarray, int]:
        """Fitted proposals of the rows that needed one, which rows, and what it cost."""
        n, size = problem.n, min(self.n_pilot, self.n_samples)
        supply = uniforms_for(rng, n, n_uniforms(problem), "random")
        need = np.arange(n)
        chosen: dict[int, Proposal] = {}
        best = np.zeros(n)
        proposal, spent = base, 0
        for rounds in range(self.max_rounds + 1):
            here = take_rows(problem, need)
            drawn = _look(rng, here, proposal, supply.take(0, size, need), match)
            spent += size * len(need)
            ess = effective_sample_size(drawn.log_weights)
            k = pareto_k(_largest(drawn.log_weights, tail_length(size)))
            # the best proposal so far stays: a later fit may have lost a mode
            better = ess > best[need]
            if rounds:
                for i in np.flatnonzero(better):
                    chosen[int(need[i])] = take_proposal(proposal, np.array([i]))
            best[need] = np.maximum(best[need], ess)
            poor = (ess < (0.1 if rounds == 0 else 0.2) * size) | (k > self.k_threshold)
            stalled = rounds > 2 and not better.any()
            if not poor.any() or rounds == self.max_rounds or stalled:
                break
            kept = np.flatnonzero(poor)
            need = need[kept]
            drawn = Draws(*(a[kept] for a in drawn))
            proposal, _ = fit(rng, take_rows(problem, need), take_proposal(base, need), drawn.u, drawn.log_weights)
        adapted = np.zeros(n, dtype=bool)
        adapted[list(chosen)] = True
        if not chosen:
            return base, adapted, spent
        return _stack([chosen[int(i)] for i in np.flatnonzero(adapted)]), adapted, spent

    # ---- the run ------------------------------------------------------------------------------------------------
    def _run(self, rng: np.random.Generator, problem: Problem, proposal: Proposal, match: Match) -> Answer:
        supply = uniforms_for(rng, problem.n, n_uniforms(problem), self.draws, self.n_replicates)
        per_replicate = -(-self.n_samples // supply.n_replicates)
        if self.draws == "sobol":
            per_replicate = 1 << (per_replicate - 1).bit_length()
        n_first = per_replicate * supply.n_replicates
        budget = self.budget or 16 * n_first
        sums = empty_sums(problem.n, blocks_of(problem), supply.n_replicates, tail_length(n_first))
        rows, frame, spent = np.arange(problem.n), None, 0
        bad = np.zeros(problem.n, dtype=bool)
        answer = None
        while True:
            frame = self._extend(rng, problem, proposal, match, supply, sums, rows, per_replicate, frame, bad)
            spent += per_replicate * supply.n_replicates * len(rows)
            e = estimate(sums)
            k = pareto_k(sums.tail)
            failed = bad | (e.ess < self.min_ess) | (k > self.k_threshold)
            answer = answer_of(problem, frame, e.mean, e.covariances, e.log_z, e.log_z_error, e.ess, k, failed, spent)
            if self.precision is None:
                return answer
            wanting = ~bad & (answer.failed | (answer.label_noise > self.precision))
            rows = np.flatnonzero(wanting & (sums.count * 2 <= budget))
            if not len(rows):
                return answer
            per_replicate = int(sums.count[rows[0]]) // supply.n_replicates

    def _extend(
        self,
        rng: np.random.Generator,
        problem: Problem,
        proposal: Proposal,
        match: Match,
        supply: Uniforms,
        sums: Sums,
        rows: np.ndarray,
        per_replicate: int,
        frame: Frame | None,
        bad: np.ndarray,
    ) -> Frame:
        """Add `per_replicate` draws to every replicate of some rows, in chunks."""
        some, these = take_rows(problem, rows), take_proposal(proposal, rows)
        size = 1 << max(0, (_CHUNK // len(rows)).bit_length() - 1)
        for replicate in range(supply.n_replicates):
            for start in range(0, per_replicate, size):
                width = min(size, per_replicate - start)
                drawn = _look(rng, some, these, supply.take(replicate, width, rows), match)
                frame = frame or frame_of(some, drawn.u, drawn.v, drawn.log_weights)
                bad[rows] |= drawn.bad
                add(
                    sums,
                    rows,
                    replicate,
                    drawn.log_weights,
                    statistics_of(some, frame, rows, drawn.u, drawn.v, drawn.edge),
                )
        assert frame is not None
        return frame


def _look(rng: np.random.Generator, problem: Problem, proposal: Proposal, uniforms: np.ndarray, match: Match) -> Draws:
    """Draw, call, weigh: eq. (2)'s weights, the product of all messages over the proposal."""
    u = draw(problem, proposal, uniforms)
    v, edge = walk(rng, problem, u)
    log_w = log_inputs(problem, u) - log_density(problem, proposal, u) + match(problem.output, v)
    wrong = np.isnan(log_w) | np.isposinf(log_w)
    return Draws(u, v, np.where(wrong, -np.inf, log_w), edge, np.asarray(wrong.any(axis=1)))


def _log_output(output: Port, v: np.ndarray) -> np.ndarray:
    return output.axis.log_message(output.message, v)


def _refuse_observed(problem: Problem) -> None:
    if not problem.output.axis.discrete and problem.output.message.is_point.any():
        raise UnsupportedError(
            f"the output of factor {problem.sampler.name!r} is observed exactly, and no draw of a continuous value "
            "ever equals an observation: put noise between the two (a Gaussian around the output), or use oracle='abc'"
        )


def _table(port: Port) -> np.ndarray:
    p = port.axis.probabilities(port.message)
    return 0.5 * p + 0.5 / p.shape[1]


def _fixed(proposal: Family | Mapping[str, Family], port: Port, n: int) -> Family:
    message = proposal if isinstance(proposal, Family) else proposal.get(port.name, port.message)
    if type(message) is not type(port.message):
        wanted, given = type(port.message).__name__, type(message).__name__
        raise ModelError(f"the proposal for port {port.name!r} must be a {wanted}, not a {given}")
    message = message.broadcast_to((n,))
    if not message.proper.all():
        raise ModelError(f"the proposal for port {port.name!r} must be proper")
    return message


def _largest(log_weights: np.ndarray, n_tail: int) -> np.ndarray:
    return np.partition(log_weights, log_weights.shape[1] - n_tail - 1, axis=1)[:, -n_tail - 1 :]


def _stack(proposals: list[Proposal]) -> Proposal:
    """Proposals of one row each as one of many rows."""
    first = proposals[0]
    products = tuple(
        tuple(concatenate([p.products[c][j] for p in proposals]) for j in range(len(first.products[c])))
        for c in range(len(first.products))
    )
    return Proposal(
        np.concatenate([p.weights for p in proposals]),
        products,
        np.concatenate([p.means for p in proposals]),
        np.concatenate([p.roots for p in proposals]),
        np.concatenate([p.inverses for p in proposals]),
        tuple(np.concatenate([p.tables[j] for p in proposals]) for j in range(len(first.tables))),
    )
