"""An experiment, and its parts: units of work that depend on nothing but their settings, kept on disk as they finish.

A part is a function at the top of a module, with plain settings that JSON can hold. Its result is kept under a name made
from both and from the code that the function may run, so that the same command run again, after an interruption or with
other jobs, does only what is left, and a result of other code is never taken for this one's. A result may hold NumPy
arrays; they are kept beside the numbers.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from heliograph.errors import FileFormatError
from heliograph.paper.running.fingerprint import code_behind, files_in
from heliograph.storage import flatten, read_archive, understanding, unflatten, write_archive

__all__ = ["Experiment", "Json", "Outcome", "Part", "Store", "plain_settings", "run_parts", "split_by_method"]


_FORMAT = 1  # raise when results of older versions can no longer be read


class Part(NamedTuple):
    """One unit of work: `work(**settings)` returns a dict of numbers, lists, strings and arrays."""

    name: str  # what a person reads on the progress bar, and the beginning of the file's name
    work: Callable[..., dict[str, Any]]
    settings: Mapping[str, Any]

    @property
    def key(self) -> str:
        """The file's name: the same work, settings, code and data files give the same one."""
        work = [self.work.__module__, self.work.__qualname__, code_behind(self.work.__module__)]
        settings = dict(self.settings)
        if settings.get("splits"):  # a folder's data count, not where it lies
            settings["splits"] = files_in(settings["splits"])
        text = json.dumps([_FORMAT, *work, settings], sort_keys=True, default=str)
        safe = "".join(c if c.isalnum() or c in "-_." else "-" for c in self.name)
        return f"{safe}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


class Store:
    """Finished parts in a folder, each written whole or not at all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, part: Part) -> Path:
        """Where a part's result lies."""
        return self.folder / f"{part.key}.part"

    def read(self, part: Part) -> dict[str, Any] | None:
        """The result of a finished part; None if there is none, or what is there cannot be read."""
        try:
            kept = read_archive(self.path(part), "finished part")
            with understanding(self.path(part)):
                return unflatten(kept.header, kept.arrays)
        except (FileFormatError, OSError):
            return None  # missing or damaged: the part is simply run

    def write(self, part: Part, result: dict[str, Any]) -> None:
        """Keep a result."""
        self.folder.mkdir(parents=True, exist_ok=True)
        arrays: dict[str, np.ndarray] = {}
        header = flatten(result, arrays)
        write_archive(self.path(part), arrays, header, allow_nan=True)


def _call(part: Part) -> dict[str, Any]:
    with threadpool_limits(1):  # small matrices: BLAS threads only get in each other's way
        return part.work(**part.settings)


def _raise(part: Part, error: Exception) -> None:
    raise error


def run_parts(
    parts: Sequence[Part],
    store: Store,
    jobs: int = 1,
    tell: Callable[[Part, bool], None] = lambda part, reused: None,
    fail: Callable[[Part, Exception], None] = _raise,
) -> Iterator[tuple[Part, dict[str, Any] | None]]:
    """Yield every part with its result as it is ready: kept ones first, then new ones, `jobs` at a time.

    `tell` is called for each finished part, with whether it was already there, and `fail` for each that ended in an error;
    unless it raises that error, the part is yielded with None and the others go on. Interrupted, it leaves all finished parts kept.
    """
    left = []
    for part in parts:
        kept = store.read(part)
        if kept is None:
            left.append(part)
        else:
            tell(part, True)
            yield part, kept
    if jobs <= 1:
        for part in left:
            yield part, _settle(part, store, lambda part=part: _call(part), tell, fail)
        return
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_serve)
    try:
        waiting = {pool.submit(_call, part): part for part in left}
        while waiting:
            done, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                part = waiting.pop(future)
                yield part, _settle(part, store, future.result, tell, fail)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _settle(
    part: Part,
    store: Store,
    result: Callable[[], dict[str, Any]],
    tell: Callable[[Part, bool], None],
    fail: Callable[[Part, Exception], None],
) -> dict[str, Any] | None:
    """Keep what a part gives, and read it back; or say what went wrong."""
    try:
        made = result()
    except Exception as error:  # whatever the error, the other parts do not need this one
        fail(part, error)
        return None
    store.write(part, made)
    tell(part, False)
    return _again(store, part)


def _serve() -> None:
    """A worker leaves Ctrl-C to its parent, and does not outlive it, however it ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:
        Thread(target=lambda: (parent.join(), os._exit(1)), daemon=True).start()


def _again(store: Store, part: Part) -> dict[str, Any]:
    """The result as a later run would read it, so that fresh and reused results are the same."""
    kept = store.read(part)
    if kept is None:
        raise OSError(f"the result of {part.name!r} could not be read back from {store.path(part)}")
    return kept


Json = Mapping[str, Any]


class Outcome(NamedTuple):
    """The result of an experiment."""

    json: dict[str, Any]  # settings, and per method what the tables show
    series: dict[str, Any]  # nested dicts of arrays, for the figures only


class Experiment(NamedTuple):
    """One experiment of the paper."""

    name: str
    title: str
    lead: str  # what the page begins with
    quick: Mapping[str, Any]  # settings of at most two minutes on two cores
    full: Mapping[str, Any]  # the paper's sizes
    parts: Callable[[Mapping[str, Any], int], Sequence[Part]]  # settings, seed
    assemble: Callable[[Mapping[str, Any], int, Mapping[str, dict[str, Any]]], Outcome]  # + results by part name
    headlines: Callable[[Json], dict[str, dict[str, Any]]]  # of every method, the numbers shown as a spread over seeds
    tables: Callable[[Json], list[Any]]
    sentences: Callable[[Json], list[str]]
    claims: Callable[[Json], list[Any]]  # what the paper says, what we find, and the verdict
    draw: Callable[[dict[str, Any], dict[str, Any]], list[Any]]  # JSON and series to pictures
    seeds: float = 1.0  # share of the seeds asked for that this experiment is run with
    first_seed_only: tuple[str, ...] = ()  # methods too slow for more than one


def plain_settings(settings: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """The settings and the seed as JSON has them."""
    return {**{k: list(v) if isinstance(v, tuple) else v for k, v in settings.items()}, "seed": seed}


def split_by_method(
    settings: Mapping[str, Any], results: Mapping[str, dict[str, Any]], prefix: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the tables and what the figures show of each method whose part, named `prefix` and the method, was run."""
    rows = {m: results[f"{prefix} {m}"] for m in settings["methods"] if f"{prefix} {m}" in results}
    tables = {m: {k: v for k, v in row.items() if k != "series"} for m, row in rows.items()}
    return tables, {m: row["series"] for m, row in rows.items()}
