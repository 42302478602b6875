"""Messages as values: batched exponential families in natural parameters.

Start with `base`, the contract that every family meets, and `gaussian`, the shortest one. `batch` holds the algebra that
all share and `points` the bookkeeping of point masses. `charts` are the coordinates in which a family's variable and its
members take any real value; `coordinates` and `parameterisations` turn plates into rows of numbers, `packing` into arrays
for files.
"""

from heliograph.families.base import Family, concatenate
from heliograph.families.bernoulli import Bernoulli
from heliograph.families.beta import Beta
from heliograph.families.categorical import Categorical
from heliograph.families.dirichlet import Dirichlet
from heliograph.families.factored import factored_gaussian
from heliograph.families.gamma import Gamma
from heliograph.families.gaussian import Gaussian
from heliograph.families.mixture import Mixture
from heliograph.families.multivariate_gaussian import MultivariateGaussian

# from the simplest variable to vectors, the order in which factors list them
EVERY_FAMILY: tuple[type[Family], ...] = (
    Gaussian,
    MultivariateGaussian,
    Gamma,
    Beta,
    Bernoulli,
    Categorical,
    Dirichlet,
)

__all__ = [
    "EVERY_FAMILY",
    "Bernoulli",
    "Beta",
    "Categorical",
    "Dirichlet",
    "Family",
    "Gamma",
    "Gaussian",
    "Mixture",
    "MultivariateGaussian",
    "concatenate",
    "factored_gaussian",
]
