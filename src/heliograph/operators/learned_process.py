"""The regression of one direction: a Gaussian process that grows with the answers and refits its widths as it doubles.

Up to some hundred labels it is the exact process. Beyond, it is a process on landmarks, and what that leaves in doubt is
looked up once more among the nearest labels (docs/decisions/0207).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from heliograph.errors import FileFormatError
from heliograph.numerics.blas_threads import one_blas_thread
from heliograph.operators.calibration import Calibration
from heliograph.operators.packing import part
from heliograph.regression import landmarks as sparse
from heliograph.regression.gaussian_process import Process, append, choose, condition, leave_one_out
from heliograph.regression.landmarks import Landmarks
from heliograph.regression.neighbours import Neighbours
from heliograph.regression.process_evidence import fit_widths
from heliograph.regression.squared_exponential import NOISE_BOUNDS, Widths, start_widths

__all__ = ["Correction", "design"]

_SEEN = 0.25  # share of the prior variance of an exact process below which a place counts as seen
_ENOUGH = 320  # labels by which widths are chosen at most
_LATEST = 64  # answers by which their noise is judged
_ROUNDING = {np.float32: 1e-3, np.float64: 1e-12}  # share of the prior variance that rounding may hide
_CHUNK = 1024  # rows: the kernel matrix with a few hundred points stays in the second-level cache
_AVERAGED = 0.2  # of what an answer is wrong by: so far the regression is asked to average the noise of answers
_NO_NOISE = 1e-13  # label noise relative to the labels' own scale below which one factor serves all outputs


class Correction:
    """Labels of one direction, and the process conditioned on them.

    Widths are chosen by evidence when there are `start` labels and whenever their number has doubled since. Labels that
    bring no noise worth the name share one Cholesky factor. A direction that nobody has used yet only keeps its labels.
    More than `landmarks` labels are seen through as many landmarks at most, chosen anew with the widths.
    """

    def __init__(self, n_inputs: int, n_outputs: int, start: int, landmarks: int = 800) -> None:
        self.start, self.landmarks = start, landmarks
        self.inputs = np.zeros((0, n_inputs))
        self.targets = np.zeros((0, n_outputs))
        self.noise = np.zeros((0, n_outputs))
        self.own_kl = np.zeros(0)  # what each answer itself may be wrong by
        self.label_kl = 0.0  # what an answer is usually wrong by: the median of the latest
        self.nugget_kl = 0.0  # what the least noise that the regression puts on every label is worth
        self.n_trusted = 0  # messages that were predicted and sent
        self.n_improper = 0  # answers whose message was improper
        self.used = False
        self.process: Process | Landmarks | None = None  # None before the first `start` labels, or while not used
        self.n_fitted = 0  # labels when the widths were chosen last
        self.n_refits = 0
        self.calibration = Calibration()
        self._ready: dict[Any, _Ready] = {}  # precision -> the process laid out for it
        self._near: Neighbours | None = None  # the labels to be looked up by place, where there are landmarks
        self._near_bare: Neighbours | None = None  # the same without their noise

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def due(self) -> int:
        """How many labels there will be when the widths are chosen next."""
        return max(self.start, 2 * self.n_fitted)

    @property
    def always_proper(self) -> bool:
        """Whether every answer so far gave a proper message."""
        return self.n_improper == 0 and len(self) >= self.start

    @property
    def least(self) -> float:
        """The expected KL below which another answer would not help: labels, even averaged, are no better."""
        return _AVERAGED * max(self.label_kl, self.nugget_kl)

    def note_scale(self, weights: np.ndarray, scale: np.ndarray | None) -> None:
        """Remember what errors in the targets of a plate cost, ``(n, q)``, and how large its corrections are."""
        assert self.process is not None
        squares = np.ones(1) if scale is None else scale * scale
        cost = np.median(weights * squares[:, None], axis=0) if len(weights) else np.zeros(weights.shape[1])
        self.nugget_kl = float(NOISE_BOUNDS[0] * cost @ self.process.widths.signal)

    def learn(
        self,
        inputs: np.ndarray,
        targets: np.ndarray,
        noise: np.ndarray,
        own_kl: np.ndarray,
        scale: np.ndarray | None = None,
        excess: np.ndarray | None = None,
    ) -> None:
        """Take in labelled rows; their order does not matter but for rounding and for when the widths are chosen.

        `scale` is the size of each target by which it is divided, `excess` the log variance of each belief over its
        cavity's, where that is known.
        """
        if not len(inputs):
            return
        self.own_kl = np.concatenate([self.own_kl, own_kl])
        self.label_kl = float(np.median(self.own_kl[-_LATEST:]))
        if excess is not None:
            self.n_improper += int((excess > 6 * np.sqrt(noise[:, 1]) + 1e-9).sum())
        if scale is not None:
            targets, noise = targets / scale[:, None], noise / (scale * scale)[:, None]
        self.inputs = np.concatenate([self.inputs, inputs])
        self.targets = np.concatenate([self.targets, targets])
        self.noise = np.concatenate([self.noise, noise])
        if not self.used:
            return
        if len(self) >= self.due:
            self.refit()
        elif self.process is not None:
            own = None if self.process.label_noise is None else noise
            if isinstance(self.process, Landmarks):
                self.process = sparse.append(self.process, inputs, targets, own, self.landmarks)
            elif len(self) > self.landmarks:
                self.condition(self.process.widths)
            else:
                self.process = append(self.process, inputs, targets, own)
        self._ready, self._near, self._near_bare = {}, None, None

    def use(self) -> None:
        """Make the process if there are labels enough."""
        self.used = True
        if self.process is None and len(self) >= self.due:
            self.refit()

    def refit(self) -> None:
        """Choose the widths by evidence, starting from the last ones."""
        last = None if self.process is None else self.process.widths
        noise = self._noise()
        # widths need no more than some hundred labels, and choosing them costs the cube of their number a hundred times
        some = np.unique(np.linspace(0, len(self) - 1, min(len(self), _ENOUGH)).astype(int))
        own = None if noise is None else noise[some]
        widths = fit_widths(self.inputs[some], self.targets[some], own, start=last)
        if own is not None:
            # N labels within their noise only show that the signal is below that noise by the root of N / 2: no better
            floor = np.sqrt(2 / len(own)) * np.median(own, axis=0)
            widths = widths._replace(signal=np.maximum(widths.signal, floor))
        self.condition(widths)
        self.n_fitted = len(self)
        self.n_refits += 1

    def condition(self, widths: Widths) -> None:
        """The process with given widths on all labels."""
        if len(self) > self.landmarks:
            self.process = sparse.condition(widths, self.inputs, self.targets, self._noise(), self.landmarks)
        else:
            self.process = condition(widths, self.inputs, self.targets, self._noise())
        self._ready, self._near, self._near_bare = {}, None, None

    def _noise(self) -> np.ndarray | None:
        scale = (self.targets**2).mean(axis=0)
        return self.noise if (self.noise.max(axis=0, initial=0.0) > _NO_NOISE * scale).any() else None

    def predict(
        self, inputs: np.ndarray, scale: np.ndarray | None = None, finest: float = 0.0
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Means and variances ``(n, q)``, and how new each row is ``(n,)``, from 0 (at a label) to 1 (far from all).

        Single precision, twice as fast, is used where its errors are below `finest` in the targets' variance.
        """
        assert self.process is not None
        largest = float(self.process.widths.signal.max()) * (1.0 if scale is None else float(scale.max()) ** 2)
        precision = np.float32 if largest * _ROUNDING[np.float32] < finest else np.float64
        if precision not in self._ready:
            self._ready[precision] = _Ready(self.process, precision)
        with one_blas_thread():
            mean, variance, new = self._ready[precision].predict(inputs)
        if isinstance(self.process, Landmarks):
            self._look_nearby(inputs, scale, finest, mean, variance, new)
        if scale is not None:
            mean *= scale[:, None]
            variance *= (scale * scale)[:, None]
        return mean, variance, new

    def _look_nearby(
        self,
        inputs: np.ndarray,
        scale: np.ndarray | None,
        finest: float,
        mean: np.ndarray,
        variance: np.ndarray,
        new: np.ndarray,
    ) -> None:
        """Ask the nearest labels about rows of which landmarks leave more than `finest` unknown; the surer one counts."""
        doubt = variance.max(axis=1) if scale is None else variance.max(axis=1) * scale**2
        some = np.flatnonzero(doubt > finest)
        if not len(some):
            return
        m, v, n = self._nearest().predict(inputs[some])
        new[some] = np.minimum(new[some], n)
        better = (v < variance[some]).all(axis=1)
        mean[some[better]], variance[some[better]] = m[better], v[better]

    def _nearest(self) -> Neighbours:
        if self._near is None:
            assert self.process is not None
            self._near = Neighbours(self.process.widths, self.inputs, self.targets, self.process.label_noise)
        return self._near

    def choose(self, inputs: np.ndarray, weights: np.ndarray, tolerance: float, limit: int) -> np.ndarray:
        """Rows to ask about next, the most uncertain first, each as if those before it were known."""
        assert self.process is not None
        with one_blas_thread():
            return choose(self.process, inputs, weights, tolerance, limit)  # type: ignore[arg-type]

    def unseen(self, inputs: np.ndarray) -> np.ndarray:
        """Which rows are far from all labels together: an exact process would know little there."""
        self._lay_bare()
        with one_blas_thread():
            far = self._ready["bare"].predict(inputs)[1][:, 0] > _SEEN
        if isinstance(self.process, Landmarks) and far.any():
            if self._near_bare is None:
                self._near_bare = Neighbours(self._bare.widths, self.inputs, np.zeros((len(self), 1)), None)
            far[far] = self._near_bare.predict(inputs[far])[1][:, 0] > _SEEN
        return far

    def spread(self, inputs: np.ndarray, limit: int) -> np.ndarray:
        """Rows to ask about because nothing like them was seen, far from what is known and from each other."""
        self._lay_bare()
        with one_blas_thread():
            return choose(self._bare, inputs, tolerance=_SEEN, limit=limit)

    def _lay_bare(self) -> None:
        """The process of places alone, without the noise of labels."""
        assert self.process is not None
        if "bare" not in self._ready:
            widths = self.process.widths._replace(signal=np.ones(1), noise=1e-6)
            places = self.process.inputs  # all labels, or the landmarks among them
            self._bare = condition(widths, places, np.zeros((len(places), 1)), profile=False)
            self._ready["bare"] = _Ready(self._bare, np.float64)

    def leave_one_out(self) -> tuple[np.ndarray, np.ndarray]:
        """Residual of each label predicted from the others, and that residual's variance, both ``(N, q)``."""
        assert self.process is not None
        return (
            sparse.leave_one_out(self.process) if isinstance(self.process, Landmarks) else leave_one_out(self.process)
        )

    # ---- keeping ------------------------------------------------------------------------------------------------
    def state(self) -> dict[str, np.ndarray]:
        """Labels, widths and calibration as arrays."""
        arrays = {"inputs": self.inputs, "targets": self.targets, "noise": self.noise, "own_kl": self.own_kl}
        arrays |= {"n_improper": np.array(self.n_improper), "n_trusted": np.array(self.n_trusted)}
        arrays |= {f"calibration.{k}": a for k, a in self.calibration.state().items()}
        if self.process is not None:
            w = self.process.widths
            arrays |= {"centre": w.centre, "widths": w.widths, "signal": w.signal, "relative_noise": np.array(w.noise)}
            arrays["n_fitted"] = np.array(self.n_fitted)
        if isinstance(self.process, Landmarks):
            arrays |= {"chosen": self.process.chosen, "left": self.process.left}
        return arrays

    @classmethod
    def from_state(cls, arrays: Mapping[str, np.ndarray], start: int, landmarks: int = 800) -> Correction:
        """The reverse of `state`; raises `FileFormatError` where the arrays do not fit together."""
        inputs, targets, noise = (np.asarray(arrays[k], dtype=float) for k in ("inputs", "targets", "noise"))
        fits = inputs.ndim == targets.ndim == 2 and len(inputs) == len(targets) and noise.shape == targets.shape
        if not fits or not all(np.isfinite(a).all() for a in (inputs, targets, noise)) or (noise < 0).any():
            raise FileFormatError("the labels of a learned operator do not fit together")
        made = cls(inputs.shape[1], targets.shape[1], start, landmarks)
        made.inputs, made.targets, made.noise = inputs, targets, noise
        made.own_kl, made.n_improper = np.asarray(arrays["own_kl"], dtype=float), int(arrays["n_improper"])
        made.n_trusted = int(arrays.get("n_trusted", 0))  # files of old have none
        if made.own_kl.shape != (len(inputs),):
            raise FileFormatError("the labels of a learned operator do not fit together")
        made.label_kl = float(np.median(made.own_kl[-_LATEST:])) if len(made.own_kl) else 0.0
        made.calibration.restore(part(arrays, "calibration."))
        if "widths" in arrays:
            centre, widths, signal = (np.asarray(arrays[k], dtype=float) for k in ("centre", "widths", "signal"))
            fits = centre.shape == widths.shape == (inputs.shape[1],) and signal.shape == (targets.shape[1],)
            if not fits or not (widths > 0).all() or not (signal > 0).all() or not np.isfinite(centre).all():
                raise FileFormatError("the widths of a learned operator do not fit its labels")
            made.used, made.n_fitted = True, int(arrays["n_fitted"])
            told = Widths(centre, widths, signal, float(arrays["relative_noise"]))
            if "chosen" in arrays:
                made.process = _landmarks_from(arrays, told, made)
            else:
                made.condition(told)
        return made


