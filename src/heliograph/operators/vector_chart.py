"""The chart of vectors; the code is in `families.charts`."""

from heliograph.families.charts import VectorChart

__all__ = ["VectorChart"]
