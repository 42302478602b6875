"""Black-box factors: a node given only as a forward sampler, with what was learned about its messages.

``@factor(output=Family)`` turns a function into a `BlackBox`. Called on variables it becomes part of their model,
called on arrays it is the function it was. What it learns belongs to it and serves every model that uses it.

Start with `box`, the factor itself; `options` is how one run treats it, `oracle_calls` how an oracle is asked, `saving` and
`load_factor` its file. `joint` is the same factor with several inputs as one vector, `terms` with
what is added to its output, `values` what it gives at known inputs.
"""

from heliograph.factors.black_box.box import BlackBox
from heliograph.factors.black_box.decorator import factor, load_factor
from heliograph.factors.black_box.joint import JointBox
from heliograph.factors.black_box.options import RunOptions
from heliograph.factors.black_box.oracle_calls import OracleCalls, oracle_named
from heliograph.factors.black_box.terms import BoxWithTerm
from heliograph.factors.black_box.values import is_computable, values_of

__all__ = [
    "BlackBox",
    "BoxWithTerm",
    "JointBox",
    "OracleCalls",
    "RunOptions",
    "factor",
    "is_computable",
    "load_factor",
    "oracle_named",
    "values_of",
]
