"""The product of two Gaussian variables, ``out = a b``, by quadrature over one of them.

Given b, a is Gaussian and so is out; b itself has the tilted density
``N(b) N(m_out; m_a b, v_out + v_a b^2)``, with up to three modes. Its stationary points are the roots of a quintic.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from heliograph.errors import ContradictionError
from heliograph.factors.base import Factor, Incoming
from heliograph.factors.incoming import as_message, as_plate
from heliograph.factors.integrals.product import mixed_over_product, tilt_of_product
from heliograph.factors.line import gaussian_overlap, stretch
from heliograph.families import Gaussian

__all__ = ["Product"]


class Product(Factor):
    """``out = a b``.

    Exact where a or b is a point mass, and forwards to a uniform out. Where an incoming message leaves no normalisable
    tilted distribution the message sent is uniform: an improper (or uniform) a or b beside an unknown other one, an
    improper out, and an out known to be exactly 0, whose density under two unknown factors is infinite.
    """

    name = "product"
    families: ClassVar = {"a": (Gaussian,), "b": (Gaussian,), "out": (Gaussian,)}
    how: ClassVar = {"a": "quadrature over b", "b": "quadrature over a", "out": "quadrature over b"}
    exact_given: ClassVar = {"a": ("b",), "b": ("a",), "out": ("a", "b")}

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Gaussian:
        """Belief over cavity, or the exact message where a or b is a point mass."""
        a, b, out = as_plate(self, incoming, self.ports)
        if to == "b":
            a, b = b, a  # the factor is symmetric: the target is a from here on
        target = out if to == "out" else a
        known, exact = _exact(to, a, b, out)
        if np.all(known):
            return exact
        tilt = tilt_of_product(a, b, out, ~known)
        sent = mixed_over_product(tilt, to, a, b, out).message(target, tilt.valid)
        return exact.where(known, sent)

    def belief(self, to: str, incoming: Incoming, power: float = 1.0) -> Gaussian:
        """Mean and variance of the tilted distribution."""
        a, b, out = as_plate(self, incoming, self.ports)
        if to == "b":
            a, b = b, a
        target = out if to == "out" else a
        known, exact = _exact(to, a, b, out)
        if np.all(known):
            return exact * target
        tilt = tilt_of_product(a, b, out, ~known)
        belief = mixed_over_product(tilt, to, a, b, out).belief(target, tilt.valid)
        return belief if not np.any(known) else (exact * target).where(known, belief)

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the integral of ``m_a(a) m_b(b) m_out(a b)``; infinite where there is none."""
        a, b, out = as_plate(self, incoming, self.ports)
        soft = ~a.is_point & ~b.is_point
        log_z = np.where(out.is_uniform & a.proper & b.proper, 0.0, np.inf)
        if np.any(soft):
            log_z = np.where(soft & ~out.is_uniform, tilt_of_product(a, b, out, soft).log_z, log_z)
        for fixed, free in ((b, a), (a, b)):
            at = fixed.is_point
            if np.any(at):
                c = np.where(at, fixed.mean, 1.0)
                forward = gaussian_overlap(stretch(free, c), out)
                jacobian = np.where(free.proper, 0.0, -np.log(np.abs(np.where(c == 0, 1.0, c))))
                log_z = np.where(at, np.where((c == 0) & ~free.proper, np.inf, forward + jacobian), log_z)
        return log_z

    def mean_field(self, to: str, incoming: Incoming, beliefs: Incoming) -> Gaussian:
        """To a: what comes in at out, with the expected ``b`` and ``b^2``; to out: the moments of independent a and b."""
        a, b, out = as_plate(self, incoming, self.ports)
        if to == "out":
            return self.message(to, {"a": a, "b": b, "out": out.as_uniform()})
        other = as_message(self, beliefs, "b" if to == "a" else "a").broadcast_to(out.shape)
        plain = out.proper & ~out.is_point & other.proper
        m, v = np.where(plain, other.mean, 0.0), np.where(plain, other.variance, 0.0)
        shift, precision = (np.where(plain, n, 0.0) for n in out.naturals)
        sent = Gaussian.from_naturals((shift * m, precision * (m**2 + v)))
        if plain.all():
            return sent
        return sent.where(plain, self.message(to, incoming))


def _exact(to: str, a: Gaussian, b: Gaussian, out: Gaussian) -> tuple[np.ndarray, Gaussian]:
    """Where the message needs no integral, and that message."""
    if to != "out":
        # the target is a: a fixed b pulls the message to out back, and a uniform out says nothing
        at = b.is_point
        c = np.where(at, b.mean, 1.0)
        zero = c == 0
        if np.any(at & zero & out.is_point & (out.mean != 0)):
            raise ContradictionError("factor 'product': one side is fixed at 0 but their product is not 0")
        shift, precision = out.naturals[0] * c, out.naturals[1] * c**2
        point = np.full(at.shape, np.nan)
        if out.point is not None:
            point = np.where(at & ~zero, out.point / np.where(zero, 1.0, c), np.nan)
        naturals = np.where(at, shift, 0.0), np.where(at, precision, 0.0)
        return at | out.is_uniform, Gaussian.with_points(naturals, point)
    one, other = _order(a, b)
    at = one.is_point
    exact = stretch(other, np.where(at, one.mean, 1.0))
    # out uniform: mean and variance of the product of two independent Gaussians
    free = ~at & out.is_uniform & a.proper & b.proper
    ma, va = np.where(free, a.mean, 0.0), np.where(free, a.variance, 1.0)
    mb, vb = np.where(free, b.mean, 0.0), np.where(free, b.variance, 1.0)
    tau = 1.0 / (ma**2 * vb + mb**2 * va + va * vb)
    forward = Gaussian.from_naturals((ma * mb * tau, tau))
    return at | free, exact.where(at, forward)


def _order(a: Gaussian, b: Gaussian) -> tuple[Gaussian, Gaussian]:
    """The two messages with a point mass, if there is one, first."""
    swap = b.is_point & ~a.is_point
    return b.where(swap, a), a.where(swap, b)
