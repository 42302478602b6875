"""The same message, expensively: importance sampling and quadrature, with an honest account of their errors.

Start with `answer.py` (what an oracle gives back) and `sampler.py` (the user's function as data). `problem.py` cuts a plate
into integrals of one kind. Then choose a way: `quadrature` and `importance` are the oracles, between which `automatic.py`
chooses for each row (and where each is found by its name), `references` give cheap beliefs without guaranteed errors; all of
them work on the `axes` of the families. `frames.py` and `answering.py` turn sums into an answer.
"""

from heliograph.oracles.answer import Answer, Oracle
from heliograph.oracles.automatic import AutomaticOracle, make_oracle
from heliograph.oracles.calling import evaluate
from heliograph.oracles.importance import AbcOracle, ImportanceOracle, Pool
from heliograph.oracles.quadrature import QuadratureOracle
from heliograph.oracles.sampler import Sampler, sampler_of

__all__ = [
    "AbcOracle",
    "Answer",
    "AutomaticOracle",
    "ImportanceOracle",
    "Oracle",
    "Pool",
    "QuadratureOracle",
    "Sampler",
    "evaluate",
    "make_oracle",
    "sampler_of",
]
