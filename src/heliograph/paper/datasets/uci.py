"""The four UCI sets of the paper's experiment 5: reading, splitting, standardising.

The paper standardised each whole set (standard deviations with n - 1), drew 200 training rows in proportion to the
classes, rounded up in each class (so 201), half the rows of fertility, and used no intercept. Standardising with rows
that are later tested on is a small leak; ``standardise="train"`` uses the training rows alone.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import numpy as np

from heliograph.errors import FileFormatError, ModelError

__all__ = ["NAMES", "Dataset", "Split", "load", "read_splits", "split"]

LICENCE = "CC BY 4.0"
_SOURCES = {
    "banknote": "V. Lohweg (2012), Banknote Authentication, UCI, doi 10.24432/C55P57",
    "blood_transfusion": "I-C. Yeh (2008), Blood Transfusion Service Center, UCI, doi 10.24432/C5GS39",
    "fertility": "D. Gil and J. Girela (2012), Fertility, UCI, doi 10.24432/C5Z01Z",
    "ionosphere": "V. Sigillito, S. Wing, L. Hutton and K. Baker (1989), Ionosphere, UCI, doi 10.24432/C5W01B",
}
NAMES = tuple(_SOURCES)  # in the order of the paper's text


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows with labels 0 and 1, as measured."""

    name: str
    X: np.ndarray  # (n, d)
    y: np.ndarray  # (n,) of 0. and 1.
    feature_names: tuple[str, ...]
    source: str = ""
    licence: str = ""


class Split(NamedTuple):
    """Rows to learn from and rows to be tested on."""

    name: str
    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    feature_names: tuple[str, ...]


def load(name: str) -> Dataset:
    """One of the sets that come with the package.

    >>> banknote = load("banknote")
    >>> banknote.X.shape, banknote.feature_names
    ((1372, 4), ('variance', 'skewness', 'curtosis', 'entropy'))
    """
    if name not in _SOURCES:
        raise ModelError(f"there is no data set {name!r}; there are {', '.join(NAMES)}")
    packed = files("heliograph.paper.datasets").joinpath("uci_files", f"{name}.csv.gz").read_bytes()
    X, y, feature_names = _parse(gzip.decompress(packed).decode(), name)
    return Dataset(name, X, y, feature_names, _SOURCES[name], LICENCE)


def split(
    dataset: Dataset,
    seed: int | np.random.Generator,
    *,
    n_train: int | None = None,
    train_fraction: float | None = None,
    standardise: str | None = "whole",
    stratified: bool = True,
) -> Split:
    """Draw training rows without replacement; the rest are test rows, both in the order of the set.

    By default as in the paper: 200 rows, or half of a set that has no more than 200, in proportion to the classes and
    rounded up in each. `standardise` is "whole" (as in the paper), "train" (from training rows only) or None; columns
    that are constant among the rows it looks at are dropped.

    >>> s = split(load("ionosphere"), seed=0)
    >>> s.X_train.shape, s.X_test.shape
    ((201, 33), (150, 33))
    """
    X, y = dataset.X, dataset.y
    if n_train is not None and train_fraction is not None:
        raise ModelError("give n_train or train_fraction, not both")
    if train_fraction is not None:
        n_train = round(train_fraction * len(y))
    elif n_train is None:
        n_train = 200 if len(y) > 200 else len(y) // 2
    if not 0 < n_train < len(y):
        raise ModelError(f"{n_train} training rows of {len(y)} leave nothing to learn from or to test on")
    if standardise not in ("whole", "train", None):
        raise ModelError(f"standardise must be 'whole', 'train' or None, not {standardise!r}")
    rng = np.random.default_rng(seed)
    is_train = np.zeros(len(y), dtype=bool)
    for members in [np.flatnonzero(y == c) for c in np.unique(y)] if stratified else [np.arange(len(y))]:
        n_drawn = -(-n_train * len(members) // len(y))  # rounded up, in whole numbers
        is_train[rng.permutation(members)[:n_drawn]] = True
    names = dataset.feature_names
    if standardise is not None:
        seen = X if standardise == "whole" else X[is_train]
        kept = np.ptp(seen, axis=0) > 0
        X = (X[:, kept] - seen[:, kept].mean(axis=0)) / seen[:, kept].std(axis=0, ddof=1)
        names = tuple(name for name, k in zip(names, kept, strict=True) if k)
    return Split(dataset.name, X[is_train], y[is_train], X[~is_train], y[~is_train], names)


def read_splits(folder: str | Path, names: tuple[str, ...] | None = None) -> dict[str, Split]:
    """Every pair ``NAME_train.csv``, ``NAME_test.csv`` of a folder: a header line, then rows ending with the label.

    With `names` only those, in that order, and it is an error if one is not there.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise FileFormatError(f"there is no folder {str(folder)!r} to read splits from")
    found = sorted(path.name.removesuffix("_train.csv") for path in folder.glob("*_train.csv"))
    if not found and names is None:
        raise FileFormatError(f"the folder {str(folder)!r} holds no file NAME_train.csv")
    splits = {}
    for name in found if names is None else names:
        parts = []
        for part in ("train", "test"):
            path = folder / f"{name}_{part}.csv"
            if not path.is_file():
                raise FileFormatError(f"the folder {str(folder)!r} has no file {path.name!r}")
            parts.append(_parse(path.read_text(encoding="utf-8"), path.name))
        (X, y, columns), (X_test, y_test, test_columns) = parts
        if columns != test_columns:
            raise FileFormatError(f"the columns of {name}_train.csv and {name}_test.csv differ")
        splits[name] = Split(name, X, y, X_test, y_test, columns)
    return splits


def _parse(text: str, name: str) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) < 2:
        raise FileFormatError(f"{name} has no rows below a header line")
    columns = tuple(word.strip() for word in lines[0].split(","))
    try:
        table = np.array([[float(word) for word in line.split(",")] for line in lines[1:]])
    except ValueError as error:  # a word, or rows of different lengths
        raise FileFormatError(f"{name} is not a table of numbers below a header line: {error}") from None
    if table.shape[1] != len(columns) or len(columns) < 2 or not np.isfinite(table).all():
        raise FileFormatError(f"{name} needs in every row {len(columns)} finite numbers, the last one the label")
    if not np.isin(table[:, -1], (0.0, 1.0)).all():
        raise FileFormatError(f"the last column of {name} must hold the label, 0 or 1")
    return table[:, :-1], table[:, -1], columns[:-1]
