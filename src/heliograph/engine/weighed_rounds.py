"""Draws of the unknowns of a small model, weighed by the model itself, in rounds that follow the draws that weigh most.

The first round draws from the belief, and from what may see what the belief does not: wider, reflected at 0 where signs may not
matter, and from what is known without the factors that are not Gaussian. Where few of these draws count, kernels are put around
those that do, and so on for a few rounds, as in population Monte Carlo (Cappe et al. 2004).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from heliograph.engine.blocks.records import known_log_density_at
from heliograph.engine.compiled import CompiledModel
from heliograph.engine.tables import Tables
from heliograph.engine.weighed_draws import Drawn
from heliograph.engine.weighed_elsewhere import mirrored, swapped
from heliograph.engine.weighed_plates import makes_values, said_of
from heliograph.engine.weighed_proposals import Kernels, Mixture, Portion
from heliograph.factors import Prior
from heliograph.families import Family
from heliograph.graph.records import Node, Plate
from heliograph.numerics.special import logsumexp

__all__ = ["Weighed", "weigh"]

_SEED = 0  # of the draws, which are the check's own: the same run says the same
_DRAWS = 1000  # of each portion
_EVALUATIONS = 100_000  # of factors, at most
_FIRST, _MANY_ROWS = 100, 20  # draws of each portion that go first, where there are so many rows of factors
_MOST = 0.25  # of the first few draws: with an effective number above this they may be all that is needed
_WIDER = 3.0  # over the root of the number of unknowns: what is added to a variance of 1 in as many draws as are of the belief
_ROUNDS = 5  # of draws around those that weigh most, while few of them count
_FURTHER = 2  # of these at most, while many count and do not decide
_MORE = 3  # times as many draws in such a round
_DEFENCE = 8  # one in so many of these is drawn as the first were
_ENOUGH = 0.15  # of the draws: with an effective number above this there is no need of another round
_FEWEST = 60  # draws that kernels are put around
_LEAST_POWER = 1e-3
_SIGMAS = 3.0  # standard errors: a round that found less of the mass than another by more than these has missed some
_NOTHING = 1e-20  # of a squared mean: a variance below this is none
_SHARE = 1e-3  # of the belief's precision that is left where nothing else is known: 30 of its deviations


class Weighed(NamedTuple):
    """Draws, and the logarithms of their weights under the belief and under the model."""

    drawn: Drawn
    log_own: np.ndarray
    log_model: np.ndarray
    complete: bool  # whether the weights hold the whole model, so that their mean is its evidence
    belief: Portion  # what the run believes

    @property
    def effective(self) -> float:
        """The number of draws that count."""
        return _effective(self.log_model)

    @property
    def log_evidence(self) -> float:
        """The logarithm of the mean weight."""
        return float(logsumexp(self.log_model) - np.log(len(self.log_model)))

    def known_moments(self, node: int) -> np.ndarray:
        """The belief's mean and sd (2, m) of entries that were drawn given others; NaN of those whose draws are the belief's."""
        found = self.drawn.redrawn(node)
        if found is None:
            return np.full((2, 1), np.nan)
        block, a, constant = found
        mean, root = self.belief.blocks[block]
        return np.array([a @ mean + constant, np.sqrt(np.sum((a @ root) ** 2, axis=1))])

    def tempered(self) -> np.ndarray:
        """Weights, evened out until some draws count."""
        log_weight = np.where(np.isfinite(self.log_model), self.log_model, -np.inf)
        power = 1.0
        while power > _LEAST_POWER and _effective(power * log_weight) < _FEWEST:
            power *= 0.7
        weight = np.exp(power * log_weight - logsumexp(power * log_weight))
        return weight / weight.sum()


def _effective(log_weight: np.ndarray) -> float:
    """``(sum w)^2 / sum w^2``."""
    return float(np.exp(2.0 * logsumexp(log_weight) - logsumexp(2.0 * log_weight)))


class _Look(NamedTuple):
    """What every round of draws needs."""

    compiled: CompiledModel
    tables: Tables
    plates: list[Plate]
    boxes: bool  # whether black boxes may be evaluated
    beliefs: dict[int, Family]  # of the nodes in no block
    fixed: list[np.ndarray]  # of every block, the scalars that have no variance
    first: list[Portion]  # the belief, and what is drawn beside it

    @property
    def n_rows(self) -> int:
        """Rows of factors."""
        return max(sum(p.size for p in self.plates), 1)

    @property
    def n_most(self) -> int:
        """Draws of one round, at most."""
        return _EVALUATIONS // self.n_rows

    def weigh(self, rng: np.random.Generator, mixture: Mixture) -> Weighed | None:
        """Draw, and weigh; None where a plate cannot say what it says of draws."""
        compiled, blocks = self.compiled, [b.factor.block for b in self.compiled.blocks]
        drawn = mixture.draw(rng, compiled.graph, blocks, self.beliefs)
        log_model, complete = np.zeros(drawn.n), True
        first = [p for p in self.plates if makes_values(compiled.graph, p, self.boxes)]
        rest = [p for p in self.plates if not any(p is q for q in first)]
        for plate in (*first, None, *rest):
            if plate is None:  # what was computed is known: values that were not seen are drawn given that
                drawn.redraw_ends(rng, self.plates)
                continue
            said = said_of(plate, self.tables, drawn, self.boxes)
            if said is None:
                return None
            log_model += said.log_density
            complete = complete and said.complete
        blocks_fixed = zip(drawn.blocks, self.fixed, strict=True)
        if any(block.free[fixed].any() for block, fixed in blocks_fixed):
            return None  # something is known exactly that is not computed
        for block in drawn.blocks:
            log_model += known_log_density_at(block.block.known, block.base) + block.block.log_constant
        mixed = mixture.log_density(drawn)
        log_model = np.where(np.isnan(log_model), -np.inf, log_model) - drawn.log_redrawn - mixed
        return Weighed(drawn, self.first[0].log_density(drawn) - mixed, log_model, complete, self.first[0])


def weigh(
    compiled: CompiledModel,
    tables: Tables,
    others: list[Node],
    plates: list[Plate],
    decided: Callable[[Weighed], bool],
    boxes: bool,
) -> Weighed | None:
    """Draws of the belief and beside it; then, while few of them count or do not decide, of kernels around those that do.

    Where rows are many a few draws go first: of a belief that is nearly the posterior they are all that is needed, since the
    same draws tell the moments of both.
    """
    joints = [b.joint(tables) for b in compiled.blocks]
    solutions = [j.solution for j in joints if j is not None]
    fixed = [f for f in map(_fixed, solutions) if f is not None]
    if len(fixed) < len(joints):
        return None
    look = _Look(compiled, tables, plates, boxes, {n.position: tables.belief(n) for n in others}, fixed, [])
    portions = _portions(look, solutions)
    look = look._replace(first=portions)
    rng = np.random.default_rng(_SEED)
    each = min(_DRAWS, look.n_most // len(portions))
    if look.n_rows >= _MANY_ROWS:
        few = look.weigh(rng, Mixture(portions, [min(_FIRST, each)] * len(portions)))
        if few is None or (few.effective > _MOST * few.drawn.n and decided(few)):
            return few
    found = [look.weigh(rng, Mixture(portions, [each] * len(portions)))]
    for k in range(_ROUNDS):
        last = found[-1]
        if last is None or not np.isfinite(last.log_model).any():
            break
        if last.effective > _ENOUGH * last.drawn.n and (k >= _FURTHER or decided(last)):
            break
        kernels = Kernels(rng, last.drawn, last.tempered())
        n = min(_DRAWS * _MORE, look.n_most)
        numbers = [n // (_DEFENCE * len(portions))] * len(portions)
        found.append(look.weigh(rng, Mixture([*portions, kernels], [*numbers, n - sum(numbers)])))
    return _best([w for w in found if w is not None])


def _best(found: list[Weighed]) -> Weighed | None:
    """The round of which most draws count, of those that found as much of the model's mass as any.

    Kernels are put around draws: in many directions, and beside events that cut them, those of the belief may be better.
    """
    found = [w for w in found if np.isfinite(w.log_model).any()] or found
    if not found:
        return None
    most = max(found, key=lambda w: w.log_evidence)
    noise = [_SIGMAS * np.sqrt(1.0 / w.effective + 1.0 / most.effective) for w in found]
    as_much = [w for w, s in zip(found, noise, strict=True) if not w.log_evidence < most.log_evidence - s]
    return max(as_much, key=lambda w: w.effective / w.drawn.n)


def _portions(look: _Look, solutions: list[Any]) -> list[Portion]:
    """The belief, a wider one, what is known without the factors besides the blocks, and the belief reflected at 0."""
    compiled, tables, beliefs, fixed = look.compiled, look.tables, look.beliefs, look.fixed
    solved = [(s.mean, _loosened(s.root, f)) for s, f in zip(solutions, fixed, strict=True)]
    d = sum(len(mean) for mean, _ in solved) + sum(b.size for b in beliefs.values())
    width = float(np.sqrt(1.0 + _WIDER / np.sqrt(d)))
    wide = {k: b ** (1.0 / width**2) for k, b in beliefs.items()}
    apart = [_apart(b.factor.system, mean, root) for b, (mean, root) in zip(compiled.blocks, solved, strict=True)]
    return [
        Portion(solved, beliefs),
        Portion([(mean, width * root) for mean, root in solved], wide),
        Portion(apart, {k: _prior(compiled, tables, k, wide[k]) for k in beliefs}),
        *mirrored(compiled, look.plates, Portion(solved, beliefs)),
        *swapped(compiled, look.plates, Portion(solved, beliefs)),
    ]


def _fixed(solution: Any) -> np.ndarray | None:
    """The scalars of a block without a variance, values of functions of numbers that cancel; None where a combination has none."""
    fixed = np.flatnonzero(np.sum(solution.root**2, axis=1) <= _NOTHING * (1.0 + solution.mean**2))
    return fixed if len(fixed) == len(solution.root) - solution.n_free else None


def _loosened(root: np.ndarray, fixed: np.ndarray) -> np.ndarray:
    """A root of the covariance with a variance of 1 for scalars that are fixed: they are computed in every draw, so any will do."""
    if not len(fixed):
        return root
    covariance = root @ root.T
    covariance[fixed], covariance[:, fixed] = 0.0, 0.0
    covariance[fixed, fixed] = 1.0
    return np.linalg.cholesky(covariance)


def _apart(system: Any, mean: np.ndarray, root: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A block without what other factors say, but for a small share of its belief that keeps it proper."""
    inverse = np.linalg.inv(root)
    precision = _SHARE * inverse.T @ inverse
    shift = system.shift + precision @ mean
    total: np.ndarray = system.precision + precision
    apart = np.linalg.inv(np.linalg.cholesky(total)).T
    return apart @ (apart.T @ shift), apart


def _prior(compiled: CompiledModel, tables: Tables, node: int, wide: Family) -> Family:
    """A node's own prior, where it has a proper one."""
    for plate, port in compiled.graph.edges_of(node):
        if isinstance(plate.factor, Prior):
            sent = tables.sent[plate.position, port]
            return sent if sent.proper.all() and sent.size == wide.size else wide
    return wide
