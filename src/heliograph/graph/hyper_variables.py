"""Variables that can be hyper-parameters: those with a fixed prior of a family whose values are numbers."""

from __future__ import annotations

import numpy as np

from heliograph.errors import ModelError
from heliograph.factors import Prior
from heliograph.families import Beta, Gamma, Gaussian
from heliograph.graph.hyper import Hyper, HyperPrior, beta_prior, gamma_prior, gaussian_prior
from heliograph.graph.records import Node

__all__ = ["hyper_of"]


def hyper_of(node: Node) -> Hyper:
    """A variable with a fixed prior as a hyper-parameter.

    Raises
    ------
    ModelError
        Where it has no such prior, or was observed.
    """
    factor = None if node.maker is None else node.maker.factor
    message = factor.fixed if isinstance(factor, Prior) else None
    if not isinstance(message, (Gaussian, Gamma, Beta)) or node.observed is not None:
        why = "it is observed" if node.observed is not None else "its prior is not a fixed Gaussian, Gamma or Beta"
        raise ModelError(
            f"variable {node.name!r} cannot be integrated over as a hyper-parameter: {why}; "
            "use model.half_normal, model.log_normal or another hyper-parameter in its place"
        )
    return Hyper(node.name, _prior_of(message, node.shape), variable=True)


def _prior_of(message: Gaussian | Gamma | Beta, shape: tuple[int, ...]) -> HyperPrior:
    """The prior on the unconstrained scale; all entries must share one, or there is a prior for each."""
    if isinstance(message, Gaussian):
        pairs, make = (message.mean, message.variance), gaussian_prior
    elif isinstance(message, Gamma):
        pairs, make = (message.shape_parameter, message.rate), gamma_prior
    else:
        pairs, make = (message.a, message.b), beta_prior
    each = [make(float(a), float(b), ()) for a, b in zip(*pairs, strict=True)]

    def value(u: np.ndarray) -> np.ndarray:
        values = [p.value(u[..., k : k + 1]) for k, p in enumerate(each)]
        return np.stack(values, axis=-1).reshape((*u.shape[:-1], *shape))

    def log_density(u: np.ndarray) -> np.ndarray:
        return sum((p.log_density(u[..., k : k + 1]) for k, p in enumerate(each)), np.zeros(u.shape[:-1]))

    centre, width = (np.concatenate([getattr(p, w) for p in each]) for w in ("centre", "width"))
    return HyperPrior(each[0].words, shape, centre, width, value, log_density, each[0].positive)
