"""The messages that the logistic factor meets in each data set: what experiment 5 shows before anything is learned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from heliograph.engine import Model, after, steps
from heliograph.families import concatenate
from heliograph.paper.batch.recording import Recorder
from heliograph.paper.datasets import load, read_splits, split
from heliograph.paper.sequences.logistic import logistic_factor

__all__ = ["uci_incoming"]


def uci_incoming(seed: int, names: Sequence[str], standardise: str, splits: str | None, sweeps: int) -> dict[str, Any]:
    """Mean and log precision of every message from z in EP runs with exact messages, and the data set of each."""
    mean, log_precision, problem = [], [], []
    given = read_splits(splits, tuple(names)) if splits else None
    for k, name in enumerate(names):
        data = given[name] if given else split(load(name), seed=seed, standardise=standardise)
        recorder, d = Recorder(sweeps), data.X_train.shape[1]
        model = Model()
        w = model.gaussian("w", np.zeros(d), covariance=np.eye(d))
        model.bernoulli("y", logistic_factor()(data.X_train @ w), observed=data.y_train)
        for _ in steps(model, operator=recorder, stop=after(sweeps)):
            pass
        z: Any = concatenate([seen for seen, _ in recorder.seen])
        mean.append(z.mean.astype(np.float32))
        log_precision.append(np.log(z.precision).astype(np.float32))
        problem.append(np.full(len(z), k, dtype=np.int32))
    kept = {"mean": mean, "log_precision": log_precision, "problem": problem}
    return {"series": {name: np.concatenate(parts) for name, parts in kept.items()}}
