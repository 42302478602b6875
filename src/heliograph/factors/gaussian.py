"""Gaussian noise with a fixed variance or covariance: ``x ~ N(mean, variance)``, closed form.

A prior with fixed parameters is this factor with the mean a plain array.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from heliograph.factors.base import Factor, Incoming
from heliograph.factors.incoming import as_data, as_message
from heliograph.factors.line import add_noise, add_noise_log_scale, gaussian_overlap
from heliograph.factors.plane import vector_add_noise, vector_overlap
from heliograph.families import Gaussian, MultivariateGaussian
from heliograph.numerics.logarithms import LOG_2PI

__all__ = ["GaussianFactor", "MultivariateGaussianFactor"]


class GaussianFactor(Factor):
    """``N(x; mean, variance)`` with the variance given; a variance of 0 is hard equality."""

    name = "gaussian"
    families: ClassVar = {"mean": (Gaussian,), "variance": (), "x": (Gaussian,)}
    how: ClassVar = {"mean": "closed form", "x": "closed form"}
    ignores_own = ("mean", "x")
    powers = True

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Gaussian:
        """The other end's message with the variance added; uniform where it diverges."""
        variance = as_data(self, incoming, "variance")
        other = as_message(self, incoming, "x" if to == "mean" else "mean")
        # N^power is N with variance / power, up to a constant
        return add_noise(other, variance / power)

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log N(m_x; m_mean, v_x + v_mean + variance)``."""
        variance = as_data(self, incoming, "variance") / power
        mean, x = as_message(self, incoming, "mean"), as_message(self, incoming, "x")
        log_z = gaussian_overlap(add_noise(mean, variance), x) + add_noise_log_scale(mean, variance)
        if power == 1.0:
            return np.asarray(log_z)
        spread = LOG_2PI + np.log(np.where(variance > 0, variance * power, 1.0))
        return np.asarray(log_z + 0.5 * (1 - power) * spread - 0.5 * np.log(power))


class MultivariateGaussianFactor(Factor):
    """``N(x; mean, covariance)`` of vectors, with a positive definite covariance given."""

    name = "multivariate_gaussian"
    families: ClassVar = {"mean": (MultivariateGaussian,), "covariance": (), "x": (MultivariateGaussian,)}
    data_ranks: ClassVar = {"covariance": 2}
    how: ClassVar = {"mean": "closed form", "x": "closed form"}
    ignores_own = ("mean", "x")
    powers = True

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> MultivariateGaussian:
        """The other end's message with the covariance added; uniform where it diverges."""
        covariance = as_data(self, incoming, "covariance") / power
        return vector_add_noise(as_message(self, incoming, "x" if to == "mean" else "mean"), covariance)

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log N(m_x; m_mean, V_x + V_mean + covariance)``; infinite if an end is improper and not uniform."""
        covariance = as_data(self, incoming, "covariance")
        mean, x = as_message(self, incoming, "mean"), as_message(self, incoming, "x")
        forward = vector_overlap(vector_add_noise(mean, covariance / power), x)
        log_z = np.where(mean.proper | mean.is_uniform, forward, np.inf)
        if power == 1.0:
            return log_z
        d = covariance.shape[-1]
        log_det = d * LOG_2PI + np.linalg.slogdet(covariance)[1]
        return log_z + 0.5 * (1 - power) * log_det - 0.5 * d * np.log(power)
