"""A factor's learned operators in one file, an archive of `storage`.

Everything is checked before anything is changed: the file first, then the factor's signature and every array.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

import numpy as np

from heliograph.errors import FileFormatError, ModelError
from heliograph.factors.black_box.checking import FunctionRecord, Witness
from heliograph.operators.registry import operator_from_state
from heliograph.oracles import Sampler
from heliograph.storage import below, read_archive, understanding, write_archive

__all__ = ["WHAT", "Learned", "read_into", "save_factor", "take"]

WHAT = "saved factor"


class Learned(Protocol):
    """What is kept of a factor."""

    name: ClassVar[str]
    data_ranks: ClassVar[dict[str, int]]
    sampler: Sampler
    operators: dict[str, Any]
    form_operators: dict[tuple[str, ...], dict[str, Any]]
    function_records: dict[tuple[str, ...], FunctionRecord]
    dimension: int | tuple[int | None, ...] | None
    n_asked: int
    n_messages: int
    n_evaluations: int


def save_factor(factor: Learned, path: str | os.PathLike[str]) -> None:
    """Write all that the factor has learned to `path`, replacing what was there in one step."""
    arrays: dict[str, np.ndarray] = {}
    header: dict[str, Any] = {"factor": _described(factor.sampler, factor)}
    header["operators"] = _kept(factor.name, factor.operators, "", arrays)
    header["forms"] = [
        {"joined": list(joined), "operators": _kept(factor.name, operators, f"form {k}/", arrays)}
        for k, (joined, operators) in enumerate(factor.form_operators.items())
    ]
    header["witnesses"] = _witnesses(factor.function_records, arrays)
    write_archive(path, arrays, header)


def _witnesses(
    records: Mapping[tuple[str, ...], FunctionRecord], arrays: dict[str, np.ndarray]
) -> list[dict[str, Any]]:
    """What the function gave at a few places; the arrays are put among the others."""
    described: list[dict[str, Any]] = []
    for form, record in records.items():
        witness = record.witness
        if witness is not None:
            inside = {f"place/{port}": a for port, a in witness.places.items()} | {"values": witness.values}
            arrays |= {f"witness {len(described)}/{name}": a for name, a in inside.items()}
            described.append({"form": list(form), "stochastic": witness.stochastic})
    return described


def _kept(
    factor: str, operators: Mapping[str, Any], prefix: str, arrays: dict[str, np.ndarray]
) -> list[dict[str, Any]]:
    """Descriptions of operators; their arrays are put among the others."""
    described: list[dict[str, Any]] = []
    for k, (key, operator) in enumerate(operators.items()):
        if not all(hasattr(operator, name) for name in ("state", "settings", "name")):
            raise ModelError(
                f"operator {key!r} of factor {factor!r} has no state() and cannot be saved; drop it from "
                "factor.operators first"
            )
        inside, state = operator.state()
        arrays |= {f"{prefix}{k}/{name}": a for name, a in inside.items()}
        described.append({"name": operator.name, "settings": operator.settings, "state": state})
    return described


def read_into(factor: Learned, path: str | os.PathLike[str]) -> None:
    """Replace what `factor` has learned by what the file holds; on any error it stays as it was."""
    arrays, header = read_archive(path, WHAT)
    with understanding(path):
        take(factor, arrays, header)


# ---- what is in the file ------------------------------------------------------------------------------------------
def _described(sampler: Sampler, factor: Learned) -> dict[str, Any]:
    return {
        "name": sampler.name,
        "inputs": list(sampler.inputs),
        "output": sampler.output.__name__,
        "stochastic": sampler.stochastic,
        "vectorized": sampler.vectorized,
        "expensive": sampler.expensive,
        "partial": sampler.impossible is not None,
        "dimension": factor.dimension,
        "data_ranks": dict(factor.data_ranks),
        "counts": {"n_asked": factor.n_asked, "n_messages": factor.n_messages, "n_evaluations": factor.n_evaluations},
    }


def take(factor: Learned, arrays: Mapping[str, np.ndarray], header: Mapping[str, Any]) -> None:
    """Put what a file holds into a factor of the same signature, all of it or nothing."""
    described, sampler = header["factor"], factor.sampler
    theirs = (tuple(described["inputs"]), described["output"], bool(described["stochastic"]))
    ours = (sampler.inputs, sampler.output.__name__, sampler.stochastic)
    if theirs != ours:
        raise FileFormatError(
            f"the file was learned by a factor {described['name']}({', '.join(theirs[0])}) -> {theirs[1]}"
            f"{' with rng' if theirs[2] else ''}, and {sampler.name}({', '.join(ours[0])}) -> {ours[1]}"
            f"{' with rng' if ours[2] else ''} is another: load it with the function it was made of"
        )
    operators = _operators(header["operators"], arrays)
    forms = {
        tuple(form["joined"]): _operators(form["operators"], below(arrays, f"form {k}/"))
        for k, form in enumerate(header.get("forms", ()))  # files before 0.3 have none
    }
    counts = {name: int(described["counts"][name]) for name in ("n_asked", "n_messages", "n_evaluations")}
    function_records = {
        tuple(entry["form"]): FunctionRecord(_witness(below(arrays, f"witness {k}/"), bool(entry["stochastic"])))
        for k, entry in enumerate(header.get("witnesses", ()))  # files before this version have none
    }
    # nothing below can fail: the factor changes whole or not at all
    factor.operators, factor.form_operators, factor.function_records = operators, forms, function_records
    vars(factor).update(counts)


def _witness(arrays: Mapping[str, np.ndarray], stochastic: bool) -> Witness:
    """What a function gave when the file was written."""
    places, values = below(arrays, "place/"), arrays["values"]
    if values.ndim != 2 or any(len(a) != len(values) for a in places.values()):
        raise ValueError("places and values of the function do not fit together")
    return Witness(places, values, stochastic)


def _operators(described: list[dict[str, Any]], arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """The operators that a file describes, by their keys."""
    found: dict[str, Any] = {}
    for k, entry in enumerate(described):
        operator = operator_from_state(entry["name"], entry["settings"], below(arrays, f"{k}/"), entry["state"])
        found[operator.key] = operator
    return found
