"""The same message, expensively: importance sampling and quadrature, with an honest account of their errors."""

from heliograph.oracles.abc import AbcOracle
from heliograph.oracles.answer import Answer, Oracle
from heliograph.oracles.importance import ImportanceOracle
from heliograph.oracles.making import make_oracle
from heliograph.oracles.pool import Pool
from heliograph.oracles.quadrature import QuadratureOracle
from heliograph.oracles.sampler import Sampler, evaluate, sampler_of

__all__ = [
    "AbcOracle",
    "Answer",
    "ImportanceOracle",
    "Oracle",
    "Pool",
    "QuadratureOracle",
    "Sampler",
    "evaluate",
    "make_oracle",
    "sampler_of",
]
