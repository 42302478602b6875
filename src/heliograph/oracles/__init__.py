"""The same message, expensively: importance sampling and quadrature, with an honest account of their errors."""

from heliograph.oracles.answer import Answer, Oracle
from heliograph.oracles.importance import ImportanceOracle
from heliograph.oracles.sampler import Sampler, evaluate, sampler_of

__all__ = ["Answer", "ImportanceOracle", "Oracle", "Sampler", "evaluate", "sampler_of"]
