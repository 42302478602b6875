"""Every family of the room, found by listing, and how to draw its members: what the laws are tested with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st

import heliograph.families as room
from heliograph.families import Family

FAMILIES = sorted(
    (f for f in vars(room).values() if isinstance(f, type) and issubclass(f, Family) and f is not Family),
    key=lambda f: f.__name__,
)
every_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.__name__)
VECTOR = 3  # the length of a vector, or the number of categories
few = settings(max_examples=15, deadline=None)
seeds = st.integers(0, 2**32 - 1)


def event(family: type[Family]) -> tuple[int, ...]:
    """The extra argument of `uniform` in families of vectors."""
    return (VECTOR,) if family.ranks[0] else ()


def draw(family: type[Family], rng: np.random.Generator, shape: tuple[int, ...] = (4,)) -> Any:
    """Proper members, spread over some orders of magnitude (but whose draws do not round to the border)."""
    name, wide = family.__name__, lambda *event: 10.0 ** rng.uniform(-0.3, 2, (*shape, *event))
    if name == "Gaussian":
        return family(rng.normal(0, 3, shape), wide())
    if name == "MultivariateGaussian":
        root = rng.normal(size=(*shape, VECTOR, VECTOR))
        covariance = root @ np.swapaxes(root, -1, -2) + 0.2 * np.eye(VECTOR)
        return family(rng.normal(0, 3, (*shape, VECTOR)), covariance)
    if name in ("Gamma", "Beta"):
        return family(wide(), wide())
    if name == "Bernoulli":
        return family(rng.uniform(0.02, 0.98, shape))
    if name == "Categorical":
        return family(rng.dirichlet(np.full(VECTOR, 2.0), shape))
    if name == "Dirichlet":
        return family(wide(VECTOR))
    raise NotImplementedError(f"tell this test how to draw a {name}")


def values(family: type[Family], rng: np.random.Generator, shape: tuple[int, ...] = (4,)) -> np.ndarray:
    """Values the variable can take, to put point masses at."""
    return draw(family, rng, shape).sample(rng).astype(float)


def points(family: type[Family], x: np.ndarray) -> Any:
    return family.point_mass(x, *(event(family) if family.__name__ == "Categorical" else ()))


def assert_same(a: Family, b: Family, tolerance: float = 1e-11) -> None:
    """Equal natural parameters, up to rounding of the largest of them, and equal point masses."""
    assert type(a) is type(b) and a.shape == b.shape
    for x, y in zip(a.naturals, b.naturals, strict=True):
        scale = max(1.0, float(np.abs(y).max(initial=0.0)))
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance * scale)
    np.testing.assert_array_equal(a.is_point, b.is_point)
    if a.point is not None and b.point is not None:
        np.testing.assert_array_equal(a.point, b.point)
