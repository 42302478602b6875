"""Experiment 3: just-in-time learning over 30 logistic regressions."""

from heliograph.paper.exp3 import parts, words
from heliograph.paper.sequences import figures

__all__ = ["figures", "parts", "words"]
