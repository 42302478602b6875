"""Algebra of vector Gaussian messages that several factors share; the scalar one is in `line.py`.

All in natural parameters (shift h, precision matrix P). Where a sum of precision matrices is singular (neither message
has information about a direction), the pseudo-inverse gives a message without information about it.
"""

from __future__ import annotations

import numpy as np

from heliograph.errors import UnsupportedError
from heliograph.families import MultivariateGaussian
from heliograph.numerics.logarithms import LOG_2PI
from heliograph.numerics.symmetric import not_negative, positive_definite, solve

__all__ = [
    "check_no_partial_points",
    "vector_add_noise",
    "vector_linked_log_z",
    "vector_move",
    "vector_moved_overlap",
    "vector_overlap",
    "vector_stretch",
    "vector_sum",
]


def vector_sum(
    a: MultivariateGaussian, b: MultivariateGaussian, c: float = 1.0, d: float = 1.0
) -> MultivariateGaussian:
    """The message to ``c a + d b`` of two messages, for c and d of 1 or -1; uniform where it diverges."""
    (ha, pa), (hb, pb) = a.naturals, b.naturals
    ha, hb = c * ha, d * hb
    total = pa + pb
    columns = solve(total, np.concatenate(np.broadcast_arrays(pb, pa), axis=-1))
    n = pa.shape[-1]
    share_b, share_a = columns[..., :n], columns[..., n:]  # (pa + pb)^-1 pb and (pa + pb)^-1 pa
    precision = pa @ share_b
    precision = 0.5 * (precision + np.swapaxes(precision, -1, -2))
    shift = np.einsum("...ji,...j->...i", share_b, ha) + np.einsum("...ji,...j->...i", share_a, hb)
    finite = not_negative(total)
    shift, precision = np.where(finite[..., None], shift, 0.0), np.where(finite[..., None, None], precision, 0.0)
    if a.point is None and b.point is None:
        return MultivariateGaussian.from_naturals((shift, precision))
    at_a, at_b = a.is_point[..., None], b.is_point[..., None]
    xa = c * _point_or_zero(a)
    xb = d * _point_or_zero(b)
    shift = np.where(at_a, hb + _times(pb, xa), np.where(at_b, ha + _times(pa, xb), shift))
    precision = np.where(at_a[..., None], pb, np.where(at_b[..., None], pa, precision))
    return _settled(shift, precision, (at_a & at_b)[..., 0], xa + xb)


def vector_linked_log_z(
    a: MultivariateGaussian, b: MultivariateGaussian, out: MultivariateGaussian, sign: float
) -> np.ndarray:
    """``log`` of the integral of ``m_a(a) m_b(b) m_out(a + sign b)``, each message normalised if it can be.

    Two proper messages (or points) make a normalised third, which is then laid over the one left. Otherwise the joint
    of a and b is integrated as it is; infinite where it cannot be, or a point mass meets two improper messages.
    """
    log_z = np.full(np.broadcast_shapes(a.shape, b.shape, out.shape), np.inf)
    for one, x, y, c, d in ((out, a, b, 1.0, sign), (a, out, b, 1.0, -sign), (b, out, a, sign, -sign)):
        here = np.isposinf(log_z) & x.proper & y.proper
        if np.any(here):
            log_z = np.where(here, vector_overlap(vector_sum(x, y, c, d), one), log_z)
    left = (~a.proper).astype(int) + ~b.proper + ~out.proper > 1
    left = left & ~a.is_point & ~b.is_point & ~out.is_point
    if not np.any(left):
        return log_z
    (ha, pa), (hb, pb), (ho, po) = a.naturals, b.naturals, out.naturals
    top, bottom = np.broadcast_arrays(pa + po, sign * po), np.broadcast_arrays(sign * po, pb + po)
    precision = np.concatenate([np.concatenate(top, axis=-1), np.concatenate(bottom, axis=-1)], axis=-2)
    joint = MultivariateGaussian.from_naturals((np.concatenate([ha + ho, hb + sign * ho], axis=-1), precision))
    rest = joint.log_normaliser() - a.log_normaliser() - b.log_normaliser() - out.log_normaliser()
    return np.where(left, np.where(joint.proper, rest, np.inf), log_z)


