"""One chart per family: the coordinates in which its variable and its members take any real value.

Start with `chart.py`, which says what a chart does; then one file per kind:

| family | coordinates of a value | coordinates of a member | file |
|---|---|---|---|
| Gaussian | x | mean and variance of x | `scalar.py` |
| Gamma | log x | mean and variance of log x | `scalar.py` |
| Beta | logit p | mean and variance of logit p | `scalar.py` |
| Bernoulli | x | log odds | `tables.py` |
| Categorical | x | centred log probabilities | `tables.py` |
| Dirichlet | log ratios to the last component | log concentrations | `tables.py` |
| MultivariateGaussian | x | mean and covariance of x | `vector.py` |

`chart_of` finds the chart of a message; `density_chart_of` one on which its density can be integrated.
"""

from collections.abc import Callable
from functools import cache

from heliograph.errors import UnsupportedError
from heliograph.families.base import Family
from heliograph.families.bernoulli import Bernoulli
from heliograph.families.beta import Beta
from heliograph.families.categorical import Categorical
from heliograph.families.charts.chart import Chart, DensityChart, Moments
from heliograph.families.charts.scalar import IdentityChart, LogChart, LogitChart
from heliograph.families.charts.tables import LogConcentrationChart, LogOddsChart, LogProbabilityChart
from heliograph.families.charts.vector import VectorChart
from heliograph.families.dirichlet import Dirichlet
from heliograph.families.gamma import Gamma
from heliograph.families.gaussian import Gaussian
from heliograph.families.multivariate_gaussian import MultivariateGaussian

__all__ = [
    "Chart",
    "DensityChart",
    "IdentityChart",
    "LogChart",
    "LogConcentrationChart",
    "LogOddsChart",
    "LogProbabilityChart",
    "LogitChart",
    "Moments",
    "VectorChart",
    "chart_of",
    "density_chart_of",
]

_FIXED: dict[type[Family], Chart] = {
    Gaussian: IdentityChart(),
    Gamma: LogChart(),
    Beta: LogitChart(),
    Bernoulli: LogOddsChart(),
}
_SIZED: dict[type[Family], Callable[[int], Chart]] = {
    MultivariateGaussian: VectorChart,
    Categorical: LogProbabilityChart,
    Dirichlet: LogConcentrationChart,
}


def chart_of(message: Family) -> Chart:
    """The chart of this message's family, and of its dimension.

    >>> chart_of(Gamma(2.0, 3.0)).coordinates(1.0)
    array(0.)
    """
    chart = _find(message)
    if chart is None:
        raise UnsupportedError(f"there is no chart for {type(message).__name__} messages; use operator='ask'")
    return chart


def density_chart_of(message: Family) -> DensityChart | None:
    """The chart on which quadrature integrates this message; None for tables of probabilities, which have none."""
    chart = _find(message)
    return chart if isinstance(chart, IdentityChart | LogChart | LogitChart | VectorChart) else None


def _find(message: Family) -> Chart | None:
    fixed = _FIXED.get(type(message))
    if fixed is not None:
        return fixed
    return _sized(type(message), message.naturals[0].shape[-1]) if type(message) in _SIZED else None


@cache
def _sized(family: type[Family], size: int) -> Chart:
    return _SIZED[family](size)
