"""Tuples of incoming messages as a kernel sees them: moments or characteristic functions on one axis per message.

`embed` turns a plate of tuples into an `Embedding`, a record of arrays. Three cases have a meaning of their own:
a point mass has variance 0; a *uniform* message is treated as lying infinitely far from every proper one (its kernel
with them is 0, with another uniform message 1), because its true embedding is 0 and would wipe out the other
messages of the tuple; an *improper* message has no embedding, and `embeddable` says which tuples are free of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from heliograph.errors import ImproperError, ModelError
from heliograph.families import Family
from heliograph.kernels.characteristic import BORDER, characteristic, is_gaussian

__all__ = ["Embedding", "Incoming", "embed", "embeddable"]

Incoming = Sequence[Any] | Mapping[str, Any]
FAR = 1e4  # widths: where an absent message is put; a frequency of 5 then has a phase of 5e4, exact to 1e-11


@dataclass(frozen=True, eq=False)
class Embedding:
    """A plate of n tuples of messages, of c dimensions together."""

    mean: np.ndarray  # (n, c); 0 where absent
    variance: np.ndarray  # (n, c); 0 where absent
    spans: tuple[slice, ...]  # the columns of each message
    covariances: tuple[np.ndarray | None, ...]  # of each message: (n, d, d), or None if its columns are independent
    absent: np.ndarray | None = None  # (n, c) bool where some message is uniform, None if none is
    exact: tuple[Family | None, ...] = ()  # the message itself where its characteristic function is to be used
    axis: str = "identity"

    def __len__(self) -> int:
        return self.mean.shape[0]

    @property
    def n_dimensions(self) -> int:
        """The number of columns c."""
        return self.mean.shape[1]

    def __getitem__(self, rows: Any) -> Embedding:
        """The same messages for some tuples of the plate (a slice or an index array)."""
        return Embedding(
            self.mean[rows],
            self.variance[rows],
            self.spans,
            tuple(None if v is None else v[rows] for v in self.covariances),
            None if self.absent is None else self.absent[rows],
            tuple(None if m is None else m[rows] for m in self.exact),
            self.axis,
        )

    def message(self, k: int) -> Embedding:
        """The tuples of message k alone."""
        span = self.spans[k]
        return Embedding(
            self.mean[:, span],
            self.variance[:, span],
            (slice(0, span.stop - span.start),),
            (self.covariances[k],),
            None if self.absent is None else self.absent[:, span],
            (self.exact[k],) if self.exact else (),
            self.axis,
        )

    def vectors(self) -> np.ndarray:
        """Each tuple as one vector: the means, then the variances, then the covariances inside vector messages."""
        parts = [self.mean, self.variance]
        for v in self.covariances:
            if v is not None:
                parts.append(v[(slice(None), *np.triu_indices(v.shape[-1], 1))])
        return np.concatenate(parts, axis=1)


def embed(incoming: Incoming | Embedding, axis: str = "identity", how: str = "moments") -> Embedding:
    """See a plate of tuples as a kernel does, eq. (6).

    `incoming` is a sequence (or a mapping from port) of message batches of one plate shape ``(n,)``; a plain array
    counts as point masses. With ``axis="chart"`` a Gamma is seen on the log axis and a Beta on the logit axis. With
    ``how="moments"`` every message is its moment-matched Gaussian, as in the authors' program; with ``how="exact"``
    the closed-form characteristic functions are used.

    >>> from heliograph.families import Gaussian
    >>> embed([Gaussian([0.0, 1.0], [1.0, 2.0]), Gaussian([5.0, 5.0], 3.0)]).variance
    array([[1., 3.],
           [2., 3.]])
    """
    if isinstance(incoming, Embedding):
        return incoming
    if axis not in ("identity", "chart"):
        raise ModelError(f"the axis of an embedding is 'identity' or 'chart', not {axis!r}")
    if how not in ("moments", "exact"):
        raise ModelError(f"an embedding is made from 'moments' or 'exact', not {how!r}")
    messages = list(incoming.values()) if isinstance(incoming, Mapping) else list(incoming)
    names = list(incoming) if isinstance(incoming, Mapping) else [f"number {k}" for k in range(len(messages))]
    means, variances, absents, covariances, exact, spans = [], [], [], [], [], []
    width = 0
    for name, message in zip(names, messages, strict=True):
        mean, variance, covariance, absent = _moments(name, message, axis)
        d = mean.shape[1]
        spans.append(slice(width, width + d))
        width += d
        means.append(mean)
        variances.append(variance)
        absents.append(absent)
        covariances.append(covariance)
        keep_law = how == "exact" and isinstance(message, Family) and not is_gaussian(message)
        if keep_law:
            characteristic(message[:1], np.zeros(1), axis)  # says now, not later, that a family has no closed form
        exact.append(message if keep_law else None)
    if len({m.shape[0] for m in means}) > 1:
        raise ModelError(f"the messages of a plate of tuples differ in length: {[m.shape[0] for m in means]}")
    absent = np.concatenate(absents, axis=1)
    return Embedding(
        np.concatenate(means, axis=1),
        np.concatenate(variances, axis=1),
        tuple(spans),
        tuple(covariances),
        absent if absent.any() else None,
        tuple(exact),
        axis,
    )


def embeddable(incoming: Incoming) -> np.ndarray:
    """Which tuples of the plate have an embedding: every message is proper, a point mass or uniform."""
    messages = list(incoming.values()) if isinstance(incoming, Mapping) else list(incoming)
    fine = [np.asarray(m.proper | m.is_uniform) for m in messages if isinstance(m, Family)]
    fine += [
        np.isfinite(np.asarray(m, float)).reshape(len(m), -1).all(1) for m in messages if not isinstance(m, Family)
    ]
    return np.logical_and.reduce(fine)


def _moments(name: str, message: Any, axis: str) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray]:
    """Mean and variance ``(n, d)``, covariance ``(n, d, d)`` of a vector message, and where it is absent."""
    if not isinstance(message, Family):
        value = np.asarray(message, dtype=float)
        if not np.isfinite(value).all():
            raise ModelError(f"the data at port {name} hold values that are not finite; leave those tuples out")
        value = value[:, None] if value.ndim == 1 else value.reshape(value.shape[0], -1)
        return value, np.zeros_like(value), None, np.zeros(value.shape, dtype=bool)
    if message.ndim != 1:
        raise ModelError(
            f"the message at port {name} has plate shape {message.shape}; an embedding needs one axis (n,)"
        )
    uniform = np.asarray(message.is_uniform & ~message.proper)  # Beta(1, 1) is uniform and a distribution: embedded
    if not np.all(message.proper | uniform):
        n_bad = int(np.sum(~(message.proper | uniform)))
        raise ImproperError(
            f"{n_bad} of {len(message)} {type(message).__name__} messages at port {name} are improper and have no "
            "embedding; leave those tuples out (see heliograph.kernels.embeddable) and ask the oracle for them"
        )
    if axis == "chart":
        mean, variance = (np.asarray(a, dtype=float) for a in message.chart_moments())
        mean = np.clip(mean, -BORDER, BORDER)
    else:
        mean, variance = np.asarray(message.mean, dtype=float), np.asarray(message.variance, dtype=float)
    covariance = None
    if mean.ndim == 1:
        mean, variance = mean[:, None], variance[:, None]
    elif hasattr(message, "covariance"):
        covariance = np.asarray(message.covariance, dtype=float)  # type: ignore[attr-defined]
    elif variance.ndim == 3:
        covariance, variance = variance, np.diagonal(variance, axis1=1, axis2=2)
    absent = np.broadcast_to(uniform[:, None], mean.shape)
    if uniform.any():
        mean, variance = np.where(absent, 0.0, mean), np.where(absent, 0.0, variance)
        covariance = None if covariance is None else np.where(uniform[:, None, None], 0.0, covariance)
    return mean, variance, covariance, absent
