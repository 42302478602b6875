"""Random features: a map is its kernel, its seed and its sizes; the coefficients are drawn again when needed.

Coefficients come in blocks of 512 rows, each from its own stream of the seed, so a map of any size can be applied
block by block without ever holding its coefficients, and two maps of one seed share their leading features.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np

from heliograph.kernels.embeddings import FAR, Embedding, Incoming, embed
from heliograph.kernels.inner_products import message_characteristic
from heliograph.numerics.blas_threads import one_blas_thread
from heliograph.numerics.chunks import CHUNK, chunks

__all__ = ["Draws", "FeatureMap", "Kernel", "cosine", "cosines", "expected_cosines"]

BLOCK = 512  # features drawn from one stream
_CACHED = 4_000_000  # coefficients up to which a matrix is kept in memory between calls (32 MB)


class Kernel:
    """What every kernel on tuples of messages does; one kernel is one file, a frozen dataclass of its widths, `axis` and `how`.

    It says with `between` how it compares embeddings, and gives random features with `map_rows`.
    """

    name: ClassVar[str]
    axis: str
    how: str

    def gram(self, a: Incoming | Embedding, b: Incoming | Embedding | None = None) -> np.ndarray:
        """The kernel of every tuple of `a` with every tuple of `b` (or of `a` itself), ``(n, m)``."""
        a = embed(a, self.axis, self.how)
        return self.between(a, a if b is None else embed(b, self.axis, self.how))

    def between(self, a: Embedding, b: Embedding) -> np.ndarray:
        """The kernel of every tuple of `a` with every tuple of `b`, ``(n, m)``."""
        raise NotImplementedError  # pragma: no cover

    def features(self, rng: np.random.Generator, n_features: int = 500) -> FeatureMap:
        """A map with a fresh seed."""
        return FeatureMap(self, int(rng.integers(2**62)), (n_features,))

    def n_features(self, sizes: tuple[int, ...]) -> int:
        """How many features a map of these sizes gives."""
        return sizes[0]

    def map_rows(self, rows: Embedding, draws: Draws, sizes: tuple[int, ...], dtype: Any) -> np.ndarray:
        """Features of a few tuples, ``(n, D)``."""
        raise NotImplementedError  # pragma: no cover

    def state(self) -> dict[str, Any]:
        """The parameters as plain numbers."""
        return {"name": self.name, **{f.name: _plain(getattr(self, f.name)) for f in fields(self)}}  # type: ignore[arg-type]


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str):
        return value
    return [_plain(v) for v in value] if np.iterable(value) else float(value)


class Draws:
    """The random coefficients of a map, drawn from its seed in blocks and remembered while they are small.

    >>> d = Draws(7)
    >>> bool((d.normals(0, 600, 3)[:512] == d.normals(0, 512, 3)).all())
    True
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._kept: dict[Any, np.ndarray] = {}

    def block(self, stage: int, k: int, d: int) -> tuple[np.ndarray, np.ndarray]:
        """Block k of a stage: 512 standard normal frequencies in d dimensions, and as many phases in [0, 2 pi)."""
        rng = np.random.default_rng([self.seed, stage, k])
        phases = rng.uniform(0, 2 * np.pi, BLOCK)
        return rng.standard_normal((BLOCK, d)), phases

    def blocks(self, stage: int, n: int, d: int) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """All blocks of a stage in turn, each with the slice of features it makes."""
        for k, part in enumerate(chunks(n, BLOCK)):
            frequencies, phases = self.block(stage, k, d)
            size = part.stop - part.start
            yield part, frequencies[:size], phases[:size]

    def normals(self, stage: int, n: int, d: int) -> np.ndarray:
        """All frequencies of a stage, ``(n, d)``, before they are divided by a width."""
        return self.kept(("normals", stage, n, d), lambda: self._joined(stage, n, d)[0])

    def phases(self, stage: int, n: int) -> np.ndarray:
        """All phases of a stage, ``(n,)``."""
        return self.kept(("phases", stage, n), lambda: self._joined(stage, n, 1)[1])

    def scaled(
        self, stage: int, n: int, d: int, scale: float, dtype: Any
    ) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """Frequencies times `scale` and phases in a working precision: whole if that is small, else block by block."""
        if n * d > _CACHED:
            for part, frequencies, phases in self.blocks(stage, n, d):
                yield part, (frequencies * scale).astype(dtype), phases.astype(dtype)
            return
        key = (stage, n, d, float(scale), np.dtype(dtype).str)
        frequencies = self.kept(("scaled", *key), lambda: (self._joined(stage, n, d)[0] * scale).astype(dtype))
        phases = self.kept(("scaled phases", *key), lambda: self.phases(stage, n).astype(dtype))
        yield slice(0, n), frequencies, phases

    def _joined(self, stage: int, n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
        parts = [(f, p) for _, f, p in self.blocks(stage, n, d)]
        return np.concatenate([f for f, _ in parts]), np.concatenate([p for _, p in parts])

    def kept(self, key: Any, make: Any) -> np.ndarray:
        """An array made from coefficients, remembered if it is not large."""
        if key not in self._kept:
            array = make()
            if array.size > _CACHED:
                return array
            array.flags.writeable = False
            self._kept[key] = array
        return self._kept[key]


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """Random features of a kernel: ``features(r) . features(s)`` approaches ``kappa(r, s)`` as the sizes grow."""

    kernel: Kernel
    seed: int
    sizes: tuple[int, ...]
    draws: Draws = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "draws", Draws(self.seed))

    @property
    def n_features(self) -> int:
        """The length D of a feature vector."""
        return self.kernel.n_features(self.sizes)

    def features(self, incoming: Incoming | Embedding, dtype: Any = np.float64) -> np.ndarray:
        """Feature vectors of a plate of tuples, ``(n, D)``; float32 is four times faster and good to 1e-6."""
        rows = embed(incoming, self.kernel.axis, self.kernel.how)
        out = np.empty((len(rows), self.n_features), dtype=dtype)
        # coefficients that are not kept are drawn once a chunk, so chunks grow with the map
        size = CHUNK if self._small else 8 * CHUNK
        with one_blas_thread():
            for part in chunks(len(rows), size):
                out[part] = self.kernel.map_rows(rows[part], self.draws, self.sizes, dtype)
        return out

    def chunks(self, incoming: Incoming | Embedding, dtype: Any = np.float64) -> Iterator[np.ndarray]:
        """The same feature vectors, 512 rows at a time: a plate of any length in bounded memory."""
        rows = embed(incoming, self.kernel.axis, self.kernel.how)
        for part in chunks(len(rows), CHUNK):
            with one_blas_thread():
                x = self.kernel.map_rows(rows[part], self.draws, self.sizes, dtype)
            yield x

    @property
    def _small(self) -> bool:
        return int(np.prod(self.sizes, dtype=np.int64)) <= _CACHED

    def state(self) -> dict[str, Any]:
        """Kernel, seed and sizes as plain numbers: all that is saved of a map."""
        return {"kernel": self.kernel.state(), "seed": int(self.seed), "sizes": [int(s) for s in self.sizes]}


