"""The paper's operator: two-stage random features of the incoming messages into Bayesian linear regression.

`Kjit` is the just-in-time loop around a `KernelLearner`. Where the paper's text and its authors' program differ
`settings` chooses a column whole, and any argument overrides it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from heliograph.errors import FileFormatError, ModelError
from heliograph.kernels import FeatureMap, feature_map_from_state, median_heuristic
from heliograph.operators.kjit.just_in_time import JustInTime
from heliograph.operators.protocol import Incoming, State
from heliograph.regression import bayesian_linear as linear

__all__ = ["KernelLearner", "Kjit", "columns"]

_PLATE = 64  # rows from which on float32 pays: it needs the inverse of the factor, which an update makes stale

_COLUMNS: dict[str, dict[str, Any]] = {
    "house": {
        "target": "log",
        "embedding": "moments",
        "gamma_factor": 1.0,
        "features": "one",
        "improper": "engine",
        "order": "worst first",
        "precision": "auto",
    },
    "text": {
        "target": "statistics",
        "embedding": "exact",
        "gamma_factor": 1.0,
        "features": "one",
        "improper": "engine",
        "order": "in turn",
        "precision": "float64",
    },
    "program": {
        "target": "log",
        "embedding": "moments",
        "gamma_factor": 0.5,
        "features": "per output",
        "improper": "program",
        "order": "in turn",
        "precision": "float64",
    },
}


def Kjit(
    D_in: int = 300,
    D_out: int = 500,
    *,
    noise: float = 1e-4,
    prior_variance: float = 1.0,
    threshold: float | Sequence[float] = -8.5,
    minibatch: int = 300,
    settings: str = "house",
    target: str | None = None,
    embedding: str | None = None,
    gamma_factor: float | None = None,
    features: str | None = None,
    improper: str | None = None,
    order: str | None = None,
    axis: str = "identity",
    precision: str | None = None,
    block: int | None = 64,
    share: bool = False,
) -> JustInTime:
    """The operator of the paper with the sizes and thresholds of its Experiment 3.

    Kept for comparison. Its variances are those of regression targets, not errors of messages: a belief divided by a
    narrow cavity may be arbitrarily far off while a run settles, so `infer` checks some with the oracle before it calls a run
    converged.

    | | settings="house" | "text" | "program" |
    |---|---|---|---|
    | target | log | statistics | log |
    | embedding | moments | exact | moments |
    | gamma_factor (times the median, gamma^2) | 1 | 1 | 0.5 |
    | features | one | one | per output |
    | improper (what to do with an oracle's improper message) | engine | engine | program |
    | order (of the questions in a plate) | worst first | in turn | in turn |
    | precision | auto | float64 | float64 |

    `axis="chart"` sees a Gamma on the log axis and a Beta on the logit axis. `precision` is "float64", "float32" or
    "auto", float32 for plates of 64 and more. `columns()` gives this table.

    >>> Kjit(threshold=-9.0).key
    'kjit(threshold=-9.0)'
    """
    given = {k: v for k, v in locals().items() if k in _DEFAULTS and v != _DEFAULTS[k]}
    if settings not in _COLUMNS:
        raise ModelError(f"settings must be one of {sorted(_COLUMNS)}, not {settings!r}")
    chosen = _COLUMNS[settings] | {k: v for k, v in locals().items() if k in _COLUMNS["house"] and v is not None}
    own = {k: chosen.pop(k) for k in ("gamma_factor", "embedding", "features", "precision")}
    return JustInTime(
        KernelLearner(D_in, D_out, noise, prior_variance, axis=axis, **own),
        name="kjit",
        threshold=threshold,
        minibatch=minibatch,
        block=block,
        share=share,
        settings=given,
        **chosen,
    )


_DEFAULTS: dict[str, Any] = dict(Kjit.__kwdefaults__ or {}, D_in=300, D_out=500)


def columns() -> dict[str, dict[str, Any]]:
    """What each of the three words for `settings` stands for: the paper's text, its authors' program, and our own mixture.

    >>> [columns()[name]["target"] for name in ("text", "program", "house")]
    ['statistics', 'log', 'log']
    """
    return {name: dict(column) for name, column in _COLUMNS.items()}


@dataclass(eq=False, repr=False)
class KernelLearner:
    """Bayesian linear regression on random features of the kernel on joint embeddings, eq. (7) and eq. (15).

    Widths by the median heuristic on the first rows, then never again. With `features="per output"` every output has
    a map of its own (of the same widths), so its predictive variance is its own too.
    """

    n_inner: int = 300
    n_outer: int = 500
    noise: float = 1e-4
    prior_variance: float = 1.0
    gamma_factor: float = 1.0
    embedding: str = "moments"
    axis: str = "identity"
    features: str = "one"
    precision: str = "auto"
    maps_: list[FeatureMap] = field(default_factory=list, init=False)
    posteriors_: list[linear.Posterior] = field(default_factory=list, init=False)
    _n_served: int = field(default=0, init=False)  # rows predicted since the last update

    def __post_init__(self) -> None:
        if self.features not in ("one", "per output"):
            raise ModelError(f"features must be 'one' or 'per output', not {self.features!r}")
        if self.precision not in ("auto", "float32", "float64"):
            raise ModelError(f"precision must be 'auto', 'float32' or 'float64', not {self.precision!r}")

    def fit(self, rng: np.random.Generator, to: str, incoming: Incoming, y: np.ndarray) -> None:
        """Choose widths, draw features, and learn the first rows."""
        kernel = median_heuristic(incoming, self.gamma_factor, self.axis, self.embedding)
        n_maps = 1 if self.features == "one" else y.shape[1]
        self.maps_ = [kernel.features(rng, self.n_outer, self.n_inner) for _ in range(n_maps)]
        width = y.shape[1] // n_maps
        self.posteriors_ = [linear.prior(self.n_outer, width, self.prior_variance, self.noise) for _ in self.maps_]
        self.update(incoming, y)

    def update(self, incoming: Incoming, y: np.ndarray) -> None:
        """Learn more rows, eq. (16) and eq. (17)."""
        columns = np.split(y, len(self.maps_), axis=1)
        pairs = zip(self.maps_, self.posteriors_, columns, strict=True)
        self.posteriors_ = [linear.update(p, m.features(incoming), part) for m, p, part in pairs]
        self._n_served = 0

    def predict(self, incoming: Incoming) -> tuple[np.ndarray, np.ndarray]:
        """Means (n, q) and predictive variances (n, number of maps) with the noise, eq. (15)."""
        n = len(next(iter(incoming.values())))
        single = self.precision == "float32" or (self.precision == "auto" and n >= _PLATE)
        dtype = np.float32 if single else np.float64
        self._n_served += n
        if (
            self._n_served > _PLATE
        ):  # rows come one by one, and nothing was learned for long: computing the inverse pays
            for posterior in self.posteriors_:
                _ = posterior.inverse_factor
        means, variances = [], []
        for feature_map, posterior in zip(self.maps_, self.posteriors_, strict=True):
            mean, variance = linear.predict(posterior, feature_map.chunks(incoming, dtype), dtype)
            means.append(mean)
            variances.append(variance + self.noise)
        return np.concatenate(means, axis=1), np.stack(variances, axis=1)

    def state(self) -> State:
        """The maps as kernel, seed and sizes; the regressions as their triangles."""
        arrays = {f"triangle.{k}": p.triangle for k, p in enumerate(self.posteriors_)}
        header = {
            "maps": [m.state() for m in self.maps_],
            "n_served": self._n_served,  # decides how predictions are computed, to the last bit
            "n_rows": [p.n_rows for p in self.posteriors_],
            "log_noises": [p.log_noises for p in self.posteriors_],
        }
        return arrays, header

    def restore(self, arrays: Mapping[str, np.ndarray], header: Mapping[str, Any]) -> None:
        """The reverse of `state`."""
        maps = [feature_map_from_state(m) for m in header["maps"]]
        posteriors = []
        for k, feature_map in enumerate(maps):
            triangle = np.asfortranarray(arrays[f"triangle.{k}"], dtype=float)
            d = feature_map.n_features
            if triangle.ndim != 2 or triangle.shape[0] != triangle.shape[1] or triangle.shape[0] <= d:
                raise FileFormatError(f"a regression of {d} features cannot have a triangle of shape {triangle.shape}")
            if not np.isfinite(triangle).all():
                raise FileFormatError("a regression's triangle holds numbers that are not finite")
            posteriors.append(
                linear.Posterior(
                    triangle,
                    d,
                    int(header["n_rows"][k]),
                    self.prior_variance,
                    self.noise,
                    float(header["log_noises"][k]),
                )
            )
        self.maps_, self.posteriors_, self._n_served = maps, posteriors, int(header["n_served"])
