"""The operator of Eslami, Tarlow, Kohli and Winn (2014): a forest that learns just in time, in doubt where trees differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from heliograph.errors import FileFormatError
from heliograph.families import Family
from heliograph.families.coordinates import Coordinates, event_size, logs_of
from heliograph.families.packing import family_named
from heliograph.operators.kjit.just_in_time import JustInTime
from heliograph.operators.protocol import Incoming, Setting, State
from heliograph.paper.rivals.eslami2014 import EslamiForest
from heliograph.paper.rivals.summaries import modes, summarise

__all__ = ["Agreement", "Forest", "ForestLearner", "average_belief", "disagreement"]


def average_belief(beliefs: Family) -> Family:
    """The member whose expected statistics are the average of those of the first plate axis.

    Of all members it is the one with the least mean KL from the beliefs.

    >>> from heliograph.families import Gaussian
    >>> average_belief(Gaussian([[-1.0], [1.0]], 1.0))
    Gaussian[mean 0., variance 2.]
    """
    return type(beliefs).from_statistics(*(s.mean(axis=0) for s in beliefs.expected_statistics()))


def disagreement(beliefs: Family) -> np.ndarray:
    """The mean over the first plate axis of ``KL(belief || average belief)``, in nats.

    >>> from heliograph.families import Gaussian
    >>> disagreement(Gaussian([[-1.0], [1.0]], 1.0)).round(4)  # log(2) / 2
    array([0.3466])
    """
    average = average_belief(beliefs)
    return np.mean([beliefs[t].kl(average) for t in range(beliefs.shape[0])], axis=0)


class Agreement:
    """What a forest of numbers needs to know of their meaning: its `combine` and its `disagreement`.

    A row where some tree's numbers are those of no belief is combined by the plain mean, and is in infinite doubt.
    """

    def __init__(self, coordinates: Coordinates, event_size: int = 1) -> None:
        self.coordinates = coordinates
        self.event_size = event_size

    def _beliefs(self, trees: np.ndarray) -> tuple[Family, np.ndarray]:
        n_trees, n, q = trees.shape
        beliefs, valid = self.coordinates.decode(trees.reshape(-1, q), self.event_size)
        return beliefs.reshape((n_trees, n)), np.logical_and.reduce(np.reshape(valid, (n_trees, n)))

    def combine(self, trees: np.ndarray) -> np.ndarray:
        """The average belief of trees ``(n_trees, n, q)`` in the same coordinates, (n, q)."""
        beliefs, valid = self._beliefs(trees)
        out = trees.mean(axis=0)
        if valid.any():
            out[valid] = self.coordinates.encode(average_belief(beliefs[:, valid]))
        return out

    def disagreement(self, trees: np.ndarray) -> np.ndarray:
        """Mean KL from the average belief, (n,); infinite where a tree gives no belief."""
        beliefs, valid = self._beliefs(trees)
        out = np.full(len(valid), np.inf)
        if valid.any():
            out[valid] = disagreement(beliefs[:, valid])
        return out


_AT_MODE = "factor at the mode"
_LEAF = ("centre", "scale", "weights")


def Forest(
    n_trees: int = 64,
    *,
    threshold: float = -6.0,
    minibatch: int = 300,
    n_candidates: int = 100,
    min_leaf: int = 10,
    max_leaf: int = 50,
    mode_value: bool = True,
    block: int | None = 64,
    share: bool = False,
) -> JustInTime:
    """The forest as an operator: ask where the log of the trees' mean KL from their average reaches `threshold`.

    With `mode_value` the trees also see the factor's value at the modes of the incoming messages, one call of the
    factor for each message (left out where the factor is stochastic or expensive).

    >>> Forest(32).key
    'forest(n_trees=32)'
    """
    given = {k: v for k, v in locals().items() if v != _DEFAULTS[k]}
    return JustInTime(
        ForestLearner(n_trees, n_candidates, min_leaf, max_leaf),
        name="forest",
        target="log",
        threshold=threshold,
        minibatch=minibatch,
        block=block,
        share=share,
        view=_with_mode_value if mode_value else None,
        settings=given,
    )


_DEFAULTS: dict[str, Any] = dict(Forest.__kwdefaults__ or {}, n_trees=64)


def _with_mode_value(rng: np.random.Generator, incoming: Incoming, setting: Setting) -> tuple[Incoming, int]:
    """The factor's output at the modes of its inputs, as one more datum of each tuple."""
    sampler = setting.sampler
    if setting.evaluate is None or sampler is None or sampler.stochastic or sampler.expensive or not sampler.inputs:
        return incoming, 0
    at = modes(incoming)
    value = setting.evaluate(rng, {p: at[p] for p in sampler.inputs})
    return {**incoming, _AT_MODE: value}, len(value)


class ForestLearner:
    """An `EslamiForest` on summaries of the incoming messages, its doubt in nats."""

    def __init__(self, n_trees: int = 64, n_candidates: int = 100, min_leaf: int = 10, max_leaf: int = 50) -> None:
        self.n_trees, self.n_candidates = n_trees, n_candidates
        self.min_leaf, self.max_leaf = min_leaf, max_leaf

    def fit(self, rng: np.random.Generator, to: str, incoming: Incoming, y: np.ndarray) -> None:
        """Grow the forest on the first rows; leaves regress on what says it all once."""
        rows = summarise(incoming)
        cavity = incoming[to]
        self._make(type(cavity).__name__, event_size(cavity), int(rng.integers(2**62)), rows.essential)
        self.forest_.fit(rows.values, y)

    def _make(self, family: str, size: int, seed: int, columns: Any) -> None:
        self.family_, self.event_size_ = family, size
        agreement = Agreement(logs_of(family_named(family)), size)
        self.forest_ = EslamiForest(
            self.n_trees,
            self.n_candidates,
            self.min_leaf,
            self.max_leaf,
            leaf_columns=columns,
            combine=agreement.combine,
            disagreement=agreement.disagreement,
            random_state=seed,
        )

    def update(self, incoming: Incoming, y: np.ndarray) -> None:
        """Send rows to their leaves, which split when they are full."""
        self.forest_.update(summarise(incoming).values, y)

    def predict(self, incoming: Incoming) -> tuple[np.ndarray, np.ndarray]:
        """The average belief, and the trees' mean KL from it as the one number to doubt by."""
        mean, doubt = self.forest_.answer(summarise(incoming).values)
        return mean, doubt[:, None]

    def state(self) -> State:
        """The forest's own, and what its numbers mean."""
        arrays, header = self.forest_.state()
        n = len(arrays["feature"])
        # leaves fitted again from their rows would differ in the last bit
        arrays |= {f"leaf.{name}": getattr(self.forest_, name + "_")[:n] for name in _LEAF}
        return arrays, {"forest": header, "family": self.family_, "event_size": self.event_size_}

    def restore(self, arrays: Mapping[str, np.ndarray], header: Mapping[str, Any]) -> None:
        """The reverse of `state`."""
        self._make(header["family"], int(header["event_size"]), 0, arrays["columns"])
        self.forest_.restore(arrays, header["forest"])
        for name in _LEAF:
            there, kept = getattr(self.forest_, name + "_"), arrays[f"leaf.{name}"]
            if kept.shape != (len(arrays["feature"]), *there.shape[1:]):
                raise FileFormatError(f"a forest's leaves cannot have {name} of shape {kept.shape}")
            there[: len(kept)] = kept
