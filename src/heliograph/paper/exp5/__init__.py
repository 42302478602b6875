"""Experiment 5: four real data sets in sequence."""
