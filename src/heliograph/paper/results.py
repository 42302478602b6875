"""The folder of results.

It holds ``NAME.json`` (what tables and checks read), ``NAME.series.npz`` (what the figures need besides) and ``parts/``
(finished parts, reused by the next run of the same settings).
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from heliograph.errors import ModelError
from heliograph.paper.registry import EXPERIMENTS
from heliograph.paper.running.parts import Outcome
from heliograph.storage import write_whole

__all__ = ["read_results", "strict_json", "write_outcome"]


def strict_json(value: Any) -> Any:
    """The value with plain Python numbers; what JSON has no number for (NaN, infinity) becomes None.

    >>> strict_json({"a": np.float64(0.5), "b": [float("inf"), 2]})
    {'a': 0.5, 'b': [None, 2]}
    """
    if isinstance(value, Mapping):
        return {str(k): strict_json(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [strict_json(v) for v in value]
    if isinstance(value, np.ndarray):
        return strict_json(value.tolist())
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_outcome(out: Path, outcome: Outcome) -> None:
    """Keep an outcome as ``NAME.json`` and ``NAME.series.npz``; each file is written whole or not at all."""
    out.mkdir(parents=True, exist_ok=True)
    name = outcome.json["experiment"]
    paths: list[list[str]] = []
    arrays: list[np.ndarray] = []
    _flatten(outcome.series, [], paths, arrays)
    named: dict[str, Any] = {"index": np.array(json.dumps(paths)), **{f"a{k}": a for k, a in enumerate(arrays)}}
    series = io.BytesIO()
    np.savez_compressed(series, **named)
    write_whole(out / f"{name}.series.npz", series.getvalue())
    text = json.dumps(strict_json(outcome.json), indent=1, allow_nan=False) + "\n"
    write_whole(out / f"{name}.json", text.encode())


def _flatten(value: Any, path: list[str], paths: list[list[str]], arrays: list[np.ndarray]) -> None:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            _flatten(inner, [*path, str(key)], paths, arrays)
    else:
        paths.append(path)
        arrays.append(np.asarray(value))


def read_results(out: Path) -> dict[str, Outcome]:
    """Every outcome kept in a folder, in the paper's order."""
    found = {}
    for name in EXPERIMENTS:
        path = out / f"{name}.json"
        if not path.exists():
            continue
        series: dict[str, Any] = {}
        beside = out / f"{name}.series.npz"
        if beside.exists():
            with np.load(beside, allow_pickle=False) as file:
                for k, keys in enumerate(json.loads(str(file["index"]))):
                    inner = series
                    for key in keys[:-1]:
                        inner = inner.setdefault(key, {})
                    inner[keys[-1]] = file[f"a{k}"]
        found[name] = Outcome(json.loads(path.read_text()), series)
    if not found:
        raise ModelError(f"There are no results in the folder {out.name!r}; run `heliograph reproduce` first.")
    return found
