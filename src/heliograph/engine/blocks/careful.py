# pyright: basic
"""The joint belief where weights differ by more than double precision resolves: by orthogonal transformations of the rows.

A precision matrix is a sum of squares, in which a row of weight 1e12 rounds away the terms of rows of weight 1.
Triangularising the rows themselves, the heaviest first, keeps these terms, because rows are only rotated.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as sl

from heliograph.engine.blocks.records import Known
from heliograph.engine.blocks.rows import Rows, take
from heliograph.engine.blocks.system import Sites

__all__ = ["CarefulBelief", "careful_solve"]

_SINGULAR = 1e-15  # of the largest pivot of its column: less is nothing but rounding

CarefulBelief = tuple[np.ndarray, np.ndarray, float]  # mean, root of the covariance, log determinant of the precision


def careful_solve(known: Known, site_rows: Rows, sites: Sites) -> CarefulBelief | None:
    """Mean, root and log determinant of the belief; None where it is not a distribution.

    Parameters
    ----------
    known
        The rows of known weight.
    site_rows
        The expressions that hold sites.
    sites
        What is said of them. Weights below 0, and those of vectors, are added after the rotation.
    """
    heavy = np.flatnonzero(sites.tau > 0)
    rows = np.concatenate([_dense(known.rows), _dense(take(site_rows, heavy))])
    weight = np.concatenate([known.weight, sites.tau[heavy]])
    value = np.concatenate([-known.rows.constant, sites.shift[heavy] / sites.tau[heavy] - site_rows.constant[heavy]])
    root = np.sqrt(weight)
    order = np.argsort(-root * np.abs(rows).max(axis=1, initial=0.0), kind="stable")
    rows, value = (root[:, None] * rows)[order], (root * value)[order]
    n = rows.shape[1]
    if len(rows) < n:
        return None
    q, r = np.linalg.qr(rows)
    pivots = np.abs(np.diag(r))
    if not (pivots > _SINGULAR * np.abs(rows).max(axis=0)).all():
        return None
    back = sl.solve_triangular(r, np.eye(n), check_finite=False)
    rest, shift = _light_sites(site_rows, sites, back)
    try:
        lower = np.linalg.cholesky(np.eye(n) + rest)
    except np.linalg.LinAlgError:
        return None
    inverse = sl.solve_triangular(lower, np.eye(n), lower=True, check_finite=False).T
    whole = back @ inverse
    log_det = 2.0 * float(np.log(pivots).sum() + np.log(np.diag(lower)).sum())
    return whole @ (inverse.T @ (q.T @ value + shift)), whole, log_det


def _light_sites(site_rows: Rows, sites: Sites, back: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Precision and shift of the sites without a positive weight, and of those on vectors, in the rotated scalars."""
    n = len(back)
    rest, shift = np.zeros((n, n)), np.zeros(n)
    light = np.flatnonzero((sites.tau <= 0) & ((sites.tau < 0) | (sites.shift != 0)))
    if len(light):
        turned = _dense(take(site_rows, light)) @ back
        tau = sites.tau[light]
        rest += (turned * tau[:, None]).T @ turned
        shift += turned.T @ (sites.shift[light] - tau * site_rows.constant[light])
    for site in sites.vectors:
        m, d = site.shift.shape
        turned = (_dense(site.rows) @ back).reshape(m, d, n)
        rest += np.einsum("mdi,mde,mej->ij", turned, site.precision, turned, optimize=True)
        constant = site.rows.constant.reshape(m, d)
        shift += np.einsum("mdi,md->i", turned, site.shift - np.einsum("mij,mj->mi", site.precision, constant))
    return rest, shift


def _dense(rows: Rows) -> np.ndarray:
    whole = rows.sparse.toarray()
    for x, columns in rows.dense:
        whole[:, columns] += x
    return whole
