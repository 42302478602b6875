"""Self-normalised importance sampling in the log domain, eq. (2): one run answers every direction of a whole plate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from heliograph.families import Family
from heliograph.oracles.answer import Answer, gather, replace_rows, take_answer
from heliograph.oracles.answering import split_problems
from heliograph.oracles.importance.adapting import adapt, first_proposal
from heliograph.oracles.importance.judging import Limits
from heliograph.oracles.importance.lost_modes import can_look_for_modes, with_lost_modes
from heliograph.oracles.importance.plain import serves
from heliograph.oracles.importance.pool import Pool
from heliograph.oracles.importance.proposal import Proposal, take_proposal
from heliograph.oracles.importance.running import CHUNK, Question, RunSettings, reweigh, run, run_plain, take_question
from heliograph.oracles.importance.scanning import can_scan, scan
from heliograph.oracles.importance.weighing import Match, log_output
from heliograph.oracles.problem import refuse_observed, take_rows
from heliograph.oracles.sampler import Sampler

__all__ = ["ImportanceOracle"]


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
    budget: int | None = None  # draws per message, pilots apart; None is 16 times n_samples
    n_pilot: int = 1024
    max_rounds: int = 24
    k_threshold: float = 0.7
    min_ess: float = 50.0
    n_replicates: int = 16  # of Sobol draws: their spread is the standard error
    pool: Pool | None = None

    def ask(
        self, rng: np.random.Generator, sampler: Sampler, incoming: Mapping[str, Any], match: Match = log_output
    ) -> Answer:
        """The beliefs of every direction, one row for each incoming tuple; `match` compares the output with its message."""
        key = int(rng.integers(2**63))
        parts, problems = split_problems(rng, sampler, incoming)
        for rows, problem in problems:
            if match is log_output:
                refuse_observed(problem)
            known = np.ones(problem.n, dtype=bool)
            for port in problem.continuous:
                known &= port.message.proper
            for side in (known, ~known):
                some = np.flatnonzero(side)
                block = max(1, CHUNK // self.n_pilot)
                for start in range(0, len(some), block):
                    here = some[start : start + block]
                    question = Question(rng, key, take_rows(problem, here), match)
                    answer = self._ask_anew(question) if self.pool is None else self._ask_pool(question, self.pool)
                    parts.append((rows[here], answer))
        return gather(parts)

    @property
    def _settings(self) -> RunSettings:
        budget = 16 * self.n_samples if self.budget is None else self.budget
        limits = Limits(self.min_ess, self.k_threshold)
        bounded = isinstance(self.proposal, str)
        return RunSettings(
            self.n_samples, self.draws, self.n_replicates, self.precision, budget, bounded, self.pool, limits
        )

    @property
    def _plain(self) -> bool:
        """Whether draws are to be plain ones from a given proposal, all alike and none kept."""
        fixed = not isinstance(self.proposal, str) and self.draws == "random"
        return fixed and not self.adapt and self.precision is None and self.pool is None

    def _ask_pool(self, question: Question, pool: Pool) -> Answer:
        """From draws kept earlier where these are enough, else from new ones."""
        problem, limits = question.problem, self._settings.limits
        parts = []
        left = np.arange(problem.n)
        for batch in pool.candidates(problem):
            rows = left[batch.fits(take_rows(problem, left))]
            if not len(rows):
                continue
            answer = reweigh(take_rows(problem, rows), batch.draws, batch.n_replicates, question.match, limits)
            good = ~answer.failed & (answer.ess >= pool.min_ess)
            if self.precision is not None:
                good &= answer.label_noise <= self.precision
            if good.any():
                parts.append((rows[good], take_answer(answer, np.flatnonzero(good))))
                left = np.setdiff1d(left, rows[good])
        if len(left):
            parts.append((left, self._ask_anew(take_question(question, left))))
        return gather(parts, problem.n)

    def _ask_anew(self, question: Question) -> Answer:
        """Choose a way to find a proposal, and run."""
        problem, settings = question.problem, self._settings
        base = first_proposal(self.proposal, problem)
        usual = question.match is log_output
        if self._plain and usual and serves(problem):
            return run_plain(question, base, settings)
        size = min(self.n_pilot, self.n_samples)
        affordable = (settings.budget - self.n_samples) // size  # pilots before the run itself
        if not (self.adapt and problem.inputs) or affordable < 2:
            return run(question, base, settings)
        if usual and can_scan(problem):
            return self._ask_by_scan(question, base, size, affordable)
        return self._ask_by_pilots(question, base, size, affordable)

    def _ask_by_scan(self, question: Question, base: Proposal, size: int, affordable: int) -> Answer:
        """Look along the only axis, and run with pieces where these are better; pilots where nothing was seen."""
        found = scan(question.rng, question.problem, base)
        parts = _run_parts(
            question,
            self._settings,
            [(~found.better & found.found, base), (found.better, found.proposal)],
        )
        lost = np.flatnonzero(~found.found)
        if len(lost):
            some = take_question(question, lost), take_proposal(base, lost)
            parts.append((lost, self._ask_by_pilots(*some, size, affordable)))
        answer = gather(parts, question.problem.n)
        return answer._replace(n_evaluations=answer.n_evaluations + found.spent)

    def _ask_by_pilots(self, question: Question, base: Proposal, size: int, affordable: int) -> Answer:
        """Re-fit the proposal to what pilots of `size` draws see, as often as that is affordable, and run."""
        settings = self._settings
        rounds = min(self.max_rounds, affordable - 1)
        proposal, adapted, spent = self._refit(question, base, base, size, rounds, 1)
        sides = [(~adapted, base), (adapted, proposal)]
        if question.match is log_output and can_look_for_modes(question.problem):
            sides, n_more = _with_modes(question, sides)
            spent += n_more
        answer = gather(_run_parts(question, settings, sides), question.problem.n)
        # the most expensive retry is six rounds of sixteen pilots
        again = np.flatnonzero(answer.failed if settings.budget >= 100 * size + 3 * self.n_samples else [])
        step = max(1, CHUNK // (16 * size))
        for at in range(0, len(again), step):
            rows = again[at : at + step]
            # the unadapted rows of a mixed block start from the base, which is part of every fitted proposal
            start = take_proposal(proposal if adapted[rows].all() else base, rows)
            better, n_more = self._retry(take_question(question, rows), take_proposal(base, rows), start, size)
            spent += n_more
            answer = replace_rows(answer, rows, better)
        return answer._replace(n_evaluations=answer.n_evaluations + spent)

    def _retry(self, question: Question, base: Proposal, start: Proposal, size: int) -> tuple[Answer, int]:
        """Look again, harder: a pilot may have lost a mode that the run then stumbled on."""
        n, spent = question.problem.n, 0
        proposal, answer = start, None
        left = np.arange(n)
        for more in (4, 16):
            some, own, first = take_question(question, left), take_proposal(base, left), take_proposal(proposal, left)
            fitted, better, n_more = self._refit(some, own, first, more * size, 6, more)
            spent += n_more
            parts = _run_parts(some, self._settings, [(~better, first), (better, fitted)], more + 1)
            found = gather(parts, len(left))
            answer = found if answer is None else replace_rows(answer, left, found)
            if len(left) < n or not found.failed.any():
                break
            proposal, left = fitted, np.flatnonzero(found.failed)
        assert answer is not None
        return answer, spent

    def _refit(
        self, question: Question, base: Proposal, start: Proposal, size: int, max_rounds: int, purpose: int
    ) -> tuple[Proposal, np.ndarray, int]:
        rng, key, problem, match = question
        return adapt(rng, problem, base, start, match, size, max_rounds, self.k_threshold, key, purpose)


Side = tuple[np.ndarray, Proposal]  # rows (n,) bool, and proposals of all rows that are used for these


def _run_parts(
    question: Question, settings: RunSettings, sides: list[Side], purpose: int = 0
) -> list[tuple[np.ndarray, Answer]]:
    """A run for the rows of each side, with its proposal."""
    parts = []
    for mine, proposal in sides:
        rows = np.flatnonzero(mine)
        if len(rows):
            own = take_question(question, rows), take_proposal(proposal, rows)
            parts.append((rows, run(*own, settings, purpose)))
    return parts


def _with_modes(question: Question, sides: list[Side]) -> tuple[list[Side], int]:
    """The sides, each cut in two: rows whose proposals leave something out have it put in; and the calls spent."""
    found: list[Side] = []
    spent = 0
    for mine, proposal in sides:
        rows = np.flatnonzero(mine)
        if not len(rows):
            continue
        first = take_proposal(proposal, rows)
        more, lost, n_more = with_lost_modes(question.rng, take_rows(question.problem, rows), first)
        spent += n_more
        place = np.zeros(len(mine), dtype=int)
        place[rows] = np.arange(len(rows))
        for which, own in ((~lost, first), (lost, more)):
            some = np.zeros(len(mine), dtype=bool)
            some[rows[which]] = True
            found.append((some, take_proposal(own, place)))
    return found, spent
