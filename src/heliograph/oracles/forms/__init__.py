"""Factors in the form in which an oracle can answer for them.

An oracle integrates over inputs and weighs by the message of one output. What is not written that way is put into that form
here, and the answer back into the factor's own: a given log density in place of an observed output (`density.py`), and an
observed output of a deterministic function, which leaves roots to be found and nothing to be integrated (`exact.py`,
`roots.py`). A factor of several outputs has the product of their messages for a density (`several.py`). `asking.py` looks at
the rows and chooses.
"""

from heliograph.oracles.forms.asking import ask_in_form, found_by_roots, route_in_form
from heliograph.oracles.forms.density import DensityForm
from heliograph.oracles.forms.several import together

__all__ = ["DensityForm", "ask_in_form", "found_by_roots", "route_in_form", "together"]
