"""Messages as values: batched exponential families in natural parameters."""

from heliograph.families.base import Family, concatenate
from heliograph.families.bernoulli import Bernoulli
from heliograph.families.beta import Beta
from heliograph.families.categorical import Categorical
from heliograph.families.dirichlet import Dirichlet
from heliograph.families.gamma import Gamma
from heliograph.families.gaussian import Gaussian
from heliograph.families.multivariate_gaussian import MultivariateGaussian

__all__ = [
    "Bernoulli",
    "Beta",
    "Categorical",
    "Dirichlet",
    "Family",
    "Gamma",
    "Gaussian",
    "MultivariateGaussian",
    "concatenate",
]
