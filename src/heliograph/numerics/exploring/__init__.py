"""Exploring a log density of a few real numbers that is expensive to evaluate: mode, mass, and a surrogate.

`climbing` finds a mode by BFGS; `flooding` evaluates a lattice around it until little mass can be outside; `surrogate` interpolates
what was evaluated; `nodes` integrates the surrogate. Nothing here knows what the density is of.
"""
