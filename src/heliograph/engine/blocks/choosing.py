"""The choice of a linear system for a block: the cheaper one, as estimated before anything is computed."""

from __future__ import annotations

import warnings
from typing import NamedTuple

from heliograph.engine.blocks.dense import DenseSystem
from heliograph.engine.blocks.estimated import EstimatedSystem
from heliograph.engine.blocks.planned import PlanRefusedError
from heliograph.engine.blocks.records import Known
from heliograph.engine.blocks.rows import Rows
from heliograph.engine.blocks.sparse import SparseSystem
from heliograph.engine.blocks.system import System
from heliograph.errors import AccuracyWarning
from heliograph.numerics.sparse import Budget

__all__ = ["Limits", "system_for"]

_FLOPS = 2e10  # operations of a joint solve in a second of one core
_BYTES = 1e9  # bytes that a joint solve may use for each second that it may take

_SMALL = 64  # base scalars up to which a dense system is always the better one
_DENSE_SPEED = 4.0  # operations of dense linear algebra in the time of one of the sparse solver's
_UNRESOLVED = 1e11  # largest over smallest known weight, beyond which a sum of precisions loses digits that matter
_LOST = 1e15  # and beyond which it loses all of them
_OVERHEAD = 4e6  # operations of the sparse solver in the time that its Python takes


class Limits(NamedTuple):
    """What a joint solve may cost, and whether a block beyond that may be estimated."""

    seconds: float = 2.0
    estimated: bool = True

    @property
    def budget(self) -> Budget:
        """In operations and bytes."""
        return Budget(_FLOPS * self.seconds, _BYTES * self.seconds)


def system_for(
    known: tuple[Known, ...],
    rows: Rows,
    n_sites: int,
    vectors: tuple[tuple[Rows, int], ...] = (),
    limits: Limits = Limits(),  # noqa: B008
) -> System:
    """Choose between a dense and a sparse system for the rows of a block.

    Parameters
    ----------
    known
        The rows of known weight.
    rows
        Those whose marginals are wanted in every sweep, the sites first.
    n_sites
        How many of them hold sites.
    vectors
        Rows of vector sites, with their dimension.
    limits
        What it may cost.

    Raises
    ------
    TooExpensiveError
        Where both are beyond the budget.
    """
    n = rows.n_columns
    highest = max((float(k.weight.max(initial=1.0)) for k in known), default=1.0)
    spread = highest / min((float(k.weight.min(initial=1.0)) for k in known), default=1.0)
    wanted = (rows, *(r for r, _ in vectors))
    entries = sum(r.n_entries + sum(x.size for x, _ in r.dense) for r in wanted)
    dense_cost = 2.0 * n * (n**2 + entries) / _DENSE_SPEED  # a factorisation, and its root times every row
    if n <= _SMALL or not any(r.n_entries for r in (*wanted, *(k.rows for k in known))):
        return DenseSystem(known, rows, n_sites, vectors)
    full = any(len(columns) == n for r in (*wanted, *(k.rows for k in known)) for _, columns in r.dense)
    if n < 3000 and (
        full or dense_cost <= _OVERHEAD or spread > _UNRESOLVED
    ):  # a dense system can be careful with such weights
        return DenseSystem(known, rows, n_sites, vectors)
    if spread > _LOST:
        warnings.warn(
            f"the variances of a block of {n} unknowns differ by a factor of {spread:.0e}, more than double precision holds: "
            "standard deviations may be wrong; choose larger variances, or fewer unknowns",
            AccuracyWarning,
            stacklevel=2,
        )
    try:
        sparse = SparseSystem(known, rows, n_sites, vectors, limits.budget)
    except PlanRefusedError as refused:
        if not limits.estimated:
            raise
        return EstimatedSystem(known, rows, n_sites, vectors, refused)
    if n < 3000 and dense_cost < sparse.solver.flops:
        return DenseSystem(known, rows, n_sites, vectors)
    return sparse
