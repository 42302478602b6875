"""What the laws need to know of each factor: its data, its units, and where a projection is held back on purpose.

A factor that is not named here fails `test_every_factor_has_a_law_spec`; to add one, say what its units are, or that it
has none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from heliograph.families import Beta, Family, Gamma

Draw = Callable[[np.random.Generator, int], np.ndarray]  # n values

D = 3  # length of vectors and number of categories


def spread(rng: np.random.Generator, n: int, low: float, high: float) -> np.ndarray:
    return 10.0 ** rng.uniform(low, high, n)


def _positive(usual: tuple[float, float], extreme: tuple[float, float]) -> tuple[Draw, Draw]:
    """Positive numbers, by the powers of ten between which they lie."""
    return (lambda rng, n: spread(rng, n, *usual)), (lambda rng, n: spread(rng, n, *extreme))


def _matrices(rng: np.random.Generator, n: int) -> np.ndarray:
    root = rng.standard_normal((n, D, D))
    return root @ np.swapaxes(root, 1, 2) + 0.1 * np.eye(D)


def _bounds(port: str, size: float, inside: bool = False) -> Draw:
    """Bounds of lifetimes, the upper ones to the lower ones of the call before: exact, or censored on a side or on both."""

    def lower(rng: np.random.Generator, n: int) -> np.ndarray:
        _bounds.kind = rng.integers(2 if inside else 0, 4, n)
        _bounds.low = np.where(_bounds.kind == 2, 0.0, spread(rng, n, -size, size))
        return _bounds.low

    def upper(rng: np.random.Generator, n: int) -> np.ndarray:
        low, kind = _bounds.low, _bounds.kind
        found = [low, np.inf, spread(rng, n, -size, size)]
        return np.select([kind == 0, kind == 1, kind == 2], found, low * (1.0 + spread(rng, n, -2, 2)))

    return lower if port == "lower" else upper


# legal values at data ports, those of the usual laws and of the extreme ones: by the name of the port, or as "factor.port"
DATA: dict[str, tuple[Draw, Draw]] = {
    "a": _positive((-1, 3), (-6, 8)),
    "b": _positive((-1, 3), (-6, 8)),
    "concentration": (
        lambda rng, n: 10.0 ** rng.uniform(-1, 3, (n, D)),
        lambda rng, n: 10.0 ** rng.uniform(-6, 8, (n, D)),
    ),
    "beta_mean.concentration": _positive((-1, 3), (-6, 8)),
    "constant": (
        lambda rng, n: rng.standard_normal(n) * (rng.random(n) > 0.1),
        lambda rng, n: rng.standard_normal(n) * spread(rng, n, -20, 20),
    ),
    "count": (
        lambda rng, n: rng.integers(0, 10, n).astype(float),
        lambda rng, n: np.round(spread(rng, n, -1, 6)),
    ),
    "counts": (
        lambda rng, n: rng.integers(0, 10, (n, D)).astype(float),
        lambda rng, n: np.round(10.0 ** rng.uniform(-1, 6, (n, D))),
    ),
    "covariance": (_matrices, lambda rng, n: _matrices(rng, n) * spread(rng, n, -30, 30)[:, None, None]),
    "cuts": (
        lambda rng, n: np.sort(rng.standard_normal((n, D - 1)) * 2.0, axis=1) + np.array([0.0, 0.1]),
        lambda rng, n: np.sort(rng.standard_normal((n, D - 1)) * spread(rng, n, -3, 6)[:, None], axis=1),
    ),
    "dispersion": _positive((-1, 3), (-6, 8)),
    "dof": _positive((-0.3, 3), (-2, 8)),
    "dot.x": (
        lambda rng, n: rng.standard_normal((n, D)) * (rng.random((n, 1)) > 0.1),
        lambda rng, n: rng.standard_normal((n, D)) * spread(rng, n, -20, 20)[:, None],
    ),
    "lower": (lambda rng, n: -spread(rng, n, -3, 2), lambda rng, n: -spread(rng, n, -20, 20)),
    "upper": _positive((-3, 2), (-20, 20)),
    "n": (lambda rng, n: rng.integers(10, 50, n).astype(float), lambda rng, n: np.round(spread(rng, n, 6, 9))),
    "scale": _positive((-3, 2), (-20, 20)),
    "shape": _positive((-1, 3), (-6, 8)),
    "table": (  # of Bernoulli as well as Categorical variables
        lambda rng, n: rng.dirichlet(np.ones(2), (n, 2)),
        lambda rng, n: rng.dirichlet(np.full(2, 1e-2), (n, 2)),
    ),
    "truncated_gaussian.variance": _positive((-3, 3), (-60, 60)),
    "truncated_gaussian.x": (lambda rng, n: np.zeros(n), lambda rng, n: np.zeros(n)),  # between all bounds
    "variance": (
        lambda rng, n: spread(rng, n, -6, 4) * (rng.random(n) > 0.1),
        lambda rng, n: spread(rng, n, -60, 60),
    ),
    **{f"weibull.{p}": (_bounds(p, 2.0), _bounds(p, 20.0)) for p in ("lower", "upper")},
    **{f"exponential_interval.{p}": (_bounds(p, 2.0, True), _bounds(p, 20.0, True)) for p in ("lower", "upper")},
}


class Units(NamedTuple):
    """A change of units under which the factor is the same: what every port is multiplied with, and moved by.

    A port is multiplied with ``unit ** power`` and then moved by ``offset * move``. Where the factor's density has the
    dimension ``unit ** -density``, `log_z` falls by ``density log unit``.
    """

    scales: dict[str, float] = {}  # noqa: RUF012  (never changed)
    moves: dict[str, float] = {}  # noqa: RUF012
    density: float = 0.0
    logs: dict[str, float] = {}  # noqa: RUF012  ports that are logarithms: moved by log(unit) times this


# a change of units, one for each way in which a factor's ports can be measured; log_z falls by `density` log unit
UNITS: dict[str, dict[int, list[Units]]] = {}


def _same(name: str, units: list[Units], families: int = 1) -> None:
    UNITS[name] = dict.fromkeys(range(families), units)


_ALL = {"a": 1.0, "b": 1.0, "out": 1.0}
for _name in ("sum", "difference"):
    UNITS[_name] = {
        0: [Units(_ALL, {"a": 1.0, "out": 1.0}, density=1.0)],
        1: [Units(_ALL, {"a": 1.0, "out": 1.0}, density=3.0)],
    }
UNITS["scale"] = {
    i: [
        Units({"x": 1.0, "out": 1.0}, density=d),
        Units({"constant": 1.0, "out": 1.0}, density=d),
    ]
    for i, d in ((0, 1.0), (1, 3.0))
}
UNITS["shift"] = {
    i: [Units({"x": 1.0, "constant": 1.0, "out": 1.0}, {"x": 1.0, "out": 1.0}, density=d)]
    for i, d in ((0, 1.0), (1, 3.0))
}
_same("gaussian", [Units({"mean": 1.0, "variance": 2.0, "x": 1.0}, {"mean": 1.0, "x": 1.0}, density=1.0)])
_same(
    "multivariate_gaussian", [Units({"mean": 1.0, "covariance": 2.0, "x": 1.0}, {"mean": 1.0, "x": 1.0}, density=3.0)]
)
_same("gaussian_precision", [Units({"mean": 1.0, "precision": -2.0, "x": 1.0}, {"mean": 1.0, "x": 1.0}, density=1.0)])
_same("student_t", [Units({"mean": 1.0, "scale": 1.0, "x": 1.0}, {"mean": 1.0, "x": 1.0}, density=1.0)])
_same("laplace", [Units({"mean": 1.0, "scale": 1.0, "x": 1.0}, {"mean": 1.0, "x": 1.0}, density=1.0)])
_same(
    "product",
    [
        Units({"a": 1.0, "out": 1.0}, density=1.0),
        Units({"b": 1.0, "out": 1.0}, density=1.0),
        Units({"a": 1.0, "b": -1.0}),
    ],
)
_same(
    "scaled_gaussian",
    [
        Units({"scale": 1.0, "out": 1.0}, density=1.0),
        Units({"x": 1.0, "out": 1.0}, density=1.0),
        Units({"scale": 1.0, "x": -1.0}),
    ],
)
_same("maximum", [Units(_ALL, {"a": 1.0, "b": 1.0, "out": 1.0}, density=1.0)])
_same("square", [Units({"x": 1.0, "out": 2.0}, density=2.0)])
_same("absolute_value", [Units({"x": 1.0, "out": 1.0}, density=1.0)])
_same("select", [Units(_ALL, {"a": 1.0, "b": 1.0, "out": 1.0}, density=1.0)])
_MEANS = {"mean0": 1.0, "mean1": 1.0, "x": 1.0}
_same("mixture", [Units(_MEANS | {"precision0": -2.0, "precision1": -2.0}, _MEANS, density=1.0)], 2)
_CENTRES = {"mean_0": 1.0, "mean_1": 1.0, "x": 1.0}
_same("one_of", [Units(_CENTRES | {"variance_0": 2.0, "variance_1": 2.0}, _CENTRES, density=1.0)], 2)
_same("dot", [Units({"w": 1.0, "out": 1.0}, density=1.0), Units({"x": 1.0, "out": 1.0}, density=1.0)])
_STACKED = {"x0": 1.0, "x1": 1.0, "out": 1.0}
_same("stack", [Units(_STACKED, _STACKED, density=2.0)])
_same("uniform", [Units({"x": 1.0, "lower": 1.0, "upper": 1.0}, density=1.0)])  # moved bounds are rounded
_same("positive", [Units({"x": 1.0})])
_BOUNDS = {"x": 1.0, "lower": 1.0, "upper": 1.0}
_same("between", [Units(_BOUNDS, _BOUNDS)])
_same("exp", [Units({"out": 1.0}, logs={"z": 1.0}, density=1.0)])
_same("gamma_scale", [Units({"x": 1.0, "out": 1.0}, density=1.0), Units({"scale": 1.0, "out": 1.0}, density=1.0)])
_same("log", [Units({"x": 1.0}, logs={"out": 1.0})])
_same("gamma_rate", [Units({"x": 1.0, "rate": -1.0}, density=1.0)])
_CUT = {"z": 1.0, "lower": 1.0, "upper": 1.0, "x": 1.0, "variance": 2.0}
# moved far, its data would lose digits that the law counts for messages only
_same("truncated_gaussian", [Units(_CUT, density=1.0)])
_ENDS = {"a": 1.0, "b": 1.0}
UNITS["equal"] = {
    0: [Units(_ENDS, _ENDS, density=1.0)],
    1: [Units(_ENDS, _ENDS, density=3.0)],
    2: [Units(_ENDS, density=1.0)],
}

# counts, probabilities, labels and functions with a scale of their own have no unit to change
NO_UNITS = {
    "bernoulli_beta": "a probability and a label",
    "beta": "a probability",
    "beta_mean": "probabilities",
    "between_cuts": "the noise has a scale of its own",
    "binomial": "a probability and counts",
    "binomial_logit": "the sigmoid has a scale of its own",
    "exponential_interval": "its change of units is that of `test_lifetimes_factor.py`: bounds have an order to keep",
    "multinomial": "probabilities and counts",
    "negative_binomial": "counts in one unit of time",
    "categorical_dirichlet": "probabilities and a category",
    "chosen_probability": "probabilities and a category",
    "compound_gamma": "(1 + tau)^-2 has the unit 1 built in",
    "conditional_table": "categories",
    "dirichlet": "probabilities",
    "dirichlet_table": "probabilities and categories",
    "dirichlet_tuple": "probabilities and categories",
    "logistic": "the sigmoid has a scale of its own",
    "logistic_bernoulli": "the sigmoid has a scale of its own",
    "poisson": "counts in one unit of time",
    "poisson_log": "counts in one unit of time",
    "prior": "its message is part of the factor: the law of its parts, products of messages, is that of the families",
    "ordinal_logit": "the noise has a scale of its own",
    "ordinal_probit": "the noise has a scale of its own",
    "softmax": "the softmax has a scale of its own",
    "weibull": "an exact lifetime is a density, a censored one a probability",
    "probit_bernoulli": "Phi has a scale of its own",
}

# black boxes have no ports until they are made (their laws are those of operators and oracles), and a base has none at all
NO_PORTS = {"BlackBox", "BoxWithTerm", "JointBox", "OfScore", "OfVector"}

# factors whose integrals take the longest, and are put to fewer messages
LONG = ("mixture", "softmax", "truncated_gaussian")

# factors that are no density of their last port, so that a silent child leaves more, or less, than 1
NOT_A_DENSITY = {
    "prior",
    "between_cuts",
    "chosen_probability",
    "dirichlet_tuple",
    "equal",
    "compound_gamma",
    "beta",
    "dirichlet",
    "binomial",
    "poisson",
    "poisson_log",
    "binomial_logit",
    "negative_binomial",
    "multinomial",
    "weibull",
    "exponential_interval",
    "truncated_gaussian",
}


def held(name: str, to: str, belief: Family) -> np.ndarray:
    """Where a belief is not the moment match on purpose: what it should be is no floating-point number.

    `exp` holds ``log E out``, and `log` ``log E x``, within +-600, and `logistic` holds ``E logit p`` within +-300, because a
    Gamma's rate and a Beta's other parameter would overflow beyond; and a shape below 1e-10 is rounded when it is stored less 1.
    """
    if name == "beta_mean" and to == "p":
        return np.ones(belief.shape, dtype=bool)  # it has the mean and the variance; test_beta_mean_factor.py compares
    if name == "chosen_probability" and to != "parent":
        return np.ones(
            belief.shape, dtype=bool
        )  # it keeps the mean, and not E log; tests/engine/discrete has its own test
    with np.errstate(all="ignore"):
        if isinstance(belief, Gamma):
            rounded = belief.shape_parameter < 1e-9
            return (
                rounded | (np.abs(np.log(belief.mean)) > 599.0)
                if (name, to) in (("exp", "out"), ("log", "x"))
                else rounded
            )
        if isinstance(belief, Beta):
            rounded = np.minimum(belief.a, belief.b) < 1e-9
            return rounded | (np.abs(belief.chart_moments()[0]) > 299.0) if (name, to) == ("logistic", "p") else rounded
    return np.zeros(belief.shape, dtype=bool)
