"""Random models for the tests of the sparse solver, and the same algebra done with dense matrices."""

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from heliograph.numerics import sparse
from heliograph.numerics.sparse import Dense, Rows, make_rows


class Case(NamedTuple):
    prior: Rows  # one row per variable, so that every case is proper
    sites: Rows
    prior_tau: np.ndarray
    tau: np.ndarray
    nu: np.ndarray
    vectors: tuple[tuple[int, int], ...] = ()


def links(rng, shape, n):
    """Pairs of variables of a graph of this shape."""
    every = np.arange(n)
    if shape == "chain":
        return np.stack([every[:-1], every[1:]], 1)
    if shape == "tree":
        return np.array([(rng.integers(i), i) for i in range(1, n)]).reshape(-1, 2)
    if shape == "grid":
        side = max(1, int(np.sqrt(n)))
        at = every[: side * side].reshape(side, side)
        return np.concatenate(
            [np.stack([at[:, :-1], at[:, 1:]], -1).reshape(-1, 2), np.stack([at[:-1], at[1:]], -1).reshape(-1, 2)]
        )
    if shape == "arrow":
        return np.stack([np.zeros(n - 1, dtype=int), every[1:]], 1)
    if shape == "islands":  # disconnected, some variables on their own
        pairs = rng.integers(n, size=(n // 3, 2))
        return pairs[pairs[:, 0] != pairs[:, 1]]
    pairs = rng.integers(n, size=(2 * n, 2))  # "random": with loops and repeats
    return pairs


SHAPES = ("chain", "tree", "grid", "arrow", "islands", "random")


def case(seed, shape, n, *, width=1, vector=0):
    """A random model: links of two variables, rows of three, doubled entries, empty rows, doubled rows, constants."""
    rng = np.random.default_rng(seed)
    pairs = rng.permutation(links(rng, shape, n))
    row, variable = np.repeat(np.arange(len(pairs)), 2), pairs.ravel()
    m = len(pairs)
    extra = rng.integers(n, size=3)
    row, variable = np.r_[row, [m] * 3, [m + 1]], np.r_[variable, extra, extra[:1]]  # row m + 2 is empty
    coefficient = rng.normal(size=len(row))
    double = rng.integers(len(row), size=len(row) // 4)  # an entry is repeated, a row is repeated
    row, variable = np.r_[row, row[double], [m + 3] * 3], np.r_[variable, variable[double], extra]
    coefficient = np.r_[coefficient, rng.normal(size=len(double)), coefficient[-4:-1]]
    total = n + vector
    m = -(-(m + 4) // width) * width
    dense = ()
    if vector:
        first = int(rng.integers(m))
        dense = (Dense(first, n, rng.normal(size=(m - first, vector))), Dense(0, n, rng.normal(size=(m // 2, vector))))
        row, variable = np.r_[row, 0, 1], np.r_[variable, n, n + vector - 1]
        coefficient = np.r_[coefficient, 0.7, -0.4]
    sites = make_rows(
        total, row, variable, coefficient, n_rows=m, constant=rng.normal(size=m), width=width, dense=dense
    )
    tau = rng.gamma(1.0, size=m)
    if width > 1:
        root = rng.normal(size=(m // width, width, width))
        tau = root @ root.transpose(0, 2, 1)
    prior = make_rows(total, np.arange(total), rng.permutation(total), rng.normal(size=total) + 3.0)
    vectors = ((n, n + vector),) if vector else ()
    return Case(prior, sites, rng.gamma(2.0, size=total), tau, rng.normal(size=m), vectors)


def dense_rows(rows):
    """A, as a full matrix, entry by entry."""
    out = np.zeros((rows.n_rows, rows.n_variables))
    for i in range(rows.n_rows):
        for at in range(rows.indptr[i], rows.indptr[i + 1]):
            out[i, rows.indices[at]] += rows.values[at]
    for part in rows.dense:
        out[part.first : part.stop, part.start : part.start + part.matrix.shape[1]] += part.matrix
    return out


def dense_weights(rows, tau):
    """The block diagonal matrix of the weights."""
    if rows.width == 1:
        return np.diag(tau)
    out, q = np.zeros((rows.n_rows, rows.n_rows)), rows.width
    for i, block in enumerate(tau):
        out[i * q : i * q + q, i * q : i * q + q] = block
    return out


def dense_precision(model):
    prior, sites = dense_rows(model.prior), dense_rows(model.sites)
    return prior.T @ np.diag(model.prior_tau) @ prior + sites.T @ dense_weights(model.sites, model.tau) @ sites


def dense_information(model):
    weights = dense_weights(model.sites, model.tau)
    return dense_rows(model.sites).T @ (model.nu - weights @ model.sites.constant)


def with_negative_weights(model):
    """Every second site takes precision away, in all seven tenths of what the most affected direction has."""
    less, more = model.tau.copy(), model.tau.copy()
    less[::2] *= 0
    more[1::2] *= 0
    kept = dense_precision(model._replace(tau=less))
    taken = dense_precision(model._replace(tau=more, prior_tau=0 * model.prior_tau))
    share = eigh(taken, kept, eigvals_only=True)[-1]
    return model._replace(tau=less - 0.7 / share * more)


class Solved(NamedTuple):
    plan: sparse.Plan
    sites: sparse.Placed
    factor: sparse.Factor
    mean: np.ndarray
    variances: np.ndarray


def values_of(plan, model):
    """Values of the whole precision."""
    prior, sites = sparse.place(plan, model.prior), sparse.place(plan, model.sites)
    return sparse.gram(prior, model.prior_tau) + sparse.gram(sites, model.tau)


def solved(model, **analysis):
    """The same by the solver under test."""
    plan = sparse.analyse([model.prior, model.sites], model.vectors, **analysis)
    sites = sparse.place(plan, model.sites)
    factor = sparse.factorise(plan, values_of(plan, model))
    mean = sparse.solve(factor, sparse.information(model.sites, model.tau, model.nu))
    return Solved(plan, sites, factor, mean, sparse.variances(sparse.invert(factor), sites))
