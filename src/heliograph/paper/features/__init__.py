"""The appendix on random features."""
