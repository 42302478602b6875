"""Experiments in parts: what an experiment is, parts that are kept as they finish, and the code that a part depends on."""
