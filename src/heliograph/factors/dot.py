"""Inner products with fixed vectors: ``out = x'w``, closed form, row by row or for a whole matrix at once.

The shared vector of ``X @ w`` gets one summed message, ``X' diag(tau) X``, never n rank-one messages. `dot_forward`
and `dot_backward` do that in chunks of rows that stay in cache, for dense and sparse X.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import scipy.sparse

from heliograph.errors import UnsupportedError
from heliograph.factors.base import Factor, Incoming
from heliograph.factors.incoming import as_data, as_message
from heliograph.factors.line import gaussian_overlap
from heliograph.families import Family, Gaussian, MultivariateGaussian

__all__ = ["Dot", "dot_backward", "dot_forward"]

_COLUMNS = 8  # of x, from which on one triangle of a symmetric product is computed from roots of precisions
_CHUNK_BYTES = 2**18  # one chunk of rows and one temporary of its size fit in a second-level cache


class Dot(Factor):
    """``out = x'w`` with x given, one w per element of the plate; `dot_forward` and `dot_backward` are the same with one w for all.

    A w that is not proper says nothing to out unless x is 0. An exactly known out would give w a covariance without
    an inverse, which a MultivariateGaussian cannot hold: that raises; observe out through a small variance.
    """

    name = "dot"
    families: ClassVar = {"w": (MultivariateGaussian,), "x": (), "out": (Gaussian,)}
    data_ranks: ClassVar = {"x": 1}
    how: ClassVar = {"w": "closed form", "out": "closed form"}
    ignores_own = ("w", "out")

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        """To out: N(x'm, x'Vx). To w: the rank-one message of precision ``tau x x'``."""
        x = as_data(self, incoming, "x")
        if to == "out":
            return _project(as_message(self, incoming, "w"), x)
        out = as_message(self, incoming, "out")
        if np.any(out.is_point & (x != 0).any(axis=-1)):
            raise UnsupportedError(
                "factor 'dot' cannot send w an exactly known x'w; observe it through a Gaussian with a small variance"
            )
        shift, precision = out.naturals
        return MultivariateGaussian.from_naturals(
            (shift[..., None] * x, precision[..., None, None] * x[..., :, None] * x[..., None, :])
        )

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log N(m_out; x'm, v_out + x'Vx)``."""
        x = as_data(self, incoming, "x")
        w, out = as_message(self, incoming, "w"), as_message(self, incoming, "out")
        log_z = gaussian_overlap(_project(w, x), out)
        if np.all(w.proper):
            return log_z
        # an improper w that out makes proper
        (h, p), (s, t) = w.naturals, out.naturals
        tilted = MultivariateGaussian.from_naturals(
            (h + s[..., None] * x, p + t[..., None, None] * x[..., :, None] * x[..., None, :])
        )
        rest = np.where(tilted.proper, tilted.log_normaliser() - out.log_normaliser(), np.inf)
        return np.where(w.proper, log_z, rest)


def _project(w: MultivariateGaussian, x: np.ndarray) -> Gaussian:
    """The marginal of x'w; uniform where w is not proper, the point 0 where x is 0."""
    soft = w.proper & ~w.is_point
    zero = (x == 0).all(axis=-1)
    mean = np.where(w.proper[..., None], w.mean, 0.0)
    covariance = np.where(soft[..., None, None], w.covariance, 0.0)
    m = (x * mean).sum(axis=-1)
    v = np.einsum("...i,...ij,...j->...", x, covariance, x)
    is_point = zero | w.is_point
    lost = ~soft & ~is_point
    tau = np.where(lost | is_point, 0.0, 1.0 / np.where(lost | is_point, 1.0, v))
    if not np.any(is_point):
        return Gaussian.from_naturals((tau * m, tau))
    return Gaussian.from_naturals((tau * m, tau), np.where(is_point, m, np.nan))


