"""One node each, as pure functions of messages: closed forms, quadrature forms and the black box.

Start with `base`, what every factor is, and `gaussian`, the shortest one; `docs/adding_a_factor.md` walks through a new one. A
factor is one file here, and being here is its registration (`table.supported` lists all). What they share: `incoming` reads
ports, `rows` keeps a bad row from its neighbours, `line` and `plane` are the algebra of Gaussian messages to numbers and
vectors, `integrals` holds tilted distributions, and `black_box` the factors that are given only as a sampler.
"""

from heliograph.factors.arithmetic import Difference, Scale, Shift, Sum
from heliograph.factors.base import Factor, Incoming
from heliograph.factors.beta_dirichlet import BetaFactor, CategoricalDirichlet, DirichletFactor
from heliograph.factors.beta_mean import BetaMean
from heliograph.factors.between_cuts import BetweenCuts
from heliograph.factors.chosen import ChosenProbability
from heliograph.factors.compound_gamma import CompoundGamma
from heliograph.factors.conditional import ConditionalTable
from heliograph.factors.constraints import Between, Positive
from heliograph.factors.counts import BernoulliBeta, Binomial, Poisson, PoissonLog
from heliograph.factors.dirichlet_table import DirichletTable, DirichletTuple
from heliograph.factors.dot import Dot, dot_backward, dot_forward
from heliograph.factors.equality import Equal, SoftEvidence
from heliograph.factors.even import AbsoluteValue, Square
from heliograph.factors.exponential import Exp
from heliograph.factors.gamma import GammaRate
from heliograph.factors.gaussian import GaussianFactor, MultivariateGaussianFactor
from heliograph.factors.gaussian_precision import GaussianPrecision
from heliograph.factors.intervals import ExponentialInterval
from heliograph.factors.laplace import LaplaceFactor
from heliograph.factors.lifetimes import Weibull
from heliograph.factors.logistic import Logistic, LogisticBernoulli
from heliograph.factors.maximum import Maximum
from heliograph.factors.mixture import Mixture
from heliograph.factors.multinomial import Multinomial
from heliograph.factors.one_of import OneOf
from heliograph.factors.ordinal import OrdinalLogit, OrdinalProbit
from heliograph.factors.positive import GammaScale, Log
from heliograph.factors.prior import Prior
from heliograph.factors.probit import ProbitBernoulli
from heliograph.factors.product import Product
from heliograph.factors.scores import BinomialLogit, NegativeBinomial
from heliograph.factors.select import Select
from heliograph.factors.softmax import Softmax
from heliograph.factors.stack import Stack
from heliograph.factors.stretched import ScaledGaussian
from heliograph.factors.student import StudentT
from heliograph.factors.table import Supported, SupportedRow, supported
from heliograph.factors.truncated import TruncatedGaussian
from heliograph.factors.uniform import Uniform

__all__ = [
    "AbsoluteValue",
    "BernoulliBeta",
    "BetaFactor",
    "BetaMean",
    "Between",
    "BetweenCuts",
    "Binomial",
    "BinomialLogit",
    "CategoricalDirichlet",
    "ChosenProbability",
    "CompoundGamma",
    "ConditionalTable",
    "Difference",
    "DirichletFactor",
    "DirichletTable",
    "DirichletTuple",
    "Dot",
    "Equal",
    "Exp",
    "ExponentialInterval",
    "Factor",
    "GammaRate",
    "GammaScale",
    "GaussianFactor",
    "GaussianPrecision",
    "Incoming",
    "LaplaceFactor",
    "Log",
    "Logistic",
    "LogisticBernoulli",
    "Maximum",
    "Mixture",
    "Multinomial",
    "MultivariateGaussianFactor",
    "NegativeBinomial",
    "OneOf",
    "OrdinalLogit",
    "OrdinalProbit",
    "Poisson",
    "PoissonLog",
    "Positive",
    "Prior",
    "ProbitBernoulli",
    "Product",
    "Scale",
    "ScaledGaussian",
    "Select",
    "Shift",
    "SoftEvidence",
    "Softmax",
    "Square",
    "Stack",
    "StudentT",
    "Sum",
    "Supported",
    "SupportedRow",
    "TruncatedGaussian",
    "Uniform",
    "Weibull",
    "dot_backward",
    "dot_forward",
    "supported",
]
