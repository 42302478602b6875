"""Experiment 4: the compound gamma."""
