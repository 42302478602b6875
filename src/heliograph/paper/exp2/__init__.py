"""Experiment 2: whether the doubt is worth anything."""
