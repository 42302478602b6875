"""Messages as values: batched exponential families in natural parameters."""

from heliograph.families.base import Family, concatenate
from heliograph.families.gaussian import Gaussian

__all__ = ["Family", "Gaussian", "concatenate"]