def vector_add_noise(m: MultivariateGaussian, covariance: np.ndarray) -> MultivariateGaussian:
    """The message to x + N(0, covariance) of the message to x; uniform where it diverges."""
    h, p = m.naturals
    n = p.shape[-1]
    grow = np.eye(n) + covariance @ p  # (1 + V P); its inverse transposed acts on the shift
    known = (p != 0).any(axis=(-2, -1))
    root = np.linalg.cholesky(covariance)
    inner = np.eye(n) + np.swapaxes(root, -1, -2) @ p @ root
    # an overflow is not a divergence: it has no answer
    lost = np.asarray(~np.isfinite(inner).all(axis=(-1, -2)) | ~np.isfinite(grow).all(axis=(-1, -2)))
    finite = positive_definite(inner) & ~lost
    safe = np.where(finite[..., None, None], grow, np.eye(n))
    transposed = np.swapaxes(safe, -1, -2)
    shift = np.linalg.solve(transposed, np.broadcast_to(h[..., None], (*safe.shape[:-1], 1)))[..., 0]
    precision = np.linalg.solve(transposed, np.broadcast_to(p, safe.shape))
    precision = 0.5 * (precision + np.swapaxes(precision, -1, -2))
    keep = finite & known
    shift = np.where(lost[..., None], np.nan, np.where((finite | ~known)[..., None], shift, 0.0))
    precision = np.where(keep[..., None, None], precision, 0.0)
    if m.point is None:
        return MultivariateGaussian.from_naturals((shift, precision))
    inverse = np.linalg.inv(covariance)
    inverse = 0.5 * (inverse + np.swapaxes(inverse, -1, -2))
    at = m.is_point[..., None]
    shift = np.where(at, _times(inverse, _point_or_zero(m)), shift)
    return MultivariateGaussian.from_naturals((shift, np.where(at[..., None], inverse, precision)))


def vector_stretch(m: MultivariateGaussian, constant: np.ndarray) -> MultivariateGaussian:
    """The message to ``constant * x`` for a scalar constant; multiplied by 0, x is the point 0."""
    c = np.asarray(constant, dtype=float)
    zero = np.broadcast_to(c == 0, np.broadcast_shapes(c.shape, m.shape))
    inverse = (1.0 / np.where(c == 0, 1.0, c))[..., None]
    h, p = m.naturals
    return _settled(h * inverse, p * inverse[..., None] ** 2, m.is_point | zero, _point_or_zero(m) * c[..., None])


def vector_move(m: MultivariateGaussian, constant: np.ndarray) -> MultivariateGaussian:
    """The message to ``x + constant`` of the message to x; one vector per element, or one number for all entries."""
    h, p = m.naturals
    constant = constant if np.ndim(constant) > m.ndim else np.asarray(constant)[..., None]
    c = np.broadcast_to(constant, np.broadcast_shapes(np.shape(constant), h.shape))
    return _settled(h + _times(p, c), np.broadcast_to(p, (*c.shape, c.shape[-1])), m.is_point, _point_or_zero(m) + c)


def vector_moved_overlap(m: MultivariateGaussian, constant: np.ndarray, out: MultivariateGaussian) -> np.ndarray:
    """``log`` of the integral of ``m(x) m_out(x + constant)``."""
    return vector_overlap(vector_move(m, constant), out)


