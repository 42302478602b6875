"""Expectation propagation for Python, with messages learned just in time."""
