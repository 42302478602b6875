"""What references know of a function without calling it: tables of a smooth function of one or two numbers (docs/decisions/0068).

A reference evaluates the function a hundred times a row, and in related problems at much the same places. Values are served from
a table only to rows whose own nodes are no closer to each other than the places at which the table has looked: a feature that such
a row would see, the table has seen too. Oracles always call the function, so that audits compare with what it says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from heliograph.errors import FactorError
from heliograph.families import Beta, Gamma
from heliograph.oracles.references.smooth_table import SmoothTable, rounding_of

__all__ = ["KnownValues"]

_SAMPLES = (
    12.0  # places in a panel at least, along each side: a table serves rows whose nodes are as far apart, or farther
)
_COARSER = 3  # powers of two by which a table may be finer than a row needs, before there is one for such rows
_TOGETHER = {
    1: 3,
    2: 2,
}  # powers of two by which rows may differ that are read from one table, for one unknown and for two
_TABLES = 12  # of one function of what is unknown, at most
_CLASSES = 16  # values of the inputs that are known, for which there are tables
_MOST = {
    1: 100_000,
    2: 150_000,
}  # values at once, by the number of unknowns: of so many a cheap function is called faster

Call = Callable[[np.ndarray], np.ndarray]  # of places (m, d): values, not finite where there are none
RowCall = Callable[[np.ndarray, np.ndarray], np.ndarray]  # the same of places of rows (m,), whose known inputs it takes


class KnownValues:
    """Tables of one function, by what is unknown and by the values of what is known."""

    def __init__(self) -> None:
        self.tables: dict[Any, list[SmoothTable]] = {}
        self._wanted: list[tuple[SmoothTable, np.ndarray, Call]] = []  # places that no table knew, since `lay`

    def look(
        self, name: Any, output: type, u: np.ndarray, step: np.ndarray, constants: np.ndarray, call: RowCall
    ) -> tuple[np.ndarray, int]:
        """Values at places ``(k, n, d)``, and how often the function was called for them.

        Parameters
        ----------
        name : what is unknown; tables of other unknowns are others
        output : the family of the output, on which it depends how exact values have to be
        u : places on the charts of the unknown inputs
        step : ``(n, d)``, how far apart the nodes of each row are
        constants : ``(n, c)``, the known inputs of each row
        call : the function at places ``(m, d)`` of rows ``(m,)``
        """
        k, n, d = u.shape
        groups = list(self._groups(name, output, step, constants, k * n))
        if len(groups) == 1 and len(groups[0][0]) == n:  # the usual case, without copies
            value = _read(groups[0][1], u.reshape(-1, d)).reshape(k, n)
        else:
            value = np.full((k, n), np.nan)
            for rows, tables in groups:
                value[:, rows] = _read(tables, u[:, rows].reshape(-1, d)).reshape(k, -1)
        missing = np.isnan(value)
        n_calls = int(missing.sum())
        if not n_calls:
            return value, 0
        row = np.broadcast_to(np.arange(n), (k, n))
        value[missing] = call(u[missing], row[missing])
        for rows, tables in groups:
            some = missing[:, rows]
            if some.any() and not tables[0].abandoned:
                self._wanted.append((tables[0], u[:, rows][some], partial(_of_one_row, call, rows[0])))
        return value, n_calls

    def lay(self) -> int:
        """Lay what has been wanted often enough; how often the function was called for that."""
        wanted, self._wanted = self._wanted, []
        n_calls = 0
        for table, places, call in wanted:
            before = table.n_calls
            try:
                table.lay(places, call)
            except FactorError:  # at places which nobody asked for: where it is needed it is called, as it was before
                table.abandoned = True
            n_calls += table.n_calls - before
        return n_calls

    def _groups(
        self, name: Any, output: type, step: np.ndarray, constants: np.ndarray, size: int
    ) -> Iterator[tuple[np.ndarray, list[SmoothTable]]]:
        """Rows of one class that the same tables may serve, those first that are as coarse as may be."""
        if size > _MOST[step.shape[1]] or not len(step) or not (np.isfinite(step) & (step > 0)).all():
            return
        if constants.size and len(np.unique(constants, axis=0)) > _CLASSES:
            return
        octave = np.floor(np.log2(_SAMPLES * step)).astype(int)
        near = (octave - octave.min(axis=0)) // _TOGETHER[step.shape[1]]
        kinds, which = np.unique(np.concatenate([near, constants], axis=1), axis=0, return_inverse=True)
        for j, kind in enumerate(kinds):
            rows, key = np.flatnonzero(which.reshape(-1) == j), (name, kind[step.shape[1] :].tobytes())
            if key not in self.tables and len({c for other, c in self.tables if other == name}) >= _CLASSES:
                continue
            tables = self._serving(self.tables.setdefault(key, []), octave[rows].min(axis=0), output)
            if tables:
                yield rows, tables

    @staticmethod
    def _serving(tables: list[SmoothTable], need: np.ndarray, output: type) -> list[SmoothTable]:
        """Tables that have looked closely enough, the one first in which values that are missed are noted."""
        fine = [t for t in tables if (np.log2(t.width) <= need).all()]
        fine.sort(key=lambda t: -float(np.log2(t.width).sum()))
        if fine and (need - np.log2(fine[0].width) <= _COARSER).all():
            return fine
        if len(tables) >= _TABLES:
            return fine
        # finer by a half than these rows need: others will be narrower
        made = SmoothTable(2.0 ** (need - 1), rounding_of(output in (Gamma, Beta), output is Beta))
        tables.append(made)
        return [made, *fine]


def _read(tables: list[SmoothTable], at: np.ndarray) -> np.ndarray:
    """Values at places ``(m, d)`` from the first table that has them; NaN where none does."""
    value = tables[0].read(at)
    for table in tables[1:]:
        missing = np.flatnonzero(np.isnan(value))
        if not len(missing):
            break
        value[missing] = table.read(at[missing])
    return value


def _of_one_row(call: RowCall, row: int, at: np.ndarray) -> np.ndarray:
    return call(at, np.full(len(at), row))
