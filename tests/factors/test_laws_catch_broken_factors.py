"""A test of the laws: factors broken on purpose, each caught by the law that is meant for it."""

from __future__ import annotations

import numpy as np
import pytest
from incoming_messages import every_factor, incoming_of
from law_specs import UNITS, held
from laws import Units, gradient_law, order_law, plate_law, silence_law, units_law

from heliograph.factors import (
    BernoulliBeta,
    ConditionalTable,
    Dot,
    Exp,
    Factor,
    GammaRate,
    GaussianFactor,
    GaussianPrecision,
    Maximum,
    Positive,
    ProbitBernoulli,
    Product,
    Scale,
    Sum,
)
from heliograph.families import Bernoulli, Gamma, Gaussian, MultivariateGaussian


class MeanOffByHalf(Sum):
    """Every mean is half of what it should be."""

    def message(self, to, incoming, power=1.0):
        m = super().message(to, incoming, power)
        return Gaussian.from_naturals((0.5 * m.naturals[0], m.naturals[1]))


class VarianceTooSmall(GaussianFactor):
    """The noise is added once too little: the variance sent is 10 % small."""

    def message(self, to, incoming, power=1.0):
        m = super().message(to, incoming, power)
        return Gaussian.from_naturals((1.1 * m.naturals[0], 1.1 * m.naturals[1]))


class WrongSign(Positive):
    """The constraint is taken to hold on the other side of 0."""

    def message(self, to, incoming, power=1.0):
        flipped = {**incoming, "y": Bernoulli.from_log_odds(-incoming["y"].log_odds)} if to == "x" else incoming
        return super().message(to, flipped, power)


class WrongPort(Maximum):
    """The message to a is computed from b's."""

    def message(self, to, incoming, power=1.0):
        return super().message("b" if to == "a" else to, incoming, power)

    def belief(self, to, incoming, power=1.0):
        return super().belief("b" if to == "a" else to, incoming, power)


class PriorForgotten(GammaRate):
    """The message to the rate leaves out the Gamma's own power of it."""

    def message(self, to, incoming, power=1.0):
        m = super().message(to, incoming, power)
        return m if to == "x" else Gamma.from_naturals((m.naturals[0] - power * incoming["shape"], m.naturals[1]))


class FirstMomentOnly(GaussianPrecision):
    """The precision is projected by its mean and a shape that does not change."""

    def belief(self, to, incoming, power=1.0):
        belief = super().belief(to, incoming, power)
        if to != "precision":
            return belief
        s = incoming["precision"].shape_parameter
        return Gamma.from_naturals((s - 1.0, s / belief.mean))

    def message(self, to, incoming, power=1.0):
        return self.belief(to, incoming, power) / incoming[to]


class HardLabel(BernoulliBeta):
    """A soft label is taken for the likelier one."""

    def message(self, to, incoming, power=1.0):
        hard = Bernoulli.point_mass((incoming["y"].p > 0.5) * 1.0)
        return super().message(to, {**incoming, "y": hard} if to == "p" else incoming, power)


class PowerIgnored(ProbitBernoulli):
    """The message of f^alpha is that of f."""

    def message(self, to, incoming, power=1.0):
        return super().message(to, incoming, 1.0)


class TransposedTable(ConditionalTable):
    """The parent's message is summed over the wrong axis of the table."""

    def message(self, to, incoming, power=1.0):
        swapped = {**incoming, "table": np.swapaxes(incoming["table"], -1, -2)} if to == "parent" else incoming
        return super().message(to, swapped, power)


class NoisyEvidence(Product):
    """log Z lacks the part that depends on out's variance."""

    def log_z(self, incoming, power=1.0):
        return super().log_z(incoming, power) + 0.5 * np.log(incoming["out"].variance)


class NoCrossTerms(Dot):
    """The message to w has a diagonal precision."""

    def message(self, to, incoming, power=1.0):
        m = super().message(to, incoming, power)
        if to == "out":
            return m
        return MultivariateGaussian.from_naturals((m.naturals[0], m.naturals[1] * np.eye(m.dimension)))


class JacobianForgotten(Exp):
    """The belief of out is that of a density in z, without d out / dz."""

    def belief(self, to, incoming, power=1.0):
        if to == "out":
            out = incoming["out"]
            incoming = {**incoming, "out": Gamma.from_naturals((out.naturals[0] + 1.0, out.naturals[1]))}
        return super().belief(to, incoming, power)

    def message(self, to, incoming, power=1.0):
        return self.belief(to, incoming, power) / incoming[to] if to == "out" else super().message(to, incoming, power)


