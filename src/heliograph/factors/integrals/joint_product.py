"""Two correlated Gaussian numbers and their product: moments of ``(a, b, out)`` given that ``out = a b``.

Before that is known the three are jointly Gaussian. Given b, the gap ``out - a b`` is Gaussian and so is what a knows of it, so
that everything is an integral over b of ``N(b) N(0; gap(b), variance(b))``. The variance is a parabola in b, which bounds the
likelihood, and the gap's mean is one too, near whose roots the mass lies.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heliograph.numerics.adaptive_quadrature import Rule, adapt, around
from heliograph.numerics.chunks import integral_chunks
from heliograph.numerics.logarithms import LOG_2PI

__all__ = ["Triple", "free_product", "product_triple"]


class Triple(NamedTuple):
    """Moments of a, b and their product."""

    log_z: np.ndarray  # (n,) log density of the gap at 0
    mean: np.ndarray  # (n, 3)
    covariance: np.ndarray  # (n, 3, 3)


def free_product(mean: np.ndarray, covariance: np.ndarray) -> Triple:
    """Moments of a, b and a b where nothing is known of the product, from those of a and b: (n, 2) and (n, 2, 2)."""
    (ma, mb), (va, vb), c = mean.T, np.einsum("nii->in", covariance), covariance[:, 0, 1]
    out = ma * mb + c
    with_a, with_b = ma * c + mb * va, mb * c + ma * vb
    spread = ma**2 * vb + mb**2 * va + 2 * ma * mb * c + va * vb + c**2
    second = np.stack([va, c, with_a, c, vb, with_b, with_a, with_b, spread], axis=1).reshape(-1, 3, 3)
    return Triple(np.zeros(len(ma)), np.stack([ma, mb, out], axis=1), second)


def product_triple(mean: np.ndarray, covariance: np.ndarray) -> Triple:
    """Moments of ``(a, b, out)`` given ``out = a b``, from those without it: (n, 3) and positive definite (n, 3, 3)."""
    log_z, first, second = np.empty(len(mean)), np.empty_like(mean), np.empty_like(covariance)
    for part in integral_chunks(len(mean)):
        given = _given_b(mean[part], covariance[part])
        rule = _integrate(given)
        log_z[part] = rule.log_z
        first[part], second[part] = _moments(rule, given)
    return Triple(log_z, first, second)


class _Given(NamedTuple):
    """The distribution of b, and a and out given it: means ``m + slope (b - mb)``, and a covariance that is the same for all b."""

    mb: np.ndarray
    vb: np.ndarray
    ma: np.ndarray
    slope_a: np.ndarray
    mo: np.ndarray
    slope_o: np.ndarray
    va: np.ndarray
    vo: np.ndarray
    cao: np.ndarray

    def gap(self, b: np.ndarray, i: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Mean of a, and mean and variance of ``out - a b``, given b."""
        step = b - self.mb[i]
        a = self.ma[i] + self.slope_a[i] * step
        # a parabola with its least value apart, so that nothing cancels near it
        low = self.cao[i] / self.va[i]
        variance = self.va[i] * (b - low) ** 2 + (self.vo[i] - low * self.cao[i])
        return a, self.mo[i] + self.slope_o[i] * step - a * b, variance


def _given_b(mean: np.ndarray, v: np.ndarray) -> _Given:
    vb = v[:, 1, 1]
    slope_a, slope_o = v[:, 0, 1] / vb, v[:, 2, 1] / vb
    return _Given(
        mean[:, 1],
        vb,
        mean[:, 0],
        slope_a,
        mean[:, 2],
        slope_o,
        v[:, 0, 0] - slope_a * v[:, 0, 1],
        v[:, 2, 2] - slope_o * v[:, 2, 1],
        v[:, 0, 2] - slope_a * v[:, 2, 1],
    )


def _integrate(g: _Given) -> Rule:
    """Nodes in b of ``N(b) N(0; gap, variance)``."""
    index = np.arange(len(g.mb))[:, None]

    def log_density(b: np.ndarray, i: np.ndarray) -> np.ndarray:
        _, miss, variance = g.gap(b, i)
        own = (b - g.mb[i]) ** 2 / g.vb[i] + np.log(g.vb[i])
        return -0.5 * (own + miss**2 / variance + np.log(variance)) - LOG_2PI

    centres, widths = _likely_places(g)
    least = g.vo - g.cao**2 / g.va
    top = log_density(centres, index).max(axis=1)
    ceiling = -0.5 * (np.log(least) + np.log(g.vb)) - LOG_2PI  # the likelihood is nowhere above its value at gap 0
    reach = np.sqrt(2 * g.vb * (np.maximum(ceiling - top, 0.0) + 60.0))
    edges = around(g.mb - reach, g.mb + reach, centres, np.minimum(widths, reach[:, None]))

    def second_moments(b: np.ndarray, i: np.ndarray) -> list[np.ndarray]:
        a, spread = _a_given(g, b, i)
        return [(a - g.ma[i]) ** 2 + spread, (a * b - g.mo[i]) ** 2 + b**2 * spread]

    rule = adapt(log_density, edges, second_moments)
    return rule


def _likely_places(g: _Given) -> tuple[np.ndarray, np.ndarray]:
    """Where the mass may be, (rows, 4), and how wide it is there: the mean of b, the roots of the gap, its least variance."""
    # gap(b) = (mo - slope_o mb) + (slope_o - ma + slope_a mb) b - slope_a b^2
    c0, c1, c2 = g.mo - g.slope_o * g.mb, g.slope_o - g.ma + g.slope_a * g.mb, -g.slope_a
    root = np.sqrt(np.maximum(c1**2 - 4 * c2 * c0, 0.0))
    q = -0.5 * (c1 + np.where(c1 < 0, -root, root))
    one = np.where(q != 0, c0 / np.where(q != 0, q, 1.0), g.mb)
    other = np.where(c2 != 0, q / np.where(c2 != 0, c2, 1.0), g.mb)
    least = g.cao / g.va
    centres = np.stack([g.mb, one, other, least], axis=1)
    far = np.abs(centres - g.mb[:, None]) > 1e6 * np.sqrt(g.vb)[:, None]  # no mass can be there
    centres = np.where(far | ~np.isfinite(centres), g.mb[:, None], centres)
    index = np.arange(len(g.mb))[:, None]
    _, _, variance = g.gap(centres, index)
    slope = np.abs(c1[:, None] + 2 * c2[:, None] * centres)
    widths = np.sqrt(variance) / np.maximum(slope, 1e-300)
    return centres, np.minimum(widths, np.sqrt(g.vb)[:, None])


def _a_given(g: _Given, b: np.ndarray, i: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of a given b, and that the gap is 0."""
    a, miss, variance = g.gap(b, i)
    return a - (g.cao[i] - b * g.va[i]) * miss / variance, (g.va[i] * g.vo[i] - g.cao[i] ** 2) / variance


def _moments(rule: Rule, g: _Given) -> tuple[np.ndarray, np.ndarray]:
    b, i = rule.x, rule.row[:, None]
    a, spread = _a_given(g, b, i)
    parts = [a, b, a * b]
    first = np.stack([rule.mean(p) for p in parts], axis=1)
    gaps = [p - rule.of(first[:, k]) for k, p in enumerate(parts)]
    inner = [np.ones_like(b), np.zeros_like(b), b]  # what a unit of a changes in each
    second = np.empty((len(first), 3, 3))
    for j in range(3):
        for k in range(j + 1):
            second[:, j, k] = second[:, k, j] = rule.mean(gaps[j] * gaps[k] + spread * inner[j] * inner[k])
    return first, second