def _landmarks_from(arrays: Mapping[str, np.ndarray], widths: Widths, made: Correction) -> Landmarks:
    chosen, left = np.asarray(arrays["chosen"]), np.asarray(arrays["left"], dtype=float)
    fits = chosen.ndim == 1 and np.issubdtype(chosen.dtype, np.integer) and left.shape == (len(made),)
    fits = fits and 0 < len(chosen) == len(np.unique(chosen)) and chosen.min() >= 0 and chosen.max() < len(made)
    if not fits or not (left >= 0).all() or not widths.noise > 0:
        raise FileFormatError("the landmarks of a learned operator do not fit its labels")
    return sparse.rebuild(widths, made.inputs, made.targets, made._noise(), chosen, left)


class _Ready:
    """A process laid out for prediction: a plate costs two matrix products and one exponential.

    Labels run along the first axis and rows of the plate along the second, so that every sum is over long rows of memory.
    """

    def __init__(self, process: Process | Landmarks, precision: Any) -> None:
        w = process.widths
        self.precision = precision
        self.kept = np.flatnonzero(np.isfinite(w.widths))
        self.all_kept = len(self.kept) == len(w.widths)
        self.scale = 1.0 / w.widths[self.kept]
        self.offset = w.centre[self.kept] * self.scale
        u = process.inputs[:, self.kept] * self.scale - self.offset
        self.points = u.astype(precision)  # (N, k)
        self.half_squares = (0.5 * (u**2).sum(axis=1))[:, None].astype(precision)
        # all outputs' factors one below the other, then the weights: one product gives every variance and every mean
        self.n_factors, self.n_labels = len(process.lower), len(process)
        self.matrix = np.concatenate([*process.inverse_lower, process.weights.T]).astype(precision)  # (f N + q, N)
        self.signal = w.signal
        constant = np.flatnonzero(np.isinf(w.widths))
        self.constant, self.centre = constant, w.centre[constant]
        self.slack = 1e-9 * (1 + np.abs(self.centre))

    def predict(self, inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Means and variances ``(n, q)``, and how new a row is, ``(n,)``.

        That is the share of the prior variance which would be left if its nearest label were the only one and exact. It
        speaks of places alone: where labels are noisy their own share says nothing about how far one is from them.
        """
        n = len(inputs)
        mean, variance, new = np.empty((n, self.signal.size)), np.empty((n, self.signal.size)), np.empty(n)
        for k in range(0, n, _CHUNK):
            part = slice(k, k + _CHUNK)
            self._chunk(inputs[part], mean[part], variance[part], new[part])
        return mean, variance, new

    def _chunk(self, inputs: np.ndarray, mean: np.ndarray, variance: np.ndarray, new: np.ndarray) -> None:
        u = inputs * self.scale if self.all_kept else inputs[:, self.kept] * self.scale
        u -= self.offset
        u = u.astype(self.precision, copy=False)
        c = self.points @ u.T  # (N, n)
        c -= self.half_squares
        c -= 0.5 * np.einsum("nk,nk->n", u, u)
        np.exp(c, out=c)
        if len(self.constant):
            departs = np.abs(inputs[:, self.constant] - self.centre) > self.slack
            if departs.any():
                c[:, departs.any(axis=1)] = 0.0  # nothing is known of a row whose column never moved before
        nearest = c.max(axis=0)
        np.subtract(1.0, nearest * nearest, out=new)
        both = self.matrix @ c
        f, size = self.n_factors, self.n_labels
        halves = both[: f * size]
        halves *= halves
        left = 1.0 - halves.reshape(f, size, -1).sum(axis=1)
        np.maximum(left, _ROUNDING[self.precision], out=left)  # no less is known of what is left
        np.multiply(left.T, self.signal, out=variance)
        mean[...] = both[f * size :].T


def design(inputs: np.ndarray, known: np.ndarray, n: int) -> np.ndarray:
    """Rows for a first design: pivoted on variance, with widths of two deviations of the rows at hand.

    `known` are inputs that have labels already.
    """
    widths = start_widths(np.concatenate([known, inputs]), 1)
    process = condition(widths, known, np.zeros((len(known), 1)), profile=False)
    return choose(process, inputs, limit=n)
