"""The regression room."""

from heliograph.regression.eslami2014 import EslamiForest
from heliograph.regression.forests import ExtraTrees, RandomForest
from heliograph.regression.heess2013 import HeessNetwork

__all__ = [
    "EslamiForest",
    "ExtraTrees",
    "HeessNetwork",
    "RandomForest",
]
