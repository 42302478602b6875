"""Labelled rows: inputs, targets, and the variances of the noise that the targets brought with them."""

from __future__ import annotations

import numpy as np

from heliograph.errors import ModelError
from heliograph.regression.squared_exponential import Widths

__all__ = ["checked_labels", "joined_labels"]

# inputs (N, k), targets (N, q), and their noise variances, if there are any
Labels = tuple[np.ndarray, np.ndarray, np.ndarray | None]


def checked_labels(widths: Widths, inputs: np.ndarray, targets: np.ndarray, label_noise: np.ndarray | None) -> Labels:
    """Inputs, targets and noises of labels as matrices that fit the widths and each other."""
    k, q = widths.centre.size, widths.signal.size
    inputs = np.asarray(inputs, dtype=float).reshape(-1, k)
    targets = np.asarray(targets, dtype=float).reshape(-1, q)
    if len(inputs) != len(targets):
        raise ModelError(f"a process was given {len(inputs)} rows of inputs and {len(targets)} of targets")
    if not (np.isfinite(inputs).all() and np.isfinite(targets).all()):
        raise ModelError("a process was given inputs or targets that are not finite; leave those rows out")
    if label_noise is not None:
        label_noise = np.broadcast_to(np.asarray(label_noise, dtype=float), targets.shape)
        if not (label_noise >= 0).all():
            raise ModelError("noise variances of labels must be at least 0")
    return inputs, targets, label_noise


def joined_labels(first: Labels, more: Labels) -> Labels:
    """Labels and more of them; those that came without noise have none where the others have some."""
    noise = None
    if first[2] is not None or more[2] is not None:
        noise = np.concatenate([np.zeros(y.shape) if own is None else own for _, y, own in (first, more)])
    return np.concatenate([first[0], more[0]]), np.concatenate([first[1], more[1]]), noise
