"""Files: an archive of JSON and arrays, written in one step, checksummed, and read by one reader.

A file is a magic word, version, length and checksum, then JSON and arrays in a zip archive. No code is stored and none is run on
reading. The checksum is compared first, so any damage is detected, and then the unpacked size that the archive states, so that a
small file cannot fill the memory. Equal contents give equal bytes. The meaning of an
archive is defined by its writers: learned factors (`factors.black_box.saving`) and finished parts of experiments
(`paper.running.parts`).
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import secrets
import struct
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from heliograph.errors import FileFormatError

__all__ = [
    "FORMAT",
    "HEAD",
    "MAGIC",
    "Archive",
    "below",
    "flatten",
    "read_archive",
    "understanding",
    "unflatten",
    "write_archive",
    "write_whole",
]


FORMAT = 1  # raised when an older program could not read what this one writes
MAGIC = b"heliogr\x00"
HEAD = struct.Struct("<8sIQ32s")  # magic, version, length of what follows, its checksum
MOST_BYTES = 2**34  # of everything unpacked, 16 GB: an operator of a million messages has 1 GB


class Archive(NamedTuple):
    """What a file holds."""

    arrays: dict[str, np.ndarray]
    header: Any  # what JSON can hold


def write_archive(
    path: str | os.PathLike[str], arrays: Mapping[str, np.ndarray], header: Any, *, allow_nan: bool = False
) -> None:
    """Write arrays and a header to `path`, replacing what was there in one step.

    Parameters
    ----------
    path
        The file.
    arrays
        Arrays of numbers by name; arrays of objects are refused.
    header
        What JSON can hold.
    allow_nan
        Whether numbers of the header may be NaN or infinite, which other programs may not read.
    """
    inside = io.BytesIO()
    with zipfile.ZipFile(inside, "w", zipfile.ZIP_DEFLATED) as archive:
        _put(archive, "header.json", json.dumps(header, allow_nan=allow_nan).encode())
        _put(archive, "names.json", json.dumps(list(arrays)).encode())
        for k, a in enumerate(arrays.values()):
            one = io.BytesIO()
            np.save(one, np.asarray(a), allow_pickle=False)
            _put(archive, f"{k}.npy", one.getvalue())
    body = inside.getvalue()
    write_whole(path, HEAD.pack(MAGIC, FORMAT, len(body), _checksum(FORMAT, body)) + body)


def read_archive(path: str | os.PathLike[str], what: str = "file of Heliograph") -> Archive:
    """Read a file that `write_archive` wrote; whatever is wrong with it is a `FileFormatError`.

    `what` is what it should be, for the sentence about a file that is something else.
    """
    name, data = Path(path).name, Path(path).read_bytes()
    if len(data) < HEAD.size or data[: len(MAGIC)] != MAGIC:
        raise FileFormatError(f"{name} is not a {what} (its first bytes are not ours)")
    _, version, length, checksum = HEAD.unpack_from(data)
    if not 1 <= version <= FORMAT:
        raise FileFormatError(f"{name} has format {version}, and this version of Heliograph reads up to {FORMAT}")
    body = data[HEAD.size :]
    if len(body) != length:
        raise FileFormatError(f"{name} is truncated or has grown: {len(body)} bytes where {length} were written")
    if _checksum(version, body) != checksum:
        raise FileFormatError(f"{name} is corrupt: its checksum does not match its contents")
    with understanding(path), zipfile.ZipFile(io.BytesIO(body)) as archive:
        size = sum(entry.file_size for entry in archive.infolist())
        if size > MOST_BYTES:
            raise FileFormatError(f"{name} would unpack to {size} bytes, and no file of ours has over {MOST_BYTES}")
        header = json.loads(archive.read("header.json"))
        names = json.loads(archive.read("names.json"))
        arrays = {
            str(key): np.load(io.BytesIO(archive.read(f"{k}.npy")), allow_pickle=False) for k, key in enumerate(names)
        }
    return Archive(arrays, header)


@contextmanager
def understanding(path: str | os.PathLike[str]) -> Iterator[None]:
    """A context in which any problem with a file's contents becomes a `FileFormatError`."""
    try:
        yield
    except FileFormatError:
        raise
    except Exception as error:
        raise FileFormatError(
            f"{Path(path).name} passes its checksum and still makes no sense ({type(error).__name__}: {error}); it was "
            "written by another program or another version"
        ) from error


def below(arrays: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """The arrays whose names begin with `prefix`, without it.

    >>> below({"0/mean": np.zeros(1), "1/mean": np.ones(1)}, "1/")
    {'mean': array([1.])}
    """
    return {k[len(prefix) :]: a for k, a in arrays.items() if k.startswith(prefix)}


def _put(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    """Add one entry, with a fixed date, so that the same contents are the same bytes."""
    archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)


def _checksum(version: int, body: bytes) -> bytes:
    return hashlib.sha256(struct.pack("<IQ", version, len(body)) + body).digest()


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Write `data` beside `path` and put it in its place in one step: a kill or a full disk leaves what was there."""
    path = Path(path)
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


_ARRAY = "__array__"  # the one key of the dict that stands for an array


def flatten(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """`value` with its arrays moved to `arrays` and a name left in the place of each.

    >>> arrays = {}
    >>> flatten({"x": [1, np.zeros(2)]}, arrays), list(arrays)
    ({'x': [1, {'__array__': '0'}]}, ['0'])
    """
    if isinstance(value, np.ndarray):
        arrays[str(len(arrays))] = value
        return {_ARRAY: str(len(arrays) - 1)}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {str(k): flatten(v, arrays) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [flatten(v, arrays) for v in value]
    return value


def unflatten(value: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """The reverse of `flatten`; tuples come back as lists."""
    if isinstance(value, dict):
        if set(value) == {_ARRAY}:
            return arrays[value[_ARRAY]]
        return {k: unflatten(v, arrays) for k, v in value.items()}
    if isinstance(value, list):
        return [unflatten(v, arrays) for v in value]
    return value
