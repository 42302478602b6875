"""The neural network of Heess, Tarlow and Winn (2013): trained once, in batch, and without uncertainty.

Three or four hidden layers of 40 to 60 tanh units and an output unit suited to the parameter. A positive parameter (a
precision) has an exponential output unit, which amounts to regression on its logarithm; so the outputs here are plain numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
from scipy.optimize import minimize

from heliograph.errors import FileFormatError, ModelError

__all__ = ["HeessNetwork"]


@dataclass(eq=False)
class HeessNetwork:
    """A multi-layer perceptron fitted by L-BFGS on standardised rows, in float64.

    It has no predictive variance, so `predict` gives NaN for it, which is neither below nor above any threshold.

    >>> x = np.linspace(-1, 1, 50)[:, None]
    >>> network = HeessNetwork(hidden=(10, 10), max_iter=500).fit(x, np.sin(3 * x))
    >>> bool(np.abs(network.predict(x)[0] - np.sin(3 * x)).max() < 0.01)
    True
    """

    hidden: Sequence[int] = (40, 40, 40)
    weight_decay: float = 1e-7
    max_iter: int = 1000
    random_state: int | np.random.Generator = 0

    def fit(self, X: Any, Y: Any) -> Self:
        """Train on rows `X` (n, d) and outputs `Y` (n, q)."""
        X, Y = np.asarray(X, dtype=float), np.asarray(Y, dtype=float)
        if X.ndim != 2 or Y.ndim != 2 or len(X) != len(Y) or not (np.isfinite(X).all() and np.isfinite(Y).all()):
            raise ModelError(f"X and Y must be finite matrices of equally many rows, not {X.shape} and {Y.shape}")
        self.centre_, self.scale_ = _standards(X)
        self.y_centre_, y_scale = _standards(Y)
        self.y_scale_ = np.where(np.isinf(y_scale), 0.0, y_scale)  # a constant output stays where it is
        Z, T = (X - self.centre_) / self.scale_, (Y - self.y_centre_) / y_scale
        sizes = (X.shape[1], *self.hidden, Y.shape[1])
        self.shapes_ = [shape for a, b in pairwise(sizes) for shape in ((a, b), (b,))]
        rng = np.random.default_rng(self.random_state)
        start = np.concatenate(
            [
                (rng.uniform(-1, 1, s) * np.sqrt(6 / sum(s))).ravel() if len(s) == 2 else np.zeros(s)  # Glorot's range
                for s in self.shapes_
            ]
        )
        result = minimize(
            self._loss,
            start,
            args=(Z, T),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": self.max_iter, "maxfun": 4 * self.max_iter, "maxcor": 30, "ftol": 1e-14, "gtol": 1e-9},
        )
        self.parameters_ = result.x
        self.n_iter_, self.loss_, self.converged_ = int(result.nit), float(result.fun), bool(result.success)
        return self

    def _layers(self, parameters: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        parts, at = [], 0
        for shape in self.shapes_:
            size = int(np.prod(shape))
            parts.append(parameters[at : at + size].reshape(shape))
            at += size
        return list(zip(parts[::2], parts[1::2], strict=True))

    def _loss(self, parameters: np.ndarray, Z: np.ndarray, T: np.ndarray) -> tuple[float, np.ndarray]:
        """Half the mean squared error with weight decay, and its gradient by back-propagation."""
        layers = self._layers(parameters)
        seen = [Z]  # the inputs of each layer
        for W, b in layers[:-1]:
            seen.append(np.tanh(seen[-1] @ W + b))
        W, b = layers[-1]
        error = seen[-1] @ W + b - T
        loss = 0.5 * (error**2).sum() / len(Z) + 0.5 * self.weight_decay * sum(float((W**2).sum()) for W, _ in layers)
        back, gradient = error / len(Z), []
        for k in reversed(range(len(layers))):
            W, _ = layers[k]
            gradient += [back.sum(axis=0), (seen[k].T @ back + self.weight_decay * W).ravel()]
            if k:
                back = (back @ W.T) * (1 - seen[k] ** 2)
        return loss, np.concatenate(gradient[::-1])

    def predict(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """The network's outputs (n, q), and NaN for each variance."""
        if not hasattr(self, "parameters_"):
            raise ModelError("this HeessNetwork has seen no rows yet: call fit before predict")
        H = (np.asarray(X, dtype=float) - self.centre_) / self.scale_
        layers = self._layers(self.parameters_)
        for W, b in layers[:-1]:
            H = np.tanh(H @ W + b)
        W, b = layers[-1]
        mean = (H @ W + b) * self.y_scale_ + self.y_centre_
        return mean, np.full_like(mean, np.nan)

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """All that was learned, as arrays and JSON."""
        names = ("parameters", "centre", "scale", "y_centre", "y_scale")
        return {name: getattr(self, name + "_") for name in names}, {"shapes": [list(s) for s in self.shapes_]}

    def restore(self, arrays: Mapping[str, np.ndarray], header: Mapping[str, Any]) -> Self:
        """Take the place of the network that gave this state."""
        shapes = [tuple(int(k) for k in s) for s in header["shapes"]]
        weights, biases = shapes[::2], shapes[1::2]
        sizes = [w[0] for w in weights] + [weights[-1][-1]]
        if (
            [*pairwise(sizes)] != weights
            or biases != [(k,) for k in sizes[1:]]
            or arrays["parameters"].shape != (sum(int(np.prod(s)) for s in shapes),)
            or any(arrays[name].shape != (sizes[0],) for name in ("centre", "scale"))
            or any(arrays[name].shape != (sizes[-1],) for name in ("y_centre", "y_scale"))
        ):
            raise FileFormatError("these arrays are not those of a network of the stated layers")
        self.shapes_ = shapes
        for name in ("parameters", "centre", "scale", "y_centre", "y_scale"):
            setattr(self, name + "_", np.array(arrays[name], dtype=float))
        return self


def _standards(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    mean, sd = A.mean(axis=0), A.std(axis=0)
    return mean, np.where(sd > 1e-12 * np.abs(mean), sd, np.inf)  # a constant column becomes 0
