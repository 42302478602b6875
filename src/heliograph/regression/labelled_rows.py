"""Labelled rows: inputs, targets, and the variances of the noise that the targets brought with them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from heliograph.errors import ModelError
from heliograph.regression.squared_exponential import Widths

__all__ = ["LabelledRows"]


class LabelledRows(NamedTuple):
    """Rows of numbers, and what is known of a function there."""

    inputs: np.ndarray  # (N, k)
    targets: np.ndarray  # (N, q)
    noise: np.ndarray | None = None  # (N, q) noise variances of the targets; None if they brought none

    def checked(self, widths: Widths) -> LabelledRows:
        """The same rows as matrices of floats that fit the widths and each other."""
        k, q = widths.centre.size, widths.signal.size
        inputs = np.asarray(self.inputs, dtype=float).reshape(-1, k)
        targets = np.asarray(self.targets, dtype=float).reshape(-1, q)
        if len(inputs) != len(targets):
            raise ModelError(f"a process was given {len(inputs)} rows of inputs and {len(targets)} of targets")
        if not (np.isfinite(inputs).all() and np.isfinite(targets).all()):
            raise ModelError("a process was given inputs or targets that are not finite; leave those rows out")
        noise = self.noise
        if noise is not None:
            noise = np.broadcast_to(np.asarray(noise, dtype=float), targets.shape)
            if not (noise >= 0).all():
                raise ModelError("noise variances of labels must be at least 0")
        return LabelledRows(inputs, targets, noise)

    def joined(self, more: LabelledRows) -> LabelledRows:
        """These rows and more; those that came without noise have a noise of 0 where the others have some."""
        noise = None
        if self.noise is not None or more.noise is not None:
            noise = np.concatenate([np.zeros(x.targets.shape) if x.noise is None else x.noise for x in (self, more)])
        inputs = np.concatenate([self.inputs, more.inputs])
        return LabelledRows(inputs, np.concatenate([self.targets, more.targets]), noise)

    def at(self, rows: Any) -> LabelledRows:
        """Some of the rows, by a slice or by their numbers."""
        return LabelledRows(self.inputs[rows], self.targets[rows], None if self.noise is None else self.noise[rows])

    def relative_noise(self, widths: Widths, output: int) -> np.ndarray:
        """The noise variances ``(N,)`` of one output over its signal variance; 0 where the labels brought none."""
        if self.noise is None:
            return np.zeros(len(self.inputs))
        return self.noise[:, output] / widths.signal[output]
