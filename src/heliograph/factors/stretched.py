"""A Gaussian variable times a positive one, ``out = scale x``, by quadrature over the log of the scale.

Given the scale, x and out are Gaussian; the scale itself has the tilted density ``Gamma(s) N(m_out; s m_x, v_out + s^2 v_x)``.
"""

from __future__ import annotations

from typing import ClassVar, cast

import numpy as np

from heliograph.factors.base import Factor, Incoming
from heliograph.factors.incoming import as_message, as_plate
from heliograph.factors.integrals.stretched import StretchedTilt, mixed_over_scale, tilt_of_scale
from heliograph.factors.line import gaussian_overlap, stretch
from heliograph.families import Family, Gamma, Gaussian

__all__ = ["ScaledGaussian"]


class ScaledGaussian(Factor):
    """``out = scale x`` for a Gamma scale and a Gaussian x.

    Exact where the scale is a point mass, and forwards to a uniform out. Where an incoming message leaves no normalisable
    tilted distribution (an improper scale, x or out beside unknown others, an out of exactly 0) the message sent is uniform.

    >>> scale, x = Gamma(4.0, 2.0), Gaussian(1.0, 0.5)
    >>> sent = ScaledGaussian().message("out", {"scale": scale, "x": x, "out": Gaussian.uniform()})
    >>> float(sent.mean), float(sent.variance)  # 2 * 1, and E s^2 E x^2 - 4 with E s^2 = 5
    (2.0, 3.5)
    """

    name = "scaled_gaussian"
    families: ClassVar = {"scale": (Gamma,), "x": (Gaussian,), "out": (Gaussian,)}
    how: ClassVar = {"scale": "quadrature", "x": "quadrature over scale", "out": "quadrature over scale"}
    exact_given: ClassVar = {"x": ("scale",), "out": ("scale",)}

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        """Belief over cavity, or the exact message where the scale is a point mass."""
        scale, x, out = as_plate(self, incoming, self.ports)
        known, exact = _exact(to, scale, x, out)
        tilt = tilt_of_scale(scale, x, out, ~known)
        if to == "scale":
            return _to_scale(scale, out, tilt)
        target = out if to == "out" else x
        return exact.where(known, mixed_over_scale(tilt, to, scale, x, out).message(target, tilt.valid))

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the integral of all messages with ``scale x`` for out; infinite where there is none."""
        scale, x, out = as_plate(self, incoming, self.ports)
        at = scale.is_point
        log_z = tilt_of_scale(scale, x, out, ~at & ~out.is_uniform).log_z
        log_z = np.where(out.is_uniform & scale.proper & x.proper, 0.0, log_z)
        if np.any(at):
            c = np.where(at, scale.mean, 1.0)
            closed = gaussian_overlap(stretch(x, c), out) - np.where(x.proper, 0.0, np.log(c))
            log_z = np.where(at, closed, log_z)
        return log_z

    def mean_field(self, to: str, incoming: Incoming, beliefs: Incoming) -> Family | None:
        """To x: what comes in at out, with the expected scale and its square; to out: independent moments; none to the scale."""
        scale, x, out = as_plate(self, incoming, self.ports)
        if to == "scale":
            return Gamma.uniform(scale.shape)
        if to == "out":
            return self.message(to, {"scale": scale, "x": x, "out": out.as_uniform()})
        other = as_message(self, beliefs, "scale").broadcast_to(out.shape)
        plain = out.proper & ~out.is_point & other.proper
        m, v = np.where(plain, other.mean, 0.0), np.where(plain, other.variance, 0.0)
        shift, precision = (np.where(plain, n, 0.0) for n in out.naturals)
        sent = Gaussian.from_naturals((shift * m, precision * (m**2 + v)))
        return sent if plain.all() else sent.where(plain, cast(Gaussian, self.message(to, incoming)))


def _to_scale(scale: Gamma, out: Gaussian, tilt: StretchedTilt) -> Gamma:
    soft = tilt.valid & ~out.is_uniform
    belief = Gamma.from_mean_and_log_gap(
        np.where(soft, tilt.mean, 1.0), np.where(soft, tilt.log_gap, 1.0), strict=False
    )
    pairs = zip(belief.naturals, scale.naturals, strict=True)
    return Gamma.from_naturals(tuple(np.where(soft, n - own, 0.0) for n, own in pairs))


def _exact(to: str, scale: Gamma, x: Gaussian, out: Gaussian) -> tuple[np.ndarray, Gaussian]:
    """Where the message to x or out needs no integral, and that message."""
    at = scale.is_point
    c = np.where(at, scale.mean, 1.0)
    if to != "out":
        return at | out.is_uniform, stretch(out, 1.0 / c).where(at, out.as_uniform())
    free = ~at & out.is_uniform & scale.proper & x.proper
    s, w = np.where(free, scale.mean, 1.0), np.where(free, scale.variance, 1.0)
    m, v = np.where(free, x.mean, 0.0), np.where(free, x.variance, 1.0)
    tau = 1.0 / (w * m**2 + (s**2 + w) * v)
    forward = Gaussian.with_points_at(np.isinf(tau), np.zeros(tau.shape), (s * m * tau, tau))  # x is 0, and so is out
    return at | free, stretch(x, c).where(at, forward)
