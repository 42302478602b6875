"""One run: draws from a given proposal, added to sums chunk by chunk, and judged."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heliograph.oracles.answer import Answer
from heliograph.oracles.frames import Frame, blocks_of, frame_of, join_frames, statistics_of
from heliograph.oracles.importance.diagnostics import tail_length
from heliograph.oracles.importance.judging import Limits, judge
from heliograph.oracles.importance.plain import add_row
from heliograph.oracles.importance.pool import Pool
from heliograph.oracles.importance.proposal import Proposal, n_uniforms, take_proposal
from heliograph.oracles.importance.sums import FIRST, Sums, add, empty_sums
from heliograph.oracles.importance.uniforms import Streams, Uniforms, uniforms_for
from heliograph.oracles.importance.unseen import Reached, note, nothing_reached
from heliograph.oracles.importance.weighing import Draws, Match, log_output, look, refuse_unlooked, weigh
from heliograph.oracles.problem import Problem, take_rows

__all__ = ["CHUNK", "Question", "RunSettings", "reweigh", "run", "run_plain", "take_question"]

CHUNK = 2**17  # calls of the user's function at a time: some 50 MB of temporaries
_TOGETHER = 2**14  # draws of small replicates at a time: what a cache holds
# times as many replicates where the function draws: nets are worth little there, and the spread of 16 is too small by a factor of
# three in one run of 100
_MORE = 4


class Question(NamedTuple):
    """What is asked of a sampler: integrals, and where its random numbers come from."""

    rng: np.random.Generator  # for what the user's function draws itself
    key: int  # of all other draws of this ask
    problem: Problem
    match: Match  # how outputs are compared with their message


class RunSettings(NamedTuple):
    """How much a run draws, and when it is enough."""

    n_samples: int
    draws: str  # "sobol" or "random"
    n_replicates: int
    precision: float | None
    budget: int  # draws per message
    bounded: bool  # the first part of a proposal is the cavity, which bounds the weights
    pool: Pool | None
    limits: Limits


def take_question(question: Question, rows: np.ndarray) -> Question:
    """The same for some of the rows."""
    return question._replace(problem=take_rows(question.problem, rows))


def run(question: Question, proposal: Proposal, settings: RunSettings, purpose: int = 0) -> Answer:
    """Draw from a proposal until it is enough, and judge.

    Runs of another `purpose` have other draws.
    """
    problem = question.problem
    streams = Streams(question.key, problem.identity)
    n_replicates = settings.n_replicates * (_MORE if problem.sampler.stochastic else 1)
    supply = uniforms_for(streams, purpose, n_uniforms(problem), settings.draws, n_replicates)
    per_replicate = -(-settings.n_samples // supply.n_replicates)
    if settings.draws == "sobol":
        per_replicate = 1 << (per_replicate - 1).bit_length()
    n_first = per_replicate * supply.n_replicates
    sums = empty_sums(problem.n, blocks_of(problem), supply.n_replicates, tail_length(n_first))
    reached = nothing_reached(problem, sums.blocks) if question.match is log_output else None
    rows, frame, spent = np.arange(problem.n), None, 0
    bad = np.zeros(problem.n, dtype=bool)
    log_largest = _log_largest(question, proposal, settings.bounded)
    while True:
        frame = _extend(question, proposal, settings.pool, supply, sums, reached, rows, per_replicate, frame, bad)
        spent += per_replicate * supply.n_replicates * len(rows)
        answer = judge(problem, frame, sums, bad, spent, log_largest, settings.limits, reached)
        if settings.precision is None:
            return answer
        wanting = ~bad & (answer.failed | (answer.label_noise > settings.precision))
        rows = np.flatnonzero(wanting & (sums.count * 2 <= max(settings.budget, n_first)))
        if not len(rows):
            return answer
        per_replicate = int(sums.count[rows[0]]) // supply.n_replicates


def _extend(
    question: Question,
    proposal: Proposal,
    pool: Pool | None,
    supply: Uniforms,
    sums: Sums,
    reached: Reached | None,
    rows: np.ndarray,
    per_replicate: int,
    frame: Frame | None,
    bad: np.ndarray,
) -> Frame:
    """Add `per_replicate` draws to every replicate of some rows, in chunks."""
    kept: list[Draws] = []
    storing = pool is not None and not sums.count.any()
    some, these = take_rows(question.problem, rows), take_proposal(proposal, rows)
    size = 1 << max(0, (CHUNK // len(rows)).bit_length() - 1)
    at_once = min(max(1, max(FIRST, _TOGETHER // len(rows)) // per_replicate), supply.n_replicates)
    for first in range(0, supply.n_replicates, at_once):
        own = range(first, min(first + at_once, supply.n_replicates))
        for start in range(0, per_replicate, size):
            width = min(size, per_replicate - start)
            uniforms = np.concatenate([supply.take(r, width, rows) for r in own], axis=1)
            drawn = look(question.rng, some, these, uniforms, question.match)
            refuse_unlooked(drawn)
            frame = frame or _first_frame(some, drawn)
            bad[rows] |= drawn.bad
            if storing:
                kept.append(drawn)
            t = statistics_of(some, frame, rows, drawn.u, drawn.v, drawn.edge)
            add(sums, rows, first, drawn.log_weights, t, len(own))
            if reached is not None:
                note(reached, some, rows, drawn, t, sums.unit, sums.blocks, supply.n_replicates * per_replicate)
    if pool is not None and storing:
        pool.keep(some, kept, supply.n_replicates)
    assert frame is not None
    return frame


def _first_frame(problem: Problem, drawn: Draws) -> Frame:
    """The frame from as many draws whatever the number of rows, for it must not depend on their company."""
    return frame_of(problem, drawn.u[:, :FIRST], drawn.v[:, :FIRST], drawn.log_weights[:, :FIRST])


def _log_largest(question: Question, proposal: Proposal, bounded: bool) -> np.ndarray:
    """The largest log weight (n,) that a draw can have; infinite where none is known.

    A part of the proposal that is the cavity bounds the ratio of the two, and a message has a highest value.
    """
    problem = question.problem
    if question.match is not log_output or not bounded or not proposal.products:
        return np.full(problem.n, np.inf)
    # a table keeps 0.3 of one that keeps 0.5 of the message's own
    return (
        problem.output.axis.log_highest(problem.output.message)
        - np.log(proposal.weights[:, 0])
        - len(problem.discrete) * np.log(0.15)
    )


def run_plain(question: Question, proposal: Proposal, settings: RunSettings) -> Answer:
    """The same with plain draws from a fixed proposal, row by row and fast."""
    problem = question.problem
    n = problem.n
    # the tail of half a million draws is fitted from its last 512: as good, and fast beside the drawing
    sums = empty_sums(n, blocks_of(problem), 1, min(tail_length(settings.n_samples), 512))
    frames, bad = [], np.zeros(n, dtype=bool)
    for i, rng in enumerate(Streams(question.key, problem.identity).generators(0)):
        one = np.array([i])
        own = take_rows(problem, one), take_proposal(proposal, one)
        frame, bad[i] = add_row(rng, *own, settings.n_samples, sums, i)
        frames.append(frame)
    return judge(problem, join_frames(frames), sums, bad, n * settings.n_samples, np.inf, settings.limits)


def reweigh(problem: Problem, kept: Draws, n_replicates: int, match: Match, limits: Limits) -> Answer:
    """An answer from draws (1, s, .) that some earlier message paid for."""
    n, s = problem.n, kept.log_q.shape[1]
    sums = empty_sums(n, blocks_of(problem), n_replicates, tail_length(s))
    frames, bad = [], np.zeros(n, dtype=bool)
    step = max(1, CHUNK // s)
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
    return judge(problem, join_frames(frames), sums, bad, 0, np.inf, limits)
