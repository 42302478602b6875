"""The axis on which an oracle integrates each family: real coordinates, densities on them, statistics, and the projection back.

Start with `axis.py`, which says what every axis offers; `axis_of.py` says which belongs to which family. There is one file for
each: `real_axis` (Gaussian), `log_axes` (Gamma, Beta), `vector_axis` (MultivariateGaussian), `simplex_axis`
(Dirichlet), `discrete_axes` (Bernoulli, Categorical). `charted.py` has what they share, such as values by the charts of
`families.charts`; `algebra.py` carries errors through linear maps.
"""

from heliograph.oracles.axes.axis import Axis, Line, Projection, Values
from heliograph.oracles.axes.axis_of import axis_of

__all__ = ["Axis", "Line", "Projection", "Values", "axis_of"]
