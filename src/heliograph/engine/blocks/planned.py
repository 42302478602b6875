# pyright: basic
"""The precision of a block of any sparse pattern: grids, trees, leagues, groups; planned once, factorised in every sweep."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from heliograph.engine.blocks.records import Known
from heliograph.engine.blocks.rows import Rows, take
from heliograph.engine.blocks.system import Sites
from heliograph.numerics import sparse

__all__ = ["PlanRefusedError", "PlannedSolver", "as_numeric"]


class PlanRefusedError(sparse.TooExpensiveError):
    """A joint solve beyond the budget, with its plan, and the rows that were planned for."""

    def __init__(self, plan: sparse.Plan, parts: list[sparse.Rows]) -> None:
        super().__init__(f"a joint solve takes {plan.flops:.1e} operations and {plan.bytes:.1e} bytes")
        self.plan, self.parts = plan, parts


class PlannedSolver:
    """A `Solver` by `heliograph.numerics.sparse`."""

    def __init__(
        self,
        known: tuple[Known, ...],
        rows: Rows,
        n_sites: int,
        vectors: tuple[tuple[Rows, int], ...],
        budget: sparse.Budget | None = None,
    ) -> None:
        """As `SparseSystem`. Raises `sparse.TooExpensiveError` beyond the budget."""
        fixed, queried = [as_numeric(k.rows) for k in known], as_numeric(rows)
        parts = [as_numeric(r, d) for r, d in vectors]
        every = [*fixed, queried, *parts]
        self.plan = sparse.analyse(every, budget=budget)
        if not self.plan.affordable:
            raise PlanRefusedError(self.plan, every)
        self.flops = self.plan.flops
        self._shown = sparse.place(self.plan, queried)
        self._sites = self._shown
        if n_sites < len(rows):
            self._sites = sparse.place(self.plan, as_numeric(take(rows, np.arange(n_sites))), queried=False)
        self._vectors = [(sparse.place(self.plan, p), d) for p, (_, d) in zip(parts, vectors, strict=True)]
        self._known = np.zeros(self.plan.fill)
        for part, k in zip(fixed, known, strict=True):
            self._known += sparse.gram(sparse.place(self.plan, part, queried=False), k.weight)

    def factorise(self, sites: Sites) -> sparse.Factor:
        """The precision under the sites, factorised; raises `NotPositiveDefiniteError`."""
        values = self._known
        if len(sites.tau):
            values = values + sparse.gram(self._sites, sites.tau)
        for (placed, _), site in zip(self._vectors, sites.vectors, strict=True):
            values = values + sparse.gram(placed, site.precision)
        return sparse.factorise(self.plan, values)

    def log_determinant(self, factor: sparse.Factor) -> float:
        """Of the precision."""
        return factor.log_determinant

    def solve(self, factor: sparse.Factor, right: np.ndarray) -> np.ndarray:
        """Solve for right-hand sides (N,) or (N, c)."""
        return sparse.solve(factor, right)

    def invert(self, factor: sparse.Factor) -> sparse.Inverse:
        """The covariances of scalars that share a row."""
        return sparse.invert(factor)

    def variances(self, inverse: sparse.Inverse) -> np.ndarray:
        """Variances of the rows that are wanted in every sweep."""
        return sparse.variances(inverse, self._shown)

    def vector_covariances(self, inverse: sparse.Inverse) -> list[np.ndarray]:
        """Covariances ``(m, d, d)`` of every vector site."""
        return [sparse.variances(inverse, placed).reshape(-1, d, d) for placed, d in self._vectors]

    def covariance(self, factor: sparse.Factor, rows: Rows, others: Rows) -> np.ndarray:
        """Covariances of a few rows with others."""
        return sparse.covariance(factor, as_numeric(rows), as_numeric(others))

    def sample(self, rng: np.random.Generator, factor: sparse.Factor, n: int) -> np.ndarray:
        """Draws (n, N) around 0."""
        return sparse.sample(rng, factor, n)


def as_numeric(rows: Rows, width: int = 1) -> sparse.Rows:
    """Rows as the solver takes them: dense parts over neighbouring scalars stay dense."""
    whole, dense = rows.sparse, []
    for x, columns in rows.dense:
        if (np.diff(columns) == 1).all():
            dense.append(sparse.Dense(0, int(columns[0]), x))
        else:
            part = sp.coo_array(x)
            shape = (len(rows), rows.n_columns)
            whole = whole + sp.csr_array(
                sp.coo_array((part.data, (part.coords[0], columns[part.coords[1]])), shape=shape)
            )
    row = np.repeat(np.arange(len(rows)), np.diff(whole.indptr))
    return sparse.make_rows(
        rows.n_columns,
        row,
        whole.indices,
        whole.data,
        n_rows=len(rows),
        constant=rows.constant,
        width=width,
        dense=dense,
    )