def vector_overlap(a: MultivariateGaussian, b: MultivariateGaussian) -> np.ndarray:
    """``log`` of the integral of the product of two messages, each normalised if it can be.

    Two equal point masses give 0 and two different ones -inf; infinite where the integral is.
    """
    (ha, pa), (hb, pb) = a.naturals, b.naturals
    d = pa.shape[-1]
    proper_a, proper_b = a.proper & ~a.is_point, b.proper & ~b.is_point
    # both proper: log N(m_a - m_b; 0, V_a + V_b), with no large terms that cancel
    eye = np.eye(d)
    xa, xb = _point_or_zero(a), _point_or_zero(b)
    at_a, at_b = a.is_point, b.is_point
    va, vb = (
        np.where(proper_a[..., None, None], a.covariance, 0.0),
        np.where(proper_b[..., None, None], b.covariance, 0.0),
    )
    ma, mb = np.where(proper_a[..., None], a.mean, xa), np.where(proper_b[..., None], b.mean, xb)
    both_points = at_a & at_b
    gap = ma - mb
    needed = a.proper & b.proper & ~both_points
    total = MultivariateGaussian.from_naturals((gap, np.where(needed[..., None, None], va + vb, eye)))
    # a sum that rounding has made singular, or that overflowed, has no answer
    known, root = total.cholesky()
    white = _times(total.whitener(), gap)
    log_det = 2 * np.log(np.diagonal(root, axis1=-2, axis2=-1)).sum(axis=-1)
    both = np.where(known, -0.5 * (d * LOG_2PI + log_det + (white**2).sum(axis=-1)), np.nan)
    both = np.where(both_points, np.where((gap == 0).all(axis=-1), 0.0, -np.inf), both)
    # one improper: the product's own normaliser, or the value at the point
    product = MultivariateGaussian.from_naturals((ha + hb, pa + pb))
    soft = proper_a & proper_b & product.proper
    if soft.any():
        # a(c) b(c) / (a b)(c) at the mean c of the product: each determinant is the one of the message's own normaliser, so
        # that a precision which is singular but for rounding cancels against the cavity's in the evidence
        centre = np.where(soft[..., None], product.mean, 0.0)
        plain_a, plain_b = (MultivariateGaussian.from_naturals(m.naturals) for m in (a, b))
        at_centre = plain_a.log_density(centre) + plain_b.log_density(centre) - product.log_density(centre)
        both = np.where(soft & np.isfinite(at_centre), at_centre, both)
    mixed = product.log_normaliser() - a.log_normaliser() - b.log_normaliser()
    mixed = np.where(product.proper, mixed, np.inf)
    mixed = np.where(at_a, _log_form(hb, pb, xa), np.where(at_b, _log_form(ha, pa, xb), mixed))
    mixed = np.where((a.is_uniform & b.proper) | (b.is_uniform & a.proper), 0.0, mixed)
    return np.where(
        a.proper & b.proper, both, np.where(a.proper | b.proper, mixed, np.where(product.proper, mixed, np.inf))
    )


def _log_form(h: np.ndarray, p: np.ndarray, x: np.ndarray) -> np.ndarray:
    return (h * x).sum(axis=-1) - 0.5 * (x * _times(p, x)).sum(axis=-1)


def _times(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    return np.einsum("...ij,...j->...i", matrix, vector)


def _point_or_zero(m: MultivariateGaussian) -> np.ndarray:
    if m.point is None:
        return np.zeros(m.naturals[0].shape)
    return np.where(m.is_point[..., None], m.point, 0.0)


def _settled(shift: np.ndarray, precision: np.ndarray, is_point: np.ndarray, point: np.ndarray) -> MultivariateGaussian:
    if not np.any(is_point):
        return MultivariateGaussian.from_naturals((shift, precision))
    return MultivariateGaussian.with_points(
        (np.broadcast_to(shift, np.shape(point)), precision), np.where(is_point[..., None], point, np.nan)
    )


def check_no_partial_points(factor: str, is_point: np.ndarray) -> None:
    """A vector message is a point in every coordinate or in none."""
    if np.any(is_point.any(axis=-1) & ~is_point.all(axis=-1)):
        raise UnsupportedError(
            f"factor {factor!r} cannot send a vector of which only some entries are fixed; observe all of them, "
            "or none, or give the fixed ones a small variance"
        )
