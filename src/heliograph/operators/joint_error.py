"""What the errors of many messages do together to a posterior, in nats.

A message whose belief is wrong by ``kl_i`` moves the posterior by as much if it is the only one. Errors of n messages that
reach the same unknowns add between two limits: independent ones to ``sum kl``, ones that all pull the same way to
``sum kl_i / h_i``, where h_i (the leverage) is the share of the belief's information that the message itself brings. That is
a bound for Gaussian beliefs to first order, since the leverages of rows that share d unknowns sum to d at most
(docs/decisions/0204). The errors of one regression do pull the same way.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from heliograph.families import Gaussian, MultivariateGaussian
from heliograph.operators.protocol import Setting

__all__ = ["RARE", "joint_error", "leverage", "shared_unknowns"]

RARE = 2.71  # times its mean a squared normal error is below in 90 % of cases; the sum below is near its limit besides


def leverage(message: Any, cavity: Any) -> np.ndarray | None:
    """The share of each belief's information that its message brings, ``(n,)``; None for families of labels.

    For a vector it is the mean over its directions. Improper messages count by their size.

    >>> leverage(Gaussian([0.0], 1.0), Gaussian([0.0], 3.0))
    array([0.75])
    """
    with np.errstate(all="ignore"):
        if isinstance(message, Gaussian):
            tau, before = message.naturals[1], cavity.naturals[1]
            share = np.abs(tau) / np.maximum(np.abs(tau + before), np.abs(tau))
        elif isinstance(message, MultivariateGaussian):
            tau, before = message.naturals[1], cavity.naturals[1]
            total = np.trace(np.linalg.pinv(tau + before) @ tau, axis1=-2, axis2=-1)
            share = np.abs(total) / tau.shape[-1]
        elif hasattr(message, "chart_moments"):
            share = np.abs(1.0 - (message * cavity).chart_moments()[1] / cavity.chart_moments()[1])
        else:
            return None
    return np.where(np.isfinite(share), np.minimum(share, 1.0), 1.0)


def shared_unknowns(share: np.ndarray | None, n: int, setting: Setting) -> float:
    """How many unknowns n messages share: the sum of their leverages, as far as the graph has so many.

    One message counts for at least one part in the number of messages that are connected with it at all.
    """
    most = setting.share * n
    if share is None:
        return max(most, n / setting.together)
    return min(max(float(share.sum()), n / setting.together), max(most, 1e-300))


def joint_error(kl: np.ndarray, unknowns: float | None = None) -> float:
    """What n predicted messages, each expected to be wrong by its `kl`, may do to a posterior, in nats.

    `unknowns` is how many they share: n where each has its own (the default), 1 where all speak of one number.

    >>> round(joint_error(np.full(100, 1e-6)), 6), round(joint_error(np.full(100, 1e-6), 5.0), 6)
    (0.000271, 0.00542)
    """
    d = len(kl) if unknowns is None else unknowns
    return RARE * max(float(kl.sum()), float(np.sqrt(kl).sum()) ** 2 / max(d, 1e-300))
