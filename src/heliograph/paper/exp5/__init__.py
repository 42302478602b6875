"""Experiment 5: four real data sets in sequence."""

from heliograph.paper.exp5 import figures, parts, words

__all__ = ["figures", "parts", "words"]
