"""The appendix on random features."""

from heliograph.paper.features import figures, parts, words

__all__ = ["figures", "parts", "words"]
