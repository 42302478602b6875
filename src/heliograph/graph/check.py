"""The sentences a user reads when a model is wrong, each raised before any sweep runs."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from heliograph.errors import ModelError
from heliograph.families import Bernoulli, Beta, Categorical, Dirichlet, Family, Gamma, Gaussian, MultivariateGaussian
from heliograph.graph.data import inside
from heliograph.graph.quantity import Quantity
from heliograph.graph.records import Graph, Plate
from heliograph.graph.sparse import csr_array, is_sparse
from heliograph.numerics.checks import as_real

__all__ = [
    "as_floats",
    "check_bound",
    "check_counts",
    "check_covariance",
    "check_divisor",
    "check_graph",
    "check_matrix",
    "check_not_spread",
    "check_number",
    "check_observed",
    "check_positive",
    "check_probability",
    "check_seen",
    "observed_shape",
    "without_missing",
]

_SUPPORT: dict[type[Family], str] = {
    Gaussian: "finite numbers",
    MultivariateGaussian: "vectors of finite numbers",
    Gamma: "numbers greater than 0",
    Beta: "numbers between 0 and 1",
    Bernoulli: "labels 0 and 1",
    Categorical: "category indices 0, 1, ..., K - 1",
    Dirichlet: "vectors of probabilities that sum to 1",
}


def as_floats(label: str, value: Any, wanted: str = "real numbers") -> np.ndarray:
    """A copy of `value` as a float array; what is not made of real numbers is refused."""
    try:
        return np.array(as_real(label, value))
    except ModelError as error:
        if next(inside(value.tolist() if isinstance(value, np.ndarray) else value, Quantity), None) is not None:
            raise ModelError(
                f"{label} must be {wanted}, not an array of variables; join them with hg.stack([...])"
            ) from None
        raise ModelError(str(error).replace("real numbers", wanted)) from None


def check_divisor(name: str, value: Any) -> np.ndarray:
    """The divisor of a variable: finite numbers other than 0."""
    divisor = as_floats(f"variable {name!r} is divided by something that", value)
    if (divisor == 0).any():
        raise ModelError(f"variable {name!r} is divided by zero")
    if np.isinf(divisor).any():
        raise ModelError(f"variable {name!r} is divided by infinity; multiply it by 0 if that is what is meant")
    return divisor


def _with_gaps(label: str, value: Any, wanted: str) -> np.ndarray:
    """Observed numbers as floats, NaN where they are masked."""
    if value is None:
        raise ModelError(f"{label} must be {wanted}, not None")
    if not isinstance(value, np.ma.MaskedArray):
        return as_floats(label, value, wanted)
    masked = cast(Any, value)
    return np.where(np.ma.getmaskarray(masked), np.nan, as_floats(label, masked.filled(0), wanted))


def check_number(name: str, what: str, value: Any) -> np.ndarray:
    """`value` as a float array, finite throughout."""
    if isinstance(value, Quantity):
        raise ModelError(
            f"variable {name!r}: its {what} must be known, but {value.name!r} is random; give numbers, or a hyper-parameter such "
            "as model.half_normal(...), which is integrated over"
        )
    array = as_floats(f"variable {name!r}: its {what}", value, "a number, an array or a variable")
    if not array.size:
        raise ModelError(f"variable {name!r}: its {what} is empty; give at least one number")
    if np.isnan(array).any():
        raise ModelError(f"variable {name!r}: its {what} holds NaN; NaN means 'missing' only in observed=")
    if np.isinf(array).any():
        raise ModelError(f"variable {name!r}: its {what} is infinite; give a finite value")
    return array


def check_bound(name: str, what: str, value: Any) -> np.ndarray:
    """`value` as a float array without NaN; a bound may be infinite."""
    array = as_floats(f"variable {name!r}: its {what} bound", value)
    if np.isnan(array).any():
        raise ModelError(f"variable {name!r}: its {what} bound holds NaN; leave an open side at -inf or inf")
    return array


def check_matrix(label: str, x: Any) -> Any:
    """The matrix of an inner product, dense or CSR, as finite floats of the model's own."""
    if is_sparse(x):
        if x.dtype.kind not in "fiub":
            raise ModelError(f"{label}: X holds {x.dtype} values where real numbers are needed")
        x = csr_array(x, dtype=float, copy=True)
        finite = np.isfinite(x.data).all()
    else:
        x = as_floats(f"{label}: X", x)
        finite = np.isfinite(x).all()
    if not finite:
        raise ModelError(f"{label}: X holds NaN or infinite values; fill them in or drop those rows")
    return x


