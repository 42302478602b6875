"""Cheap reference beliefs: where the default operator starts from, so that only a small and smooth correction is left to learn.

Start with `reference.py`, which chooses the way by the number of unknown numbers: `line_reference.py` (one),
`plane_reference.py` (two), `linearisation.py` (three to five). `record.py` holds what all of them give back, `output.py`
the output's message on its chart; the inputs' charts are those of `families.charts`. What they remember of smooth functions is in
`known_values.py` and `smooth_table.py`.
"""

from heliograph.oracles.references.known_values import KnownValues
from heliograph.oracles.references.record import Reference
from heliograph.oracles.references.reference import reference_of

__all__ = ["KnownValues", "Reference", "reference_of"]
