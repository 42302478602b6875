"""Experiment 2: whether the stated uncertainty is useful."""

from heliograph.paper.exp2 import figures, parts, words

__all__ = ["figures", "parts", "words"]
