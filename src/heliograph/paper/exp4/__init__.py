"""Experiment 4: the compound gamma."""

from heliograph.paper.exp4 import figures, parts, words

__all__ = ["figures", "parts", "words"]