BREAK_A = [
    (MeanOffByHalf, 1.0),
    (VarianceTooSmall, 1.0),
    (WrongSign, 1.0),
    (WrongPort, 1.0),
    (PriorForgotten, 1.0),
    (FirstMomentOnly, 1.0),
    (HardLabel, 1.0),
    (PowerIgnored, 0.5),
    (TransposedTable, 1.0),
    (NoisyEvidence, 1.0),
    (NoCrossTerms, 1.0),
    (JacobianForgotten, 1.0),
]


@pytest.mark.parametrize("kind,power", BREAK_A, ids=[k.__name__ for k, _ in BREAK_A])
def test_the_gradient_law_catches_wrong_mathematics(kind, power):
    rng = np.random.default_rng(1)
    factor = kind()
    incoming = incoming_of(factor, 0, rng, 20, wild=False)
    gradient_law(kind.__mro__[1](), incoming, np.random.default_rng(2), power, held=held)  # the factor as it is passes
    with pytest.raises(AssertionError):
        gradient_law(factor, incoming, np.random.default_rng(2), power, held=held)


class RowsReturnedSorted(GaussianFactor):
    """Rows are worked on in the order of their variance, and handed back in that order."""

    def message(self, to, incoming, power=1.0):
        order = np.argsort(incoming["variance"])
        return super().message(to, incoming, power)[order]


def test_the_law_of_order_catches_rows_that_change_places():
    rng = np.random.default_rng(1)
    incoming = incoming_of(RowsReturnedSorted(), 0, rng, 7, wild=False)
    order_law(GaussianFactor(), incoming, rng)
    with pytest.raises(AssertionError):
        order_law(RowsReturnedSorted(), incoming, rng)


class ScaledByTheWholePlate(Positive):
    """A safe-guard that looks at the largest mean of the plate."""

    def message(self, to, incoming, power=1.0):
        m = super().message(to, incoming, power)
        largest = np.abs(incoming["x"].mean).max()
        return m if to == "y" else Gaussian.from_naturals((m.naturals[0] * (1 + 1e-6 * largest), m.naturals[1]))


class SingleRowsTakeAShortCut(GaussianFactor):
    """Plates of one row forget the noise."""

    def message(self, to, incoming, power=1.0):
        if len(incoming["x"]) == 1:
            return incoming["x" if to == "mean" else "mean"]
        return super().message(to, incoming, power)


@pytest.mark.parametrize("kind", [ScaledByTheWholePlate, SingleRowsTakeAShortCut])
def test_the_law_of_plates_catches_rows_that_look_at_each_other(kind):
    incoming = incoming_of(kind(), 0, np.random.default_rng(1), 7, wild=False)
    plate_law(kind.__mro__[1](), incoming)
    with pytest.raises(AssertionError):
        plate_law(kind(), incoming)


class AbsoluteEpsilon(GaussianFactor):
    """A variance is never less than 1e-6, whatever the units."""

    def message(self, to, incoming, power=1.0):
        return super().message(to, {**incoming, "variance": np.maximum(incoming["variance"], 1e-6)}, power)


class JacobianOfTheScaleForgotten(Scale):
    """log Z as a density of x, not of out: off by log of the constant."""

    def log_z(self, incoming, power=1.0):
        return super().log_z(incoming, power) + np.log(np.abs(incoming["constant"]) + 1e-300)


@pytest.mark.parametrize(
    "kind,units", [(AbsoluteEpsilon, UNITS["gaussian"][0][0]), (JacobianOfTheScaleForgotten, UNITS["scale"][0][1])]
)
def test_the_law_of_units_catches_absolute_numbers_and_lost_jacobians(kind, units: Units):
    rng = np.random.default_rng(1)
    incoming = incoming_of(kind(), 0, rng, 10, wild=False)
    units_law(kind.__mro__[1](), incoming, units, -7)
    with pytest.raises(AssertionError):
        units_law(kind(), incoming, units, -7)


class ConstantLost(GaussianFactor):
    """log Z without the normaliser of the noise."""

    def log_z(self, incoming, power=1.0):
        return super().log_z(incoming, power) + 0.9189


def test_the_law_of_silence_catches_a_lost_constant():
    incoming = incoming_of(ConstantLost(), 0, np.random.default_rng(1), 10, wild=False)
    silence_law(GaussianFactor(), incoming)
    with pytest.raises(AssertionError):
        silence_law(ConstantLost(), incoming)


def test_factors_made_in_tests_are_not_taken_for_factors_of_the_package():
    names = {kind.__name__ for kind in every_factor()}
    assert "Sum" in names and "MeanOffByHalf" not in names
    assert all(issubclass(kind, Factor) for kind in every_factor())
