"""A factor's learned operators in one file: magic word, version, checksum, then arrays and JSON in a zip archive.

No code is stored and none is run on reading. Everything is checked before anything is changed: the checksum first, so
a damaged file is found out whatever was damaged, then the format, the factor's signature and every array. Writing
goes to a file beside the target that takes its place in one step.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import secrets
import struct
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from heliograph.errors import FileFormatError, ModelError
from heliograph.factors.black_box import BlackBox
from heliograph.operators.packing import family_named, part
from heliograph.operators.registry import operator_from_state
from heliograph.oracles import Sampler, sampler_of

__all__ = ["FORMAT", "load_factor", "read_into", "save_factor"]

FORMAT = 1  # raised when an older program could not read what this one writes
_MAGIC = b"heliogr\x00"
_HEAD = struct.Struct("<8sIQ32s")  # magic, version, length of what follows, its checksum


def save_factor(factor: BlackBox, path: str | os.PathLike[str]) -> None:
    """Write all that the factor has learned to `path`, replacing what was there in one step."""
    arrays: dict[str, np.ndarray] = {}
    header: dict[str, Any] = {"factor": _described(factor.sampler, factor), "operators": []}
    for k, (key, operator) in enumerate(factor.operators.items()):
        if not all(hasattr(operator, name) for name in ("state", "settings", "name")):
            raise ModelError(
                f"operator {key!r} of factor {factor.name!r} has no state() and cannot be saved; drop it from "
                "factor.operators first"
            )
        inside, told = operator.state()
        arrays |= {f"{k}/{name}": a for name, a in inside.items()}
        header["operators"].append({"name": operator.name, "settings": operator.settings, "state": told})
    _write(Path(path), arrays, header)


def load_factor(path: str | os.PathLike[str], function: Callable[..., Any] | BlackBox) -> BlackBox:
    """A factor of `function` that knows what the file holds.

    `function` is the plain function, or a factor made of it (which is left as it is).
    """
    arrays, header = _read(Path(path))
    with _sound(path):
        told = header["factor"]
        if isinstance(function, BlackBox):
            old, sampler = function, function.sampler
            new = BlackBox(sampler, dimension=old.dimension, data_ranks=old.data_ranks, oracle=old.oracle)
        else:
            output = family_named(told["output"])
            sampler = sampler_of(
                function,
                output,
                name=str(told["name"]),
                vectorized=bool(told["vectorized"]),
                expensive=bool(told["expensive"]),
            )
            ranks = {str(k): int(v) for k, v in told["data_ranks"].items() if k in sampler.inputs}
            new = BlackBox(sampler, dimension=told["dimension"], data_ranks=ranks)
        _take(new, arrays, header)
    return new


def read_into(factor: BlackBox, path: str | os.PathLike[str]) -> None:
    """Replace what `factor` has learned by what the file holds; on any error it stays as it was."""
    arrays, header = _read(Path(path))
    with _sound(path):
        _take(factor, arrays, header)


# ---- what is in the file ------------------------------------------------------------------------------------------
def _described(sampler: Sampler, factor: BlackBox) -> dict[str, Any]:
    return {
        "name": sampler.name,
        "inputs": list(sampler.inputs),
        "output": sampler.output.__name__,
        "stochastic": sampler.stochastic,
        "vectorized": sampler.vectorized,
        "expensive": sampler.expensive,
        "dimension": factor.dimension,
        "data_ranks": dict(factor.data_ranks),
        "counts": {"n_asked": factor.n_asked, "n_messages": factor.n_messages, "n_evaluations": factor.n_evaluations},
    }


def _take(factor: BlackBox, arrays: Mapping[str, np.ndarray], header: Mapping[str, Any]) -> None:
    told, sampler = header["factor"], factor.sampler
    theirs = (tuple(told["inputs"]), told["output"], bool(told["stochastic"]))
    ours = (sampler.inputs, sampler.output.__name__, sampler.stochastic)
    if theirs != ours:
        raise FileFormatError(
            f"the file was learned by a factor {told['name']}({', '.join(theirs[0])}) -> {theirs[1]}"
            f"{' with rng' if theirs[2] else ''}, and {sampler.name}({', '.join(ours[0])}) -> {ours[1]}"
            f"{' with rng' if ours[2] else ''} is another: load it with the function it was made of"
        )
    operators = {}
    for k, entry in enumerate(header["operators"]):
        operator = operator_from_state(entry["name"], entry["settings"], part(arrays, f"{k}/"), entry["state"])
        operators[operator.key] = operator
    counts = {name: int(told["counts"][name]) for name in ("n_asked", "n_messages", "n_evaluations")}
    # nothing below can fail: the factor changes whole or not at all
    factor.operators = operators
    vars(factor).update(counts)


# ---- the file itself ----------------------------------------------------------------------------------------------
def _write(path: Path, arrays: Mapping[str, np.ndarray], header: Mapping[str, Any]) -> None:
    inside = io.BytesIO()
    text = json.dumps(header, allow_nan=False).encode()
    with zipfile.ZipFile(inside, "w", zipfile.ZIP_DEFLATED) as archive:
        # a fixed date, so that the same knowledge is the same bytes
        archive.writestr(zipfile.ZipInfo("header.json"), text, zipfile.ZIP_DEFLATED)
        archive.writestr(zipfile.ZipInfo("names.json"), json.dumps(list(arrays)).encode(), zipfile.ZIP_DEFLATED)
        for k, a in enumerate(arrays.values()):
            one = io.BytesIO()
            np.save(one, np.asarray(a), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{k}.npy"), one.getvalue(), zipfile.ZIP_DEFLATED)
    body = inside.getvalue()
    head = _HEAD.pack(_MAGIC, FORMAT, len(body), hashlib.sha256(struct.pack("<IQ", FORMAT, len(body)) + body).digest())
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(head + body)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _read(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    data = path.read_bytes()
    if len(data) < _HEAD.size or data[: len(_MAGIC)] != _MAGIC:
        raise FileFormatError(f"{path.name} is not a saved factor (its first bytes are not ours)")
    _, version, length, checksum = _HEAD.unpack_from(data)
    if not 1 <= version <= FORMAT:
        raise FileFormatError(f"{path.name} has format {version}, and this version of Heliograph reads up to {FORMAT}")
    body = data[_HEAD.size :]
    if len(body) != length:
        raise FileFormatError(f"{path.name} is truncated or has grown: {len(body)} bytes where {length} were written")
    if hashlib.sha256(struct.pack("<IQ", version, length) + body).digest() != checksum:
        raise FileFormatError(f"{path.name} is corrupt: its checksum does not match its contents")
    with _sound(path), zipfile.ZipFile(io.BytesIO(body)) as archive:
        header = json.loads(archive.read("header.json"))
        names = json.loads(archive.read("names.json"))
        arrays = {
            str(name): np.load(io.BytesIO(archive.read(f"{k}.npy")), allow_pickle=False) for k, name in enumerate(names)
        }
    return arrays, header


class _sound:
    """A context in which whatever goes wrong with a file's contents is said as one kind of error."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.name = Path(path).name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, Exception) and not isinstance(error, FileFormatError):
            raise FileFormatError(
                f"{self.name} passes its checksum and still makes no sense ({type(error).__name__}: {error}); it was "
                "written by another program or another version"
            ) from error
