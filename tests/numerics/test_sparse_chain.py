"""A stiff chain against a Kalman smoother in extended precision."""

import numpy as np
import pytest

from heliograph.numerics import sparse
from heliograph.numerics.sparse import make_rows


def _smoother(y, innovation, prior):
    """Means and variances of a random walk seen with unit noise, step by step."""
    wide = np.longdouble
    m, p = wide(0), wide(prior)
    before, after = [], []
    for t, seen in enumerate(y):
        p = p + (wide(innovation) if t else wide(0))
        before.append((m, p))
        total, error = p + 1, wide(seen) - m
        m, p = m + p / total * error, p / total
        after.append((m, p))
    smooth = [after[-1]]
    for t in range(len(y) - 2, -1, -1):
        gain = after[t][1] / before[t + 1][1]
        late = smooth[-1]
        smooth.append(
            (after[t][0] + gain * (late[0] - before[t + 1][0]), after[t][1] + gain**2 * (late[1] - before[t + 1][1]))
        )
    mean, variance = np.array(smooth[::-1], dtype=wide).T
    return mean.astype(float), variance.astype(float)


@pytest.mark.parametrize(("innovation", "prior"), [(1e-6, 1.0), (1e-8, 1e6), (1.0, 1e6)])
def test_a_stiff_chain_is_exact_to_eight_digits(innovation, prior):
    n = 2_000
    y = 3.0 + np.random.default_rng(0).normal(size=n)
    at = np.arange(n)
    start = make_rows(n, 0, 0)
    links = make_rows(n, np.repeat(at[1:] - 1, 2), np.stack([at[1:], at[:-1]], 1).ravel(), np.tile([1.0, -1.0], n - 1))
    data = make_rows(n, at, at, constant=-y)
    parts = [start, links, data]
    taus = [np.array([1 / prior]), np.full(n - 1, 1 / innovation), np.ones(n)]
    plan = sparse.analyse(parts)
    placed = [sparse.place(plan, part) for part in parts]
    factor = sparse.factorise(plan, sum(sparse.gram(p, tau) for p, tau in zip(placed, taus, strict=True)))
    right = sum(sparse.information(p, tau, np.zeros(p.n_rows)) for p, tau in zip(parts, taus, strict=True))
    mean = sparse.solve(factor, right)
    truth, variance = _smoother(y, innovation, prior)
    np.testing.assert_allclose(mean, truth, rtol=1e-8)
    np.testing.assert_allclose(sparse.variances(sparse.invert(factor), placed[2]), variance, rtol=1e-8)
