"""Small hierarchical models whose posterior was sampled once, at length, and kept (`make_data.py` says how)."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.truth.world import Truth, World

__all__ = ["hierarchical"]


@cache
def _kept() -> list[dict]:
    return json.loads((Path(__file__).parent / "data" / "hierarchical.json").read_text())


def hierarchical(rng: np.random.Generator, kind: str, seed: int) -> World:
    """The kept models in turn; after the first round with the sequential schedule, then with other seeds."""
    kept = _kept()
    entry, turn = kept[(seed * 7) % len(kept)], seed // len(kept)
    truth = Truth(
        {k: np.asarray(v) for k, v in entry["mean"].items()},
        {k: np.asarray(v) for k, v in entry["sd"].items()},
        log_evidence=entry["log_evidence"],
    )
    settings: dict = {} if turn == 0 else {"schedule": "sequential"} if turn == 1 else {"seed": turn}
    return World(kind, seed, entry["source"], f"hierarchical: {entry['template']}", lambda: truth, settings)
