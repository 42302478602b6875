"""Numerical tools that know nothing of messages, factors or models."""
