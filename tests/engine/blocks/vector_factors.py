"""Factors with one vector port, for tests of sites on vectors: Gaussian noise that looks like any other factor, and softmax."""

from itertools import product
from typing import ClassVar

import numpy as np
from scipy.special import log_softmax, logsumexp
from scipy.stats import multivariate_normal

from heliograph.factors import Factor
from heliograph.families import MultivariateGaussian
from heliograph.graph.language.children import attach_plate
from heliograph.graph.quantity import Quantity


class Noise(Factor):
    """``N(y; z, R)`` with data y and R: exact messages, said anew in every sweep as if they depended on the cavity."""

    name = "noise"
    ports = ("y", "R", "z")
    families: ClassVar = {"z": (MultivariateGaussian,), "y": (), "R": ()}
    data_ranks: ClassVar = {"y": 1, "R": 2}

    def message(self, to, incoming, power=1.0):
        precision = np.linalg.inv(incoming["R"])
        shift = np.einsum("nij,nj->ni", precision, incoming["y"])
        return MultivariateGaussian.from_naturals((shift, precision))

    def log_z(self, incoming, power=1.0):
        z = incoming["z"]
        return np.array(
            [
                multivariate_normal.logpdf(y, m, v + r)
                for y, m, v, r in zip(incoming["y"], z.mean, z.covariance, incoming["R"], strict=True)
            ]
        )


class Softmax(Factor):
    """``P(y | z) = exp(z_y) / sum exp(z)`` for a known label y, by a product rule of Gauss and Hermite over the cavity."""

    name = "softmax"
    ports = ("y", "z")
    families: ClassVar = {"z": (MultivariateGaussian,), "y": ()}
    n_nodes = 14

    def _tilted(self, incoming):
        z, y = incoming["z"], np.asarray(incoming["y"]).astype(int)
        x, w = np.polynomial.hermite_e.hermegauss(self.n_nodes)
        grid = np.array(list(product(x, repeat=z.dimension)))
        log_w = np.array([np.log(c).sum() for c in product(w / w.sum(), repeat=z.dimension)])
        if z.is_point.all():
            points = z.mean[:, None, :]
            return points, np.ones(points.shape[:2]), log_softmax(z.mean, axis=-1)[np.arange(len(y)), y]
        points = z.mean[:, None, :] + grid @ np.swapaxes(np.linalg.cholesky(z.covariance), 1, 2)
        log_p = log_softmax(points, axis=-1)[np.arange(len(y)), :, y] + log_w
        log_z = logsumexp(log_p, axis=1)
        return points, np.exp(log_p - log_z[:, None]), log_z

    def belief(self, to, incoming, power=1.0):
        points, w, _ = self._tilted(incoming)
        mean = np.einsum("nk,nki->ni", w, points)
        gap = points - mean[:, None, :]
        return MultivariateGaussian(mean, np.einsum("nk,nki,nkj->nij", w, gap, gap))

    def log_z(self, incoming, power=1.0):
        return self._tilted(incoming)[2]


def attach(model, factor, z, **data):
    """A plate of the factor on a variable of vectors, with everything else as data."""
    quantity = Quantity(z.node, z.index)
    attach_plate(model.draft, factor.name, factor, {"z": quantity}, {k: np.asarray(v) for k, v in data.items()})
