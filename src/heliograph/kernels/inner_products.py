"""Inner products of mean embeddings, ``E k(x - y)`` for x of one message and y of another, eq. (5).

Everything the exact kernels need: for Gaussian embeddings in closed form, for exact ones by the trapezoid rule over
frequencies. k is the Gaussian kernel of variance `width2` per dimension, so the inner product of a whole tuple is the
product over its messages.
"""

from __future__ import annotations

import numpy as np

from heliograph.kernels.characteristic import characteristic, reach
from heliograph.kernels.embeddings import Embedding
from heliograph.numerics.chunks import chunks

__all__ = ["message_products", "message_squared_norms", "squared_distances", "tuple_products", "tuple_squared_norms"]

_BLOCK = 4_000_000  # numbers held at once


def message_products(a: Embedding, b: Embedding, width2: np.ndarray) -> list[np.ndarray]:
    """``<mu_r, mu_s>`` of each message of the tuple, a list of ``(n, m)``; in closed form for Gaussian embeddings."""
    return [_product(a, b, np.asarray(width2, dtype=float), k) for k in range(len(a.spans))]


def message_squared_norms(a: Embedding, width2: np.ndarray) -> list[np.ndarray]:
    """``<mu_r, mu_r>`` of each message of the tuple, a list of ``(n,)``."""
    width2 = np.asarray(width2, dtype=float)
    out = []
    for k, span in enumerate(a.spans):
        s2 = width2[span]
        if a.exact and a.exact[k] is not None:
            weight, phi, _ = _transforms(a, a, s2[0], k)
            norm = (np.abs(phi) ** 2) @ weight
        elif a.covariances[k] is not None:
            v = np.asarray(a.covariances[k])
            norm = np.exp(0.5 * (np.log(s2).sum() - np.linalg.slogdet(np.diag(s2) + 2 * v)[1]))
        else:
            norm = np.prod(np.sqrt(s2 / (s2 + 2 * a.variance[:, span])), axis=1)
        if a.absent is not None:
            norm = np.where(a.absent[:, span.start], 1.0, norm)
        out.append(norm)
    return out


def tuple_products(a: Embedding, b: Embedding, width2: np.ndarray) -> np.ndarray:
    """``<mu_r, mu_s>`` of whole tuples, eq. (6): the product over messages, since k is one over dimensions."""
    return np.prod(message_products(a, b, width2), axis=0)


def tuple_squared_norms(a: Embedding, width2: np.ndarray) -> np.ndarray:
    """``<mu_r, mu_r>`` of whole tuples."""
    return np.prod(message_squared_norms(a, width2), axis=0)


def squared_distances(norm_a: np.ndarray, norm_b: np.ndarray, products: np.ndarray) -> np.ndarray:
    """``||mu_r - mu_s||^2``, at least 0."""
    return np.maximum(norm_a[:, None] + norm_b[None, :] - 2 * products, 0.0)  # rounding may leave -1e-16


def _product(a: Embedding, b: Embedding, width2: np.ndarray, k: int) -> np.ndarray:
    span = a.spans[k]
    s2 = width2[span]
    if a.exact and b.exact and (a.exact[k] is not None or b.exact[k] is not None):
        weight, phi_a, phi_b = _transforms(a, b, s2[0], k)
        out = np.real((phi_a * weight) @ phi_b.conj().T)
    elif a.covariances[k] is not None or b.covariances[k] is not None:
        out = _full(a, b, s2, k)
    else:
        out = np.ones((len(a), len(b)))
        for j in range(span.start, span.stop):
            total = width2[j] + a.variance[:, j, None] + b.variance[None, :, j]
            gap = a.mean[:, j, None] - b.mean[None, :, j]
            out *= np.sqrt(width2[j] / total) * np.exp(-0.5 * gap**2 / total)
    if a.absent is not None or b.absent is not None:
        gone_a = np.zeros(len(a), bool) if a.absent is None else a.absent[:, span.start]
        gone_b = np.zeros(len(b), bool) if b.absent is None else b.absent[:, span.start]
        both, one = gone_a[:, None] & gone_b[None, :], gone_a[:, None] ^ gone_b[None, :]
        out = np.where(both, 1.0, np.where(one, 0.0, out))
    return out


def _full(a: Embedding, b: Embedding, s2: np.ndarray, k: int) -> np.ndarray:
    """The closed form for messages with full covariances, a few rows at a time."""
    span, d = a.spans[k], s2.size
    va, vb = _covariance(a, k), _covariance(b, k)
    out = np.empty((len(a), len(b)))
    for rows in chunks(len(a), max(1, _BLOCK // max(1, len(b) * d * d))):
        total = va[rows, None] + vb[None, :] + np.diag(s2)
        gap = a.mean[rows, None, span] - b.mean[None, :, span]
        root = np.linalg.cholesky(total)
        half = np.linalg.solve(root, gap[..., None])[..., 0]
        log_det = 2 * np.log(np.diagonal(root, axis1=-2, axis2=-1)).sum(-1)
        out[rows] = np.exp(0.5 * (np.log(s2).sum() - log_det - (half**2).sum(-1)))
    return out


def _covariance(e: Embedding, k: int) -> np.ndarray:
    v = e.covariances[k]
    if v is not None:
        return v
    variance = e.variance[:, e.spans[k]]
    return variance[:, :, None] * np.eye(variance.shape[1])


def _transforms(a: Embedding, b: Embedding, s2: float, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Trapezoid weights over frequencies and both characteristic functions there.

    ``E k(x - y)`` is the integral of N(w; 0, 1/s2) phi_r(w) conj(phi_s(w)). A step h replaces k by its sum over
    shifts of 2 pi / h, so that must exceed every x - y by the nine widths at which k is 1e-18.
    """
    span = a.spans[k]
    low, high = np.inf, -np.inf
    for e in (a, b):
        m, v = e.mean[:, span.start], e.variance[:, span.start]
        lo, hi = (
            reach(e.exact[k], m, v, e.axis)  # type: ignore[arg-type]
            if e.exact[k] is not None
            else (float(np.min(m - 9 * np.sqrt(v))), float(np.max(m + 9 * np.sqrt(v))))
        )
        low, high = min(low, lo), max(high, hi)
    step = 2 * np.pi / (high - low + 9 * np.sqrt(s2))
    t = np.arange(0.0, 9.0 / np.sqrt(s2) + step, step)
    weight = step * np.sqrt(s2 / (2 * np.pi)) * np.exp(-0.5 * s2 * t**2)
    weight[1:] *= 2  # the negative half, whose real part is the same
    phi_a = message_characteristic(a, k, t)
    return weight, phi_a, phi_a if a is b else message_characteristic(b, k, t)


def message_characteristic(e: Embedding, k: int, t: np.ndarray) -> np.ndarray:
    """``E exp(i t x)`` of the one-dimensional message k at frequencies t, ``(n, D)``."""
    message = e.exact[k] if e.exact else None
    if message is not None:
        return characteristic(message, t, e.axis)
    j = e.spans[k].start
    return np.exp(1j * np.outer(e.mean[:, j], t) - 0.5 * np.outer(e.variance[:, j], t**2))
