"""Experiment 2: whether the doubt is worth anything."""

from heliograph.paper.exp2 import figures, parts, words

__all__ = ["figures", "parts", "words"]
