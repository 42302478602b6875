"""Experiment 3: just-in-time learning over 30 logistic regressions."""