def expected_cosines(rows: Embedding, omega: np.ndarray, phase: np.ndarray, dtype: Any = np.float64) -> np.ndarray:
    """``E cos(omega . x + b)`` of each tuple at each frequency, ``(n, D)``; Algorithm 1, step 3, without its factor.

    `omega` is ``(D, c)``, already divided by the widths. A Gaussian embedding gives
    ``cos(omega . m + b) exp(-omega' V omega / 2)``, an exact one the real part of its characteristic function.
    """
    mean = rows.mean
    if rows.absent is not None:
        scale = 1.0 / np.sqrt(np.mean(omega**2, axis=0))  # the width, recovered from its own frequencies
        mean = np.where(rows.absent, FAR * scale, mean)
    if rows.exact and any(m is not None for m in rows.exact):
        return _exact_cosines(rows, mean, omega, phase).astype(dtype, copy=False)
    angle = mean @ omega.T
    angle += phase
    decay = rows.variance @ (-0.5 * omega.T**2)
    for k, v in enumerate(rows.covariances):
        if v is not None:
            decay += _cross_decay(v, omega[:, rows.spans[k]])
    out = cosine(angle, dtype)
    out *= np.exp(decay.astype(dtype, copy=False))
    return out


def cosine(angle: np.ndarray, dtype: Any) -> np.ndarray:
    """Cosines in a working precision of float64 angles, which are overwritten."""
    if dtype == np.float32:
        # float32 cosines are vectorised and float64 ones are not, but a large angle must be reduced before rounding
        angle -= (2 * np.pi) * np.rint(angle * (1 / (2 * np.pi)))
        return np.cos(angle.astype(np.float32))
    return np.cos(angle, out=angle)


def cosines(x: np.ndarray, draws: Draws, stage: int, n: int, scale: float) -> np.ndarray:
    """Rahimi and Recht's features ``sqrt(2 / n) cos(nu . x + c)`` of rows x, nu standard normal times `scale`."""
    out = np.empty((len(x), n), dtype=x.dtype)
    for part, nu, phase in draws.scaled(stage, n, x.shape[1], scale, x.dtype):
        block = out[:, part]
        np.matmul(x, nu.T, out=block)
        block += phase
        np.cos(block, out=block)
    out *= out.dtype.type(np.sqrt(2 / n))
    return out


def _cross_decay(v: np.ndarray, omega: np.ndarray) -> np.ndarray:
    """``-omega' V omega / 2`` from the covariances alone, the variances left out."""
    i, j = np.triu_indices(v.shape[-1], 1)
    return -(v[:, i, j] @ (omega[:, i] * omega[:, j]).T)


def _exact_cosines(rows: Embedding, mean: np.ndarray, omega: np.ndarray, phase: np.ndarray) -> np.ndarray:
    gaussian = [k for k, m in enumerate(rows.exact) if m is None]
    columns = [j for k in gaussian for j in range(rows.spans[k].start, rows.spans[k].stop)]
    angle = mean[:, columns] @ omega[:, columns].T + phase
    decay = -0.5 * rows.variance[:, columns] @ omega[:, columns].T ** 2
    for k in gaussian:
        v = rows.covariances[k]
        if v is not None:
            decay += _cross_decay(v, omega[:, rows.spans[k]])
    phi = np.exp(1j * angle + decay)
    for k, message in enumerate(rows.exact):
        if message is not None:
            j = rows.spans[k].start
            one = message_characteristic(rows, k, omega[:, j])
            if rows.absent is not None:
                one = np.where(rows.absent[:, j, None], np.exp(1j * np.outer(mean[:, j], omega[:, j])), one)
            phi *= one
    return np.real(phi)