def check_positive(name: str, what: str, value: Any) -> np.ndarray:
    """`value` as a float array, positive throughout."""
    array = check_number(name, what, value)
    if (array <= 0).any():
        worst = array.min()
        raise ModelError(f"variable {name!r}: its {what} must be greater than 0, but {worst:g} was given")
    return array


def check_probability(name: str, what: str, value: Any) -> np.ndarray:
    """`value` as a float array between 0 and 1."""
    array = check_number(name, what, value)
    if ((array < 0) | (array > 1)).any():
        raise ModelError(
            f"variable {name!r}: its {what} must lie between 0 and 1, not {array.min():g}..{array.max():g}"
        )
    return array


def check_covariance(name: str, what: str, matrix: Any, dimension: int) -> np.ndarray:
    """A symmetric positive definite matrix of that dimension."""
    matrix = check_number(name, what, matrix)
    if matrix.ndim < 2 or matrix.shape[-2:] != (dimension, dimension):
        raise ModelError(
            f"variable {name!r}: its {what} has shape {matrix.shape}, but the mean has {dimension} entries; "
            f"give a ({dimension}, {dimension}) matrix"
        )
    scale = np.abs(matrix).max()
    if np.abs(matrix - np.swapaxes(matrix, -1, -2)).max() > 1e-8 * scale:  # rounding in a user's own product
        raise ModelError(f"variable {name!r}: its {what} is not symmetric; use (C + C.T) / 2 if it should be")
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        lowest = np.linalg.eigvalsh(matrix).min()
        raise ModelError(
            f"variable {name!r}: its {what} is not positive definite (smallest eigenvalue {lowest:.3g}); "
            "drop redundant directions or add a small multiple of the identity"
        ) from None
    return matrix


def check_counts(name: str, what: str, value: Any, missing: Any = None, event_rank: int = 0) -> np.ndarray:
    """Whole numbers of 0 or more; NaN marks a missing entry, and so does True in `missing`."""
    value = _with_gaps(f"variable {name!r}: its {what}", value, "whole numbers")
    value = without_missing(name, value, missing, event_rank)
    seen = value[~np.isnan(value)]
    if np.isinf(seen).any():
        raise ModelError(
            f"variable {name!r}: its {what} holds infinite values; remove them or mark them missing with NaN"
        )
    bad = seen[(seen < 0) | (seen != np.floor(seen))]
    if bad.size:
        raise ModelError(f"variable {name!r}: its {what} must be whole numbers of 0 or more, but {bad[0]:g} was given")
    return value


def observed_shape(name: str, observed: Any) -> tuple[int, ...]:
    """The shape of observed values, whose rows must be of one length."""
    try:
        return np.shape(observed)
    except ValueError:
        raise ModelError(f"variable {name!r}: observed= has rows of different lengths; mark gaps with NaN") from None


def _column_hint(shape: tuple[int, ...]) -> str:
    """What to write instead of a column, where a shape is that of one."""
    return "; a column y is written as y[:, 0]" if len(shape) == 2 and shape[1] == 1 < shape[0] else ""


def check_not_spread(name: str, full: tuple[int, ...], seen: np.ndarray) -> None:
    """Refuse observed values of which each would be taken for several, as a column beside a row is; `seen`: where there are any."""
    if seen.shape != full and seen.any():
        raise ModelError(
            f"variable {name!r}: observed has shape {seen.shape}, but the variable has shape {full}; give one value per entry and "
            f"NaN where it is missing{_column_hint(seen.shape)}"
        )


