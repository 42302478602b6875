"""Self-normalised importance sampling in the log domain, eq. (2): one run answers every direction of a whole plate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from heliograph.families import Family
from heliograph.oracles.answer import Answer, gather, replace_rows, take_answer
from heliograph.oracles.answering import answer_of
from heliograph.oracles.certain import answer_if_certain
from heliograph.oracles.frames import Frame, blocks_of, frame_of, join_frames, statistics_of
from heliograph.oracles.importance.adapting import adapt, first_proposal
from heliograph.oracles.importance.diagnostics import pareto_k, tail_length
from heliograph.oracles.importance.lost_modes import can_look_for_modes, with_lost_modes
from heliograph.oracles.importance.plain import add_row, serves
from heliograph.oracles.importance.pool import Pool
from heliograph.oracles.importance.proposal import Proposal, n_uniforms, take_proposal
from heliograph.oracles.importance.scanning import can_scan, scan
from heliograph.oracles.importance.sums import Sums, add, empty_sums, estimate
from heliograph.oracles.importance.uniforms import Streams, Uniforms, uniforms_for
from heliograph.oracles.importance.weighing import Draws, Match, log_output, look, refuse_unlooked, weigh
from heliograph.oracles.problem import Problem, groups_of, refuse_observed, take_rows
from heliograph.oracles.sampler import Sampler

__all__ = ["ImportanceOracle"]

_NEAR = 20.0  # times below the largest possible weight: no more is to come
_SEEN = 5.0  # times below it: no outcome of that weight is unseen
_UNSEEN = 0.5  # of one draw of the largest weight there can be
_FEW = 5.0  # draws: a squared error that so few make up is raised twofold
_ENDLESS, _STRETCH = (
    1.5,
    100.0,
)  # Pareto k of a statistic from which few draws say nothing of its error, and the rise of that
_CHUNK = 2**17  # calls of the user's function at a time: some 50 MB of temporaries


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
    budget: int | None = None  # draws a message, pilots apart; None is 16 times n_samples
    n_pilot: int = 1024
    max_rounds: int = 24
    k_threshold: float = 0.7
    min_ess: float = 50.0
    n_replicates: int = 16  # of Sobol draws: their spread is the standard error
    pool: Pool | None = None

    def ask(self, rng: np.random.Generator, sampler: Sampler, incoming: Mapping[str, Any]) -> Answer:
        """The beliefs of every direction, one row for each incoming tuple."""
        return self.ask_matching(rng, sampler, incoming, log_output)

    def ask_matching(
        self, rng: np.random.Generator, sampler: Sampler, incoming: Mapping[str, Any], match: Match
    ) -> Answer:
        """The same with another way to compare the output with its message."""
        parts = []
        n = 0
        key = int(rng.integers(2**63))
        for rows, problem in groups_of(sampler, incoming):
            n += len(rows)
            if not problem.inputs and not sampler.stochastic:
                parts.append((rows, answer_if_certain(rng, problem)))
                continue
            if match is log_output:
                refuse_observed(problem)
            known = np.ones(problem.n, dtype=bool)
            for port in problem.continuous:
                known &= port.message.proper
            for side in (known, ~known):
                some = np.flatnonzero(side)
                block = max(1, _CHUNK // self.n_pilot)
                for start in range(0, len(some), block):
                    here = some[start : start + block]
                    parts.append((rows[here], self._ask_block(rng, key, take_rows(problem, here), match)))
        return gather(parts, n)

    @property
    def _budget(self) -> int:
        return 16 * self.n_samples if self.budget is None else self.budget

    def _ask_block(self, rng: np.random.Generator, key: int, problem: Problem, match: Match) -> Answer:
        if self.pool is None:
            return self._ask_anew(rng, key, problem, match)
        parts = []
        left = np.arange(problem.n)
        for batch in self.pool.candidates(problem):
            rows = left[batch.fits(take_rows(problem, left))]
            if not len(rows):
                continue
            answer = self._reweigh(take_rows(problem, rows), batch.draws, batch.n_replicates, match)
            good = ~answer.failed & (answer.ess >= self.pool.min_ess)
            if self.precision is not None:
                good &= answer.label_noise <= self.precision
            if good.any():
                parts.append((rows[good], take_answer(answer, np.flatnonzero(good))))
                left = np.setdiff1d(left, rows[good])
        if len(left):
            parts.append((left, self._ask_anew(rng, key, take_rows(problem, left), match)))
        return gather(parts, problem.n)

    def _reweigh(self, problem: Problem, kept: Draws, n_replicates: int, match: Match) -> Answer:
        """An answer from draws (1, s, .) that some earlier message paid for."""
        n, s = problem.n, kept.log_q.shape[1]
        sums = empty_sums(n, blocks_of(problem), n_replicates, tail_length(s))
        frames, bad = [], np.zeros(n, dtype=bool)
        step = max(1, _CHUNK // s)
        for start in range(0, n, step):
            rows = np.arange(start, min(start + step, n))
            some = take_rows(problem, rows)
            shared = (kept.u, kept.v, kept.log_q, kept.edge)
            u, v, log_q, edge = (np.broadcast_to(a, (len(rows), *a.shape[1:])) for a in shared)
            drawn = weigh(some, u, v, log_q, edge, match)
            frame = frame_of(some, u, v, drawn.log_weights)
            frames.append(frame)
            t = statistics_of(some, frame, slice(None), u, v, edge)
            bad[rows] = drawn.bad
            width = s // n_replicates
            for r in range(n_replicates):
                own = slice(r * width, (r + 1) * width)
                add(sums, rows, r, drawn.log_weights[:, own], t[:, own])
        return self._judge(problem, join_frames(frames), sums, bad, 0)

    def _ask_anew(self, rng: np.random.Generator, key: int, problem: Problem, match: Match) -> Answer:
        base = first_proposal(self.proposal, problem)
        if self._plain and match is log_output and serves(problem):
            return self._run_plain(key, problem, base)
        if not (self.adapt and problem.inputs):
            return self._run(rng, key, problem, base, match)
        size = min(self.n_pilot, self.n_samples)
        affordable = (self._budget - self.n_samples) // size  # pilots before the run itself
        if affordable < 2:
            return self._run(rng, key, problem, base, match)
        if match is log_output and can_scan(problem):
            found = scan(rng, problem, base)
            parts, lost = [], np.flatnonzero(~found.found)
            for rows, own in (
                (np.flatnonzero(~found.better & found.found), base),
                (np.flatnonzero(found.better), found.proposal),
            ):
                if len(rows):
                    parts.append((rows, self._run(rng, key, take_rows(problem, rows), take_proposal(own, rows), match)))
            if len(lost):
                some = take_rows(problem, lost), take_proposal(base, lost)
                parts.append((lost, self._ask_by_pilots(rng, key, *some, match, size, affordable)))
            answer = gather(parts, problem.n)
            return answer._replace(n_evaluations=answer.n_evaluations + found.spent)
        return self._ask_by_pilots(rng, key, problem, base, match, size, affordable)

    def _ask_by_pilots(
        self,
        rng: np.random.Generator,
        key: int,
        problem: Problem,
        base: Proposal,
        match: Match,
        size: int,
        affordable: int,
    ) -> Answer:
        """Re-fit the proposal to what pilots of `size` draws see, as often as that is affordable, and run."""
        rounds = min(self.max_rounds, affordable - 1)
        proposal, adapted, spent = self._refit(rng, key, problem, base, base, match, size, rounds, 1)
        if match is log_output and can_look_for_modes(problem):
            answer, n_more = self._run_with_modes(rng, key, problem, base, proposal, adapted)
            spent += n_more
        else:
            answer = self._run_either(rng, key, problem, base, proposal, adapted, match, 0)
        # the dearest retry is six rounds of sixteen pilots
        again = np.flatnonzero(answer.failed if self._budget >= 100 * size + 3 * self.n_samples else [])
        step = max(1, _CHUNK // (16 * size))
        for at in range(0, len(again), step):
            rows = again[at : at + step]
            # the unadapted rows of a mixed block start from the base, which is part of every fitted proposal
            start = take_proposal(proposal if adapted[rows].all() else base, rows)
            better, n_more = self._retry(
                rng, key, take_rows(problem, rows), take_proposal(base, rows), start, match, size
            )
            spent += n_more
            answer = replace_rows(answer, rows, better)
        return answer._replace(n_evaluations=answer.n_evaluations + spent)

    def _retry(
        self,
        rng: np.random.Generator,
        key: int,
        problem: Problem,
        base: Proposal,
        start: Proposal,
        match: Match,
        size: int,
    ) -> tuple[Answer, int]:
        """Look again, harder: a pilot may have lost a mode that the run then stumbled on."""
        spent = 0
        proposal, answer = start, None
        left = np.arange(problem.n)
        for more in (4, 16):
            some, own, first = take_rows(problem, left), take_proposal(base, left), take_proposal(proposal, left)
            fitted, better, n_more = self._refit(rng, key, some, own, first, match, more * size, 6, more)
            spent += n_more
            found = self._run_either(rng, key, some, first, fitted, better, match, more + 1)
            answer = found if answer is None else replace_rows(answer, left, found)
            if len(left) < problem.n or not found.failed.any():
                break
            proposal, left = fitted, np.flatnonzero(found.failed)
        assert answer is not None
        return answer, spent

    def _run_either(
        self,
        rng: np.random.Generator,
        key: int,
        problem: Problem,
        first: Proposal,
        fitted: Proposal,
        adapted: np.ndarray,
        match: Match,
        purpose: int,
    ) -> Answer:
        """With the fitted proposal where that was found to be the better one."""
        parts = []
        for rows, own in ((np.flatnonzero(~adapted), first), (np.flatnonzero(adapted), fitted)):
            if len(rows):
                parts.append(
                    (rows, self._run(rng, key, take_rows(problem, rows), take_proposal(own, rows), match, purpose))
                )
        return gather(parts, problem.n)

    def _run_with_modes(
        self,
        rng: np.random.Generator,
        key: int,
        problem: Problem,
        base: Proposal,
        fitted: Proposal,
        adapted: np.ndarray,
    ) -> tuple[Answer, int]:
        """The same, with draws also where the proposals left something out."""
        parts, spent = [], 0
        for rows, own in ((np.flatnonzero(~adapted), base), (np.flatnonzero(adapted), fitted)):
            if not len(rows):
                continue
            first = take_proposal(own, rows)
            more, lost, n_more = with_lost_modes(rng, take_rows(problem, rows), first)
            spent += n_more
            for some, proposal in ((np.flatnonzero(~lost), first), (np.flatnonzero(lost), more)):
                if len(some):
                    ours = take_rows(problem, rows[some]), take_proposal(proposal, some)
                    parts.append((rows[some], self._run(rng, key, *ours, log_output)))
        return gather(parts, problem.n), spent

    def _refit(
        self,
        rng: np.random.Generator,
        key: int,
        problem: Problem,
        base: Proposal,
        start: Proposal,
        match: Match,
        size: int,
        max_rounds: int,
        purpose: int,
    ) -> tuple[Proposal, np.ndarray, int]:
        return adapt(rng, problem, base, start, match, size, max_rounds, self.k_threshold, key, purpose)

    def _run(
        self,
        rng: np.random.Generator,
        key: int,
        problem: Problem,
        proposal: Proposal,
        match: Match,
        purpose: int = 0,
    ) -> Answer:
        streams = Streams(key, problem.identity)
        supply = uniforms_for(streams, purpose, n_uniforms(problem), self.draws, self.n_replicates)
        per_replicate = -(-self.n_samples // supply.n_replicates)
        if self.draws == "sobol":
            per_replicate = 1 << (per_replicate - 1).bit_length()
        n_first = per_replicate * supply.n_replicates
        sums = empty_sums(problem.n, blocks_of(problem), supply.n_replicates, tail_length(n_first))
        rows, frame, spent = np.arange(problem.n), None, 0
        bad = np.zeros(problem.n, dtype=bool)
        answer = None
        while True:
            frame = self._extend(rng, problem, proposal, match, supply, sums, rows, per_replicate, frame, bad)
            spent += per_replicate * supply.n_replicates * len(rows)
            answer = self._judge(problem, frame, sums, bad, spent, self._log_largest(problem, proposal, match))
            if self.precision is None:
                return answer
            wanting = ~bad & (answer.failed | (answer.label_noise > self.precision))
            rows = np.flatnonzero(wanting & (sums.count * 2 <= max(self._budget, n_first)))
            if not len(rows):
                return answer
            per_replicate = int(sums.count[rows[0]]) // supply.n_replicates

    @property
    def _plain(self) -> bool:
        """Whether draws are to be plain ones from a given proposal, all alike and none kept."""
        fixed = not isinstance(self.proposal, str) and self.draws == "random"
        return fixed and not self.adapt and self.precision is None and self.pool is None

    def _run_plain(self, key: int, problem: Problem, proposal: Proposal) -> Answer:
        n = problem.n
        # the tail of half a million draws is fitted from its last 512: as good, and fast beside the drawing
        sums = empty_sums(n, blocks_of(problem), 1, min(tail_length(self.n_samples), 512))
        frames, bad = [], np.zeros(n, dtype=bool)
        for i, rng in enumerate(Streams(key, problem.identity).generators(0)):
            one = np.array([i])
            own = take_rows(problem, one), take_proposal(proposal, one)
            frame, bad[i] = add_row(rng, *own, self.n_samples, sums, i)
            frames.append(frame)
        return self._judge(problem, join_frames(frames), sums, bad, n * self.n_samples)

    def _log_largest(self, problem: Problem, proposal: Proposal, match: Match) -> np.ndarray:
        """The largest log weight (n,) that a draw can have; infinite where none is known.

        A part of the proposal that is the cavity bounds the ratio of the two, and a message has a highest value.
        """
        if match is not log_output or isinstance(self.proposal, (Family, Mapping)) or not proposal.products:
            return np.full(problem.n, np.inf)
        # a table keeps 0.3 of one that keeps 0.5 of the message's own
        return (
            problem.output.axis.log_highest(problem.output.message)
            - np.log(proposal.weights[:, 0])
            - len(problem.discrete) * np.log(0.15)
        )

    def _judge(
        self,
        problem: Problem,
        frame: Frame,
        sums: Sums,
        bad: np.ndarray,
        spent: int,
        log_largest: np.ndarray | float = np.inf,
    ) -> Answer:
        """The sums as an answer, with the rows that cannot be trusted marked."""
        e = estimate(sums)
        k = _tail_shape(sums)
        # the fit of a tail is fooled by ties and plateaus, but not to a largest value far above the mean; and that is the mean
        # of draws that could be: a rare outcome makes every weight large beside the mean of all
        log_mean = e.log_z + np.log(sums.count / np.maximum(sums.count - sums.impossible, 1.0))
        log_top = sums.tails[:, 0].max(axis=1)
        heavy = (k > self.k_threshold) & (log_top > log_mean + np.log(20.0))
        # nor does a tail go on beyond the largest weight there can be
        failed = bad | (e.ess < self.min_ess) | (heavy & (log_top <= log_largest - np.log(_NEAR)))
        stretch = _stretch(problem, sums)
        covariances = tuple(c * stretch[:, j, None, None] for j, c in enumerate(e.covariances[:-1]))
        if problem.sampler.stochastic:
            log_share = np.minimum(log_largest - e.log_z, 50.0) - np.log(np.maximum(sums.count, 1.0))
            # where draws of nearly that weight were seen, their error is in the spread
            unseen = np.isfinite(log_largest) & (log_top < log_largest - np.log(_SEEN))
            share = np.where(unseen, _UNSEEN * np.exp(np.minimum(log_share, 0.0)), 0.0)
            covariances = _with_unseen(problem, frame, e.mean, covariances, sums.blocks, share)
        return answer_of(problem, frame, e.mean, covariances, e.log_z, e.log_z_error, e.ess, k, failed, spent)

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
        kept: list[Draws] = []
        storing = self.pool is not None and not sums.count.any()
        some, these = take_rows(problem, rows), take_proposal(proposal, rows)
        size = 1 << max(0, (_CHUNK // len(rows)).bit_length() - 1)
        for replicate in range(supply.n_replicates):
            for start in range(0, per_replicate, size):
                width = min(size, per_replicate - start)
                drawn = look(rng, some, these, supply.take(replicate, width, rows), match)
                refuse_unlooked(drawn)
                frame = frame or frame_of(some, drawn.u, drawn.v, drawn.log_weights)
                bad[rows] |= drawn.bad
                if storing:
                    kept.append(drawn)
                t = statistics_of(some, frame, rows, drawn.u, drawn.v, drawn.edge)
                add(sums, rows, replicate, drawn.log_weights, t)
        if self.pool is not None and storing:
            self.pool.keep(some, kept, supply.n_replicates)
        assert frame is not None
        return frame


def _with_unseen(
    problem: Problem,
    frame: Frame,
    mean: np.ndarray,
    covariances: tuple[np.ndarray, ...],
    blocks: tuple[slice, ...],
    share: np.ndarray,
) -> tuple[np.ndarray, ...]:
    """The covariances with what an outcome would add that is too rare to be seen, and that fits inputs like the cavity's.

    Where noise of four deviations explains an observation better than the inputs do, no choice of inputs will show it. The
    inputs of such an outcome are where their messages are, and so is the output, for its weight is the largest there can be.
    """
    found = list(covariances)
    for j, port in enumerate((*problem.inputs, problem.output)):
        rows = np.flatnonzero((share > 0) & port.message.proper & ~port.message.is_point)
        if port.axis.discrete or not len(rows):
            continue
        centre, covariance = port.axis.moments(port.message[rows])
        sd = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
        places = np.stack([centre - sd, centre + sd], axis=1)
        t = port.axis.statistics(places, frame.centres[port.name][rows], frame.scales[port.name][rows]).mean(axis=1)
        # in the unit of the frame; beyond a few of them a KL grows as a logarithm, not as a square
        moved = np.clip(share[rows, None] * (t - mean[rows, blocks[j]]), -4.0, 4.0)
        found[j] = found[j].copy()
        found[j][rows] += moved[:, :, None] * moved[:, None, :]
    return tuple(found)


def _tail_shape(sums: Sums) -> np.ndarray:
    """Pareto k (n,) of the weights.

    Draws without any weight are no part of the distribution whose tail is judged: with them, what is kept as a
    tail would be most of it.
    """
    tails = sums.tails[:, 0]
    n_kept = tails.shape[1]
    k = pareto_k(tails)
    for i in np.flatnonzero(sums.impossible):
        length = min(tail_length(max(1, int(sums.count[i] - sums.impossible[i]))) + 1, n_kept)
        k[i] = pareto_k(np.partition(tails[i : i + 1], n_kept - length, axis=1)[:, n_kept - length :])[0]
    return k


def _stretch(problem: Problem, sums: Sums) -> np.ndarray:
    """How many times the squared error of each port's statistics is raised, (n, number of ports).

    An expectation may rest on a few draws whose weights are harmless, and its spread is then known no better than by so few. If
    they come from a tail without a mean (``E exp(x)`` of N(0, 36) rests on draws six deviations out), more is to come.
    """
    tails = sums.tails[:, 1:]
    top = tails.max(axis=2, keepdims=True)
    x = np.exp(2 * (tails - np.where(np.isfinite(top), top, 0.0)))
    behind = np.maximum(
        x.sum(axis=2) ** 2 / np.maximum((x * x).sum(axis=2), 1e-300), 1.0
    )  # 1 where nothing has a weight
    stretch = np.maximum(0.9 + _FEW / behind, 1.0)  # from fifty draws on there is nothing to raise
    continuous = np.array([not p.axis.discrete for p in (*problem.inputs, problem.output)])
    few = (behind <= _FEW) & continuous
    if few.any():
        stretch[few] = np.where(pareto_k(tails[few]) > _ENDLESS, _STRETCH, stretch[few])
    return stretch
