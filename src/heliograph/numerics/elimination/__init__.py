"""Sums over many discrete variables: exact marginals and normaliser of a product of tables.

`make_plan` chooses an order of elimination from the scopes alone; `solve` carries it out for tables of numbers. Variables
that share no table are eliminated in one round, so that a chain of n variables needs about log2(n) rounds of batched work.
"""

from heliograph.numerics.elimination.plan import TooManyConfigurationsError, make_plan
from heliograph.numerics.elimination.records import Group, Part, Plan
from heliograph.numerics.elimination.solve import Marginals, solve, solve_in_logs

__all__ = [
    "Group",
    "Marginals",
    "Part",
    "Plan",
    "TooManyConfigurationsError",
    "make_plan",
    "solve",
    "solve_in_logs",
]