def check_seen(name: str, observed: Any, **given: Any) -> None:
    """Refuse arguments that say something of observed values where there are none."""
    words = [f"{word}=" for word, value in given.items() if value is not None]
    if observed is None and words:
        raise ModelError(f"variable {name!r}: {' and '.join(words)} says something of observed=, which was not given")


def without_missing(name: str, values: np.ndarray, missing: Any, event_rank: int = 0) -> np.ndarray:
    """Observed values with NaN where an array of True and False says that they are missing."""
    if missing is None:
        return values
    missing = as_floats(f"variable {name!r}: missing=", missing, "an array of True and False")
    if not np.isin(missing, (0.0, 1.0)).all():
        raise ModelError(f"variable {name!r}: missing= must be an array of True (missing) and False")
    shape = values.shape[: values.ndim - event_rank]
    if missing.shape != shape:
        raise ModelError(f"variable {name!r}: missing= has shape {missing.shape}, the variable {shape}")
    values = values.copy()
    values[missing.astype(bool)] = np.nan
    return values


def check_observed(
    name: str, family: type[Family], shape: tuple[int, ...], dimension: int | None, observed: Any, missing: Any
) -> Family:
    """The observed values as a flat batch of point masses, uniform where they are missing."""
    values = _with_gaps(f"variable {name!r}: observed=", observed, "numbers (NaN where missing)")
    event = (dimension,) if family.point_rank else ()
    if values.shape != (*shape, *event):
        raise ModelError(
            f"variable {name!r}: observed has shape {values.shape}, but the variable has shape {(*shape, *event)}; "
            f"give one value per entry and NaN where it is missing{_column_hint(values.shape)}"
        )
    values = without_missing(name, values, missing, len(event))
    flat = values.reshape(-1, *event)
    gone = np.asarray(np.isnan(flat).any(axis=-1) if event else np.isnan(flat))
    some_gone = bool(gone.any())
    seen = flat[~gone] if some_gone else flat
    if np.isinf(seen).any():
        raise ModelError(
            f"variable {name!r}: observed holds infinite values; remove them or mark them missing with NaN"
        )
    ok = np.asarray(family.in_support(seen))
    if family is Categorical:
        ok = ok & (seen < dimension)
    if not ok.all():
        worst = seen[~ok][0]
        raise ModelError(
            f"variable {name!r}: observed value {worst} is impossible; a {family.__name__} takes {_SUPPORT[family]}"
        )
    if some_gone:
        flat = np.where(gone[:, None] if event else gone, np.nan, flat)
    if issubclass(family, Categorical):
        return family.point_mass(flat, cast(int, dimension))
    return family.point_mass(flat)


def check_graph(graph: Graph) -> None:
    """Check the whole model before a run: it must not be empty, and every variable needs a prior and a factor."""
    if not graph.nodes:
        raise ModelError("the model is empty; add variables with model.gaussian(...), model.bernoulli(...) and so on")
    met = graph.meetings()
    for node in graph.nodes:
        meets = met.get(node.position, [])
        if not meets:
            raise ModelError(
                f"variable {node.name!r} is disconnected: no prior and no factor mentions it; "
                "give it a prior with model.attach(variable, message) or remove it"
            )
        if _known_vector(graph, node.position, meets):
            raise ModelError(
                f"X @ {node.name!r}: the vector {node.name!r} is observed, so the product is known; write it as numbers"
            )
        made = any(port in plate.factor.children for plate, port in meets)
        if not made and not node.fully_observed:
            raise ModelError(
                f"variable {node.name!r} has no prior, so its posterior would be improper; "
                "give it one with model.attach(variable, message) or make it with model.gaussian(...)"
            )


def _known_vector(graph: Graph, position: int, meets: list[tuple[Plate, str]]) -> bool:
    """Return whether an observed vector stands in a product with a matrix."""
    seen = graph.nodes[position].observed
    if seen is None or seen.point is None:
        return False
    shared = [plate.edges[port] for plate, port in meets if plate.edges[port].shared]
    return any(seen.is_point[edge.entries(1)].any() for edge in shared)
