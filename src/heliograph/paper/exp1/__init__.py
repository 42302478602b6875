"""Experiment 1: learning in batch."""

from heliograph.paper.exp1 import figures, parts, words

__all__ = ["figures", "parts", "words"]