def dot_forward(
    x: Any, mean: np.ndarray, covariance: np.ndarray | None = None, root: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Means ``x_i'm`` and variances ``x_i'V x_i`` of all rows, each of shape (n,).

    The variance is the squared length of ``x_i'L`` with ``V = L L'``, so it is never negative; give `root` = L
    where it is known. Temporary memory is one chunk of rows, whatever n.
    """
    x = _as_rows(x)
    n, d = x.shape
    root = _root(np.asarray(covariance, dtype=float)) if root is None else root
    if isinstance(x, np.ndarray) and n <= _rows_per_chunk(d):  # one chunk, without the bookkeeping of many
        white = x @ root
        return x @ mean, np.einsum("ij,ij->i", white, white)
    both = np.column_stack([root, mean])  # one product gives the whitened row and its mean
    means, variances = np.empty(n), np.empty(n)
    work = np.empty((_rows_per_chunk(d), both.shape[1]))
    for rows, part in _chunks(x):
        if scipy.sparse.issparse(part):
            white = part @ both
        else:
            white = np.matmul(part, both, out=work[: part.shape[0]])
        means[rows] = white[:, -1]
        body = white[:, :-1]
        np.einsum("ij,ij->i", body, body, out=variances[rows])
    return means, variances


def dot_backward(x: Any, shift: np.ndarray, precision: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The summed message to w: ``X' shift`` of shape (d,) and ``X' diag(precision) X`` of shape (d, d).

    Precisions may be negative. Temporary memory is one chunk of rows, whatever n.

    >>> dot_backward([[1.0, 0.0], [1.0, 1.0]], np.array([1.0, 1.0]), np.array([0.0, 2.0]))
    (array([2., 1.]), array([[2., 2.],
           [2., 2.]]))
    """
    x = _as_rows(x)
    d = x.shape[1]
    shift, precision = np.asarray(shift, dtype=float), np.asarray(precision, dtype=float)
    # a few columns are not worth a root, whose square is not the number itself to the last bit
    proper = d >= _COLUMNS and bool(precision.min(initial=0.0) >= 0.0)
    if isinstance(x, np.ndarray) and len(x) <= _rows_per_chunk(d):
        if proper:  # NumPy sees the transpose and computes one triangle only
            half = x * np.sqrt(precision)[:, None]
            return shift @ x, half.T @ half
        total = (x * precision[:, None]).T @ x
        return shift @ x, 0.5 * (total + total.T)
    total_shift, total = np.zeros(d), np.zeros((d, d))
    root = np.sqrt(precision) if proper else precision
    work = np.empty((_rows_per_chunk(d), d))
    for rows, part in _chunks(x):
        total_shift += part.T @ shift[rows]
        if scipy.sparse.issparse(part):
            scaled = scipy.sparse.csr_array(
                (part.data * np.repeat(precision[rows], np.diff(part.indptr)), part.indices, part.indptr),
                shape=part.shape,
            )
            gram = (part.T @ scaled).tocoo()
            total[gram.coords[0], gram.coords[1]] += gram.data  # the entries of a product are distinct
        else:
            scaled = np.multiply(part, root[rows, None], out=work[: part.shape[0]])
            total += (scaled if proper else part).T @ scaled
    return total_shift, 0.5 * (total + total.T)


def _as_rows(x: Any) -> Any:
    if type(x) is np.ndarray and x.ndim == 2 and x.dtype == np.float64:
        return x
    if scipy.sparse.issparse(x):
        return scipy.sparse.csr_array(x)  # shares the data of what is CSR already
    return np.atleast_2d(np.asarray(x, dtype=float))


def _rows_per_chunk(d: int) -> int:
    return max(64, _CHUNK_BYTES // (8 * max(d, 1)))


def _chunks(x: Any) -> Iterator[tuple[slice, Any]]:
    """Row slices and their rows: views of a dense matrix, small CSR matrices sharing the data of a sparse one."""
    n, d = x.shape
    step = _rows_per_chunk(d)
    for start in range(0, n, step):
        rows = slice(start, min(start + step, n))
        if not scipy.sparse.issparse(x):
            yield rows, x[rows]
            continue
        first, last = x.indptr[rows.start], x.indptr[rows.stop]
        yield (
            rows,
            scipy.sparse.csr_array(
                (x.data[first:last], x.indices[first:last], x.indptr[rows.start : rows.stop + 1] - first),
                shape=(rows.stop - rows.start, d),
            ),
        )


def _root(covariance: np.ndarray) -> np.ndarray:
    """L with ``L L' = covariance``: Cholesky, or by eigenvalues where rounding has made it singular."""
    try:
        return np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(covariance)
        return vectors * np.sqrt(np.maximum(values, 0.0))  # below 0 only by rounding
