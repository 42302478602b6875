"""Quadrature as an oracle: the exact reference for deterministic factors of one or two random inputs.

The inputs' axes are cut into cells; each is integrated by a product of Gauss-Legendre rules and halved along every axis
until its parts agree with the whole. A cell is dropped only if nothing in it could matter: the bound takes the best
value that the output's message can have over the range of outputs seen in the cell, so that a narrow message between
two nodes is not missed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from heliograph.errors import UnsupportedError
from heliograph.oracles.answer import Answer, gather
from heliograph.oracles.answering import split_problems
from heliograph.oracles.frames import frame_of_points
from heliograph.oracles.problem import Problem, refuse_observed, stand_in, take_rows
from heliograph.oracles.quadrature.cells import Cells, Map, join
from heliograph.oracles.quadrature.refinement import Limits, closer, open_window, refine
from heliograph.oracles.quadrature.totals import Totals, integrate, settle
from heliograph.oracles.sampler import Sampler

__all__ = ["QuadratureOracle"]


@dataclass(frozen=True)
class QuadratureOracle:
    """Adaptive quadrature to relative accuracy `tolerance`, with at most `max_cells` cells per row.

    Standard errors are the difference between the two finest resolutions. A row fails if its integrand does not
    fall off inside the largest window tried (an improper belief), or if the function is not resolved at all.
    """

    tolerance: float = 1e-10
    max_cells: int = 20_000
    max_levels: int = 40

    def ask(self, rng: np.random.Generator, sampler: Sampler, incoming: Mapping[str, Any]) -> Answer:
        """The beliefs of every direction, one row for each incoming tuple."""
        if sampler.stochastic:
            raise UnsupportedError(
                f"factor {sampler.name!r} is stochastic (it takes an rng), and quadrature needs a function of its "
                "inputs alone: use oracle='importance'"
            )
        parts, problems = split_problems(rng, sampler, incoming)
        for rows, problem in problems:
            refuse_observed(problem)
            d = sum(p.axis.n_coordinates for p in problem.continuous)
            if d > 2:
                raise UnsupportedError(
                    f"factor {sampler.name!r} has {d} unknown real numbers, and quadrature is for one or two: "
                    "use oracle='importance'"
                )
            block = 256 if d < 2 else 4  # so that the nodes of a block fit in memory
            for start in range(0, problem.n, block):
                here = np.arange(start, min(start + block, problem.n))
                parts.append((rows[here], self._ask_block(rng, take_rows(problem, here))))
        return gather(parts)

    def _ask_block(self, rng: np.random.Generator, problem: Problem) -> Answer:
        mean, covariance = stand_in(problem, 10.0)
        choices = np.array(list(product(*(range(p.axis.n_values) for p in problem.discrete))))
        # a first, rough pass finds where the belief lies, so that the cells of the second lie along it
        rough = Limits(1e-6 if mean.shape[1] < 2 else 1e-3, 500, self.max_levels)
        map_ = Map(mean, np.linalg.cholesky(covariance), choices)
        cells, closed, spent = open_window(rng, problem, map_)
        seen: list[Cells] = []
        spent += refine(rng, problem, map_, cells, lambda whole, parts: seen.append(parts), None, rough)
        found = join(seen or [cells])
        frame = frame_of_points(problem, found.row, found.u, found.v, found.log_w)
        map_ = closer(problem, found, map_, closed)
        cells, closed, n_more = open_window(rng, problem, map_, frame)
        totals: list[Totals] = []
        fine = Limits(self.tolerance, self.max_cells, self.max_levels)
        spent += n_more + refine(
            rng, problem, map_, cells, lambda whole, parts: totals.append(integrate(whole, parts)), frame, fine
        )
        return settle(rng, problem, frame, totals, closed, spent)
