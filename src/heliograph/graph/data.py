"""Named data of a model, which can be given again: arrays that remember how they were made from what the user named."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from heliograph.errors import ModelError
from heliograph.graph.quantity import Quantity

__all__ = ["Data", "Formula", "inside", "is_long", "kept", "labels_of", "plain", "roots_of", "without_labels"]

T = TypeVar("T")
_ATOMS = frozenset({type(None), bool, int, float, str})  # most arguments of most calls: nothing is inside them


class _Recipe(NamedTuple):
    """How an array is made of others."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


class Formula:
    """What depends on hyper-parameters: the symbols of `graph.symbols`."""

    __slots__ = ()

    @property
    def value(self) -> np.ndarray:
        """Its value where the model is written."""
        raise NotImplementedError  # pragma: no cover

    def sources(self) -> Iterator[Data]:
        """The named data that it is made of."""
        raise NotImplementedError  # pragma: no cover


class Data(NDArrayOperatorsMixin):
    """An array with a name, or one that was computed from such arrays.

    It behaves like the NumPy array that it holds: arithmetic, indexing and NumPy's functions give `Data` again, so that
    ``model.observe(X=...)`` can compute ``np.log(X)`` or ``X[:, 0]`` anew for other data. What other libraries make of it is
    a plain array, which stays as it is.
    """

    def __init__(self, name: str, value: np.ndarray | None = None, recipe: _Recipe | None = None) -> None:
        self.name = name
        self._value = value
        self._recipe = recipe
        self.labels: tuple[str, ...] | None = None  # of its columns

    # ---- the array ----------------------------------------------------------------------------------------------
    @property
    def value(self) -> np.ndarray:
        """The array as it is now."""
        if self._recipe is None:
            assert self._value is not None
            return self._value
        function, args, kwargs = self._recipe
        return function(*plain(args), **plain(kwargs))

    def set(self, value: np.ndarray) -> None:
        """Hold another array."""
        if self._recipe is not None:
            raise ModelError(f"{self.name!r} is computed from other data and cannot be given itself")
        self._value = value

    def sources(self) -> Iterator[Data]:
        """The named data that it is made of."""
        if self._recipe is None:
            yield self
        else:
            yield from roots_of((self._recipe.args, self._recipe.kwargs))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return np.shape(self.value)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return np.ndim(self.value)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the entries."""
        return np.asarray(self.value).dtype

    @property
    def rows(self) -> Data:
        """The length of the first axis, for ``size=``: it follows the data, where ``len(data)`` is a number once and for all."""
        return _derived(len, self)

    @property
    def T(self) -> Data:
        """The transpose."""
        return _derived(np.transpose, self)

    def reshape(self, *shape: int) -> Data:
        """The same entries in another shape."""
        return _derived(np.reshape, self, shape[0] if len(shape) == 1 else shape)

    def astype(self, dtype: Any) -> Data:
        """The same entries as another type."""
        return _derived(np.asarray, self, dtype)

    def __getitem__(self, key: Any) -> Data:
        return _derived(_item, self, key)

    def __len__(self) -> int:
        return len(self.value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.value, dtype=dtype, copy=copy)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if any(getattr(x, "__array_ufunc__", 0) is None or isinstance(x, (Quantity, Formula)) for x in inputs):
            return NotImplemented
        return _derived(_by_ufunc, ufunc, method, *inputs, **kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if any(issubclass(t, (Quantity, Formula)) for t in types):
            return NotImplemented
        return _derived(function, *args, **kwargs)

    def __repr__(self) -> str:
        return f"Data({self.name!r}, shape={self.shape})"


def _by_ufunc(ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    return getattr(ufunc, method)(*inputs, **kwargs)


def _item(x: Any, key: Any) -> Any:
    return x[key]


def _derived(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Data:
    made = Data("", recipe=_Recipe(function, kept(args), kept(kwargs)))
    made.name = ", ".join(dict.fromkeys(d.name for d in made.sources()))
    np.shape(made.value)  # what cannot be computed is an error here, and not where it is used
    return made


def plain(value: Any) -> Any:
    """`value` with every `Data`, symbol and table with labels replaced by its array, also in lists, tuples and dictionaries."""
    if type(value) in _ATOMS or type(value) is np.ndarray:
        return value
    if isinstance(value, (Data, Formula)):
        return value.value
    if isinstance(value, (dict, tuple)):
        return _each(cast(Any, value), plain)
    if isinstance(value, list) and _holds_objects(cast("list[Any]", value)):
        return [plain(v) for v in cast("list[Any]", value)]
    return without_labels(cast(Any, value))


def kept(value: Any) -> Any:
    """`value` with a copy of every array, also in lists, tuples and dictionaries, which its owner may change later."""
    if type(value) in _ATOMS:
        return value
    if isinstance(value, np.ndarray):
        return cast(Any, value).copy()
    if isinstance(value, (dict, tuple)):
        return _each(cast(Any, value), kept)
    if isinstance(value, list):
        inside = cast("list[Any]", value)
        return [kept(v) for v in inside] if _holds_objects(inside) else list(inside)
    return value.copy() if _of_pandas(value) or hasattr(value, "tocsr") else value


def _each(value: dict[Any, Any] | tuple[Any, ...], change: Callable[[Any], Any]) -> Any:
    """The same dictionary, tuple or record with every element changed."""
    if isinstance(value, dict):
        return {k: change(v) for k, v in value.items()}
    inside = [change(v) for v in value]
    kind: Any = value.__class__
    return kind(*inside) if hasattr(kind, "_fields") else tuple(inside)


def without_labels(value: Any) -> Any:
    """The array of a pandas Series, Index or DataFrame, with NaN where a value is missing; anything else as it is."""
    if not _of_pandas(value) or not hasattr(value, "to_numpy"):
        return value
    array = value.to_numpy()
    if array.dtype != object:
        return array
    try:
        return value.to_numpy(dtype=float, na_value=np.nan)
    except (TypeError, ValueError):
        return array  # words, which whoever takes the numbers will name


def _of_pandas(value: Any) -> bool:
    return type(value).__module__.split(".")[0] == "pandas"


def labels_of(value: Any) -> tuple[str, ...] | None:
    """The names of the columns of a table; None of anything else."""
    columns = getattr(value, "columns", None) if _of_pandas(value) else None
    return None if columns is None else tuple(str(c) for c in columns)


def inside(value: Any, kind: type[T] | tuple[type[T], ...]) -> Iterator[T]:
    """What is of some kind inside a value, also in lists, tuples and dictionaries; long data are not searched."""
    if isinstance(value, kind):
        yield value
    elif isinstance(value, dict):
        for v in cast("dict[Any, Any]", value).values():
            yield from inside(v, kind)
    elif isinstance(value, (list, tuple)) and not is_long(cast("Sequence[Any]", value)):
        for v in cast("Sequence[Any]", value):
            yield from inside(v, kind)


def is_long(values: Sequence[Any]) -> bool:
    """Whether a sequence is long data, which is not searched."""
    return len(values) > 64 and isinstance(values[0], (int, float)) and isinstance(values[-1], (int, float))


def roots_of(value: Any) -> Iterator[Data]:
    """The named data inside a value."""
    for part in inside(value, (Data, Formula)):
        yield from part.sources()


def _holds_objects(values: list[Any]) -> bool:
    """Whether a list may hold anything but numbers."""
    return bool(values) and not isinstance(values[0], (int, float, str))
