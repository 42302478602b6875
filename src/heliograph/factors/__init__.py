"""One node each: closed forms, quadrature forms and the black box, as pure functions of messages."""

from heliograph.factors.arithmetic import Difference, Scale, Shift, Sum
from heliograph.factors.base import Factor, Incoming
from heliograph.factors.dot import Dot, DotPlate, dot_backward, dot_forward
from heliograph.factors.gaussian import GaussianFactor, MultivariateGaussianFactor
from heliograph.factors.prior import Prior

__all__ = [
    "Difference",
    "Dot",
    "DotPlate",
    "Factor",
    "GaussianFactor",
    "Incoming",
    "MultivariateGaussianFactor",
    "Prior",
    "Scale",
    "Shift",
    "Sum",
    "dot_backward",
    "dot_forward",
]
