"""Experiment 1: learning in batch."""
