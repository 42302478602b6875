"""Functions of positive variables with Gamma messages: a fixed multiple, closed form, and the logarithm, by quadrature."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from heliograph.factors.base import Factor, Incoming
from heliograph.factors.exponential import Exp
from heliograph.factors.incoming import as_data, as_message
from heliograph.factors.prior import log_overlap
from heliograph.families import Family, Gamma, Gaussian

__all__ = ["GammaScale", "Log"]


class GammaScale(Factor):
    """``out = scale * x`` for a fixed positive scale per element: an exposure times a rate.

    >>> GammaScale().message("out", {"x": Gamma(3.0, 2.0), "scale": 4.0, "out": Gamma(1.0, 1.0)})
    Gamma(shape 3., rate 0.5)
    """

    name = "gamma_scale"
    families: ClassVar = {"x": (Gamma,), "scale": (), "out": (Gamma,)}
    how: ClassVar = {"x": "closed form", "out": "closed form"}
    ignores_own = ("x", "out")

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Gamma:
        """The other end's message in units of this end."""
        scale = as_data(self, incoming, "scale")
        other = as_message(self, incoming, "x" if to == "out" else "out")
        return _stretched(other, scale if to == "out" else 1.0 / scale)

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the integral of ``m_x(x) m_out(scale x)``."""
        x, out, scale = (
            as_message(self, incoming, "x"),
            as_message(self, incoming, "out"),
            as_data(self, incoming, "scale"),
        )
        unit = np.log(scale)
        # a density in out is smaller by the scale as one in x; what is not normalised is read as it stands
        jacobian = np.where(out.proper | out.is_point, -unit, out.naturals[0] * unit)
        return log_overlap(x, _stretched(out, 1.0 / scale)) + jacobian


def _stretched(m: Gamma, c: np.ndarray) -> Gamma:
    """The message of c times a variable."""
    point = None if m.point is None else m.point * c
    return Gamma.from_naturals((np.broadcast_to(m.naturals[0], np.shape(m.naturals[1] / c)), m.naturals[1] / c), point)


class Log(Factor):
    """``out = log(x)``: a Gaussian message on the log of a positive variable with Gamma messages.

    It is `Exp` seen from the other side: as a density of ``out`` it has the Jacobian ``exp(out)``, one more power of x.

    >>> from scipy.special import digamma, polygamma
    >>> m = Log().message("out", {"x": Gamma(3.0, 2.0), "out": Gaussian.uniform()})
    >>> bool(np.isclose(m.mean, digamma(3.0) - np.log(2.0))), bool(np.isclose(m.variance, polygamma(1, 3.0)))
    (True, True)
    """

    name = "log"
    families: ClassVar = {"x": (Gamma,), "out": (Gaussian,)}
    how: ClassVar = {"x": "quadrature", "out": "quadrature"}

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        turned, x = self._turned(incoming), as_message(self, incoming, "x")
        if to == "out":
            return Exp().message("z", turned)
        belief = Exp().belief("out", turned)
        message = turned["out"]
        nothing = (
            ~belief.is_point & (belief.naturals[0] == message.naturals[0]) & (belief.naturals[1] == message.naturals[1])
        )
        return Gamma.uniform(x.shape).where(nothing, belief / x)

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the integral of both messages at ``out = log(x)``; infinite where it diverges."""
        turned, x = self._turned(incoming), as_message(self, incoming, "x")
        more = turned["out"]
        soft = x.proper & ~x.is_point
        mean = np.log(np.where(soft, x.naturals[0] + 1.0, 1.0)) - np.log(np.where(soft, x.naturals[1], 1.0))
        log_z = Exp().log_z(turned) + np.where(soft, mean, np.where(x.is_point, 0.0, more.log_normaliser()))
        if x.point is None:
            return log_z
        # a delta in x: the message's density at log x, without a Jacobian
        at = x.is_point & (x.point > 0)
        value = as_message(self, incoming, "out").log_density(np.log(np.where(at, x.point, 1.0)))
        return np.where(x.is_point, np.where(at, value, -np.inf), log_z)

    def _turned(self, incoming: Incoming) -> dict[str, Any]:
        """The messages as `Exp` reads them, the one at x times x."""
        out, x = as_message(self, incoming, "out"), as_message(self, incoming, "x")
        power = x.naturals[0] + np.where(x.is_point, 0.0, 1.0)
        return {"z": out, "out": Gamma.from_naturals((power, x.naturals[1]), x.point)}
