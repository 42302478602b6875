"""The arguments of a black box called on variables, by port."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol, cast

import numpy as np

from heliograph.errors import ModelError
from heliograph.factors.black_box.counts import event_of
from heliograph.numerics.checks import as_real
from heliograph.oracles import Sampler

__all__ = ["bound"]


class Called(Protocol):
    """The part of a factor that is used here."""

    name: ClassVar[str]
    sampler: Sampler
    data_ranks: ClassVar[dict[str, int]]


def bound(factor: Called, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """Arguments by port, with the function's own defaults, and what was observed of the output (None: nothing)."""
    sampler, observed = factor.sampler, None
    if "observed" not in sampler.inputs:
        kwargs = dict(kwargs)
        observed = kwargs.pop("observed", None)
    if "hyper" in kwargs and "hyper" not in sampler.inputs:
        kwargs = _with_hypers(factor, len(args), dict(kwargs))
    if sampler.counted is not None and observed is None:
        raise ModelError(
            f"factor {factor.name!r} gives counts, for which there are no messages: say what was observed, "
            f"{factor.name}(..., observed=y), NaN where nothing was; counts that are not observed need output=hg.Categorical"
        )
    arguments = _arguments(factor, args, kwargs, [p for p in sampler.inputs if p != sampler.counted])
    if sampler.counted is not None:
        arguments[sampler.counted], observed = event_of(factor.name, observed)
    return arguments, observed


def _with_hypers(factor: Called, n_first: int, kwargs: dict[str, Any]) -> dict[str, Any]:
    """``hyper=`` spread over the arguments that are not given otherwise: by name, or one after the other."""
    given = kwargs.pop("hyper")
    ports = [p for p in factor.sampler.inputs if p != factor.sampler.counted]
    left = [p for p in ports[n_first:] if p not in kwargs]
    if isinstance(given, Mapping):
        named = {str(k): v for k, v in cast("Mapping[Any, Any]", given).items()}
    else:
        values = list(cast("Sequence[Any]", given)) if isinstance(given, (list, tuple)) else [given]
        parameters = inspect.signature(factor.sampler.function).parameters
        needed = [p for p in left if parameters[p].default is inspect.Parameter.empty]
        places = needed if len(needed) == len(values) else left
        if len(values) > len(places):
            raise ModelError(
                f"factor {factor.name!r}: hyper= holds {len(values)} and there are {len(places)} arguments left for them; it takes "
                f"{ports}, and a hyper-parameter may also stand at its own name, {factor.name}(..., {ports[-1]}=s)"
            )
        named = dict(zip(places, values, strict=False))
    wrong = [p for p in named if p not in left]
    if wrong:
        raise ModelError(
            f"factor {factor.name!r}: hyper= names {wrong}, and of {ports} only {left} are not given otherwise"
        )
    random = [p for p, v in named.items() if hasattr(v, "node")]
    if random:
        raise ModelError(
            f"factor {factor.name!r}: hyper= takes hyper-parameters (model.half_normal(...), model.log_normal(...)) or numbers, "
            f"and {random[0]!r} was given a variable, which has messages: write {factor.name}(..., {random[0]}=...)"
        )
    return {**kwargs, **named}


def _arguments(factor: Called, args: tuple[Any, ...], kwargs: dict[str, Any], ports: list[str]) -> dict[str, Any]:
    drawn = [p for p in ("rng", "size") if p in kwargs]
    if drawn:
        raise ModelError(f"factor {factor.name!r}: {drawn} are given by the engine and not by the model")
    parameters = inspect.signature(factor.sampler.function).parameters
    wanted = [parameters[p] for p in ports]
    try:
        found = inspect.Signature(wanted).bind(*args, **kwargs)
    except TypeError as error:
        raise ModelError(f"factor {factor.name!r} takes {ports}: {error}") from None
    found.apply_defaults()
    arguments = dict(found.arguments)
    shapes = [a.shape for a in arguments.values() if hasattr(a, "model")]
    try:
        plate = np.broadcast_shapes(*shapes)
    except ValueError:
        raise ModelError(f"factor {factor.name!r}: variables of shapes {shapes} do not fit together") from None
    for port, value in arguments.items():
        if not hasattr(value, "model"):
            shape = as_real(f"factor {factor.name!r}: data at {port!r}", value).shape
            if not plate and len(shape) > 1 and port not in factor.data_ranks and _has_vector(arguments):
                raise ModelError(
                    f"factor {factor.name!r}: data at {port!r} has shape {shape} beside one vector variable; say "
                    f"@factor(..., data_ranks={{{port!r}: 1}}) for one row per message, or {{{port!r}: 0}} for one number"
                )
            _note_rank(factor, port, shape, plate)
    return arguments


def _note_rank(factor: Called, port: str, shape: tuple[int, ...], plate: tuple[int, ...]) -> None:
    """Data with more axes than the plate is one vector (or more) per message."""
    if port in factor.data_ranks or not plate or len(shape) <= len(plate):
        return
    if shape[: len(plate)] != plate:
        raise ModelError(
            f"factor {factor.name!r}: data at {port!r} has shape {shape} beside variables of shape {plate}; give one "
            f"value per message, or say data_ranks={{{port!r}: 1}} in @factor if one vector serves all"
        )
    factor.data_ranks[port] = len(shape) - len(plate)


def _has_vector(arguments: Mapping[str, Any]) -> bool:
    """Whether some argument is a variable whose value is a vector."""
    return any(hasattr(a, "model") and getattr(a.node, "dimension", None) is not None for a in arguments.values())
