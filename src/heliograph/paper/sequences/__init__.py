"""Logistic regressions one after another with one factor that goes on learning: what experiments 3 and 5 share."""
