"""A Gaussian process that grows with its labels and chooses its widths anew whenever they have doubled.

Up to some hundred labels it is the exact process. Beyond, it is a process on landmarks, and rows that those leave in doubt
are predicted once more from their nearest labels (docs/decisions/0019). Which of them answers is not the caller's concern:
all three are behind `append`, `predict` and `choose`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from heliograph.errors import FileFormatError
from heliograph.numerics.blas_threads import one_blas_thread
from heliograph.regression import landmarks as sparse
from heliograph.regression.gaussian_process import Process, append, choose, condition, leave_one_out
from heliograph.regression.labelled_rows import LabelledRows
from heliograph.regression.laid_out import ROUNDING, LaidOut
from heliograph.regression.landmarks import Landmarks
from heliograph.regression.neighbours import Neighbours
from heliograph.regression.process_evidence import fit_widths
from heliograph.regression.squared_exponential import NOISE_BOUNDS, Widths, start_widths

__all__ = ["LEAST_NOISE", "GrowingProcess", "Predicted", "design"]

LEAST_NOISE = NOISE_BOUNDS[0]  # noise variance, relative to the signal, that every label has at least
_ENOUGH = 320  # labels by which widths are chosen at most: choosing costs the cube of their number a hundred times
_NO_NOISE = 1e-13  # label noise relative to the labels' own scale below which one factor serves all outputs
_PLACE_NOISE = 1e-6  # relative noise of the process of places alone: it only has to keep the factor stable


class Predicted(NamedTuple):
    """The predictions for n rows."""

    mean: np.ndarray  # (n, q)
    variance: np.ndarray  # (n, q)
    new: np.ndarray  # (n,) how new a row is, from 0 (at a label) to 1 (far from all)


class GrowingProcess:
    """Labels, and the process conditioned on them.

    Widths are chosen by evidence when there are `start` labels and whenever their number has doubled since. Labels that
    bring next to no noise share one Cholesky factor. A process that has not been used yet only keeps its labels.
    More than `landmarks` labels are approximated by as many landmarks at most, chosen anew with the widths.
    """

    def __init__(self, n_inputs: int, n_outputs: int, start: int, landmarks: int = 800) -> None:
        self.start, self.landmarks = start, landmarks
        self.inputs = np.zeros((0, n_inputs))
        self.targets = np.zeros((0, n_outputs))
        self.noise = np.zeros((0, n_outputs))
        self.used = False
        self.fitted: Process | Landmarks | None = None  # None before the first `start` labels, or while not used
        self.n_fitted = 0  # labels when the widths were chosen last
        self.n_refits = 0
        self._forget_layouts()

    def _forget_layouts(self) -> None:
        self._laid_out: dict[Any, LaidOut] = {}  # precision -> the process laid out for it
        self._places: tuple[Process, LaidOut] | None = None  # the process of places alone
        self._near: Neighbours | None = None  # the labels to be looked up by place, where there are landmarks
        self._near_places: Neighbours | None = None  # the same without targets and noise

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def due(self) -> int:
        """How many labels there will be when the widths are chosen next."""
        return max(self.start, 2 * self.n_fitted)

    # ---- growing ------------------------------------------------------------------------------------------------
    def append(self, inputs: np.ndarray, targets: np.ndarray, noise: np.ndarray) -> None:
        """Take in labelled rows; their order does not matter but for rounding and for when the widths are chosen.

        Parameters
        ----------
        inputs : ``(n, k)``
        targets : ``(n, q)``
        noise : ``(n, q)``, the noise variance of each target
        """
        if not len(inputs):
            return
        self.inputs = np.concatenate([self.inputs, inputs])
        self.targets = np.concatenate([self.targets, targets])
        self.noise = np.concatenate([self.noise, noise])
        if not self.used:
            return
        if len(self) >= self.due:
            self.refit()
        elif self.fitted is not None:
            labels = LabelledRows(inputs, targets, None if self.fitted.labels.noise is None else noise)
            if isinstance(self.fitted, Landmarks):
                self.fitted = sparse.append(self.fitted, labels, self.landmarks)
            elif len(self) > self.landmarks:
                self.condition(self.fitted.widths)
            else:
                self.fitted = append(self.fitted, labels)
        self._forget_layouts()

    def use(self) -> None:
        """Make the process if there are labels enough."""
        self.used = True
        if self.fitted is None and len(self) >= self.due:
            self.refit()

    def refit(self) -> None:
        """Choose the widths by evidence, starting from the last ones."""
        last = None if self.fitted is None else self.fitted.widths
        some = np.unique(np.linspace(0, len(self) - 1, min(len(self), _ENOUGH)).astype(int))
        labels = self._labels().at(some)
        widths = fit_widths(labels, start=last)
        if labels.noise is not None:
            # N labels within their noise only show that the signal is below that noise by the root of N / 2: no better
            floor = np.sqrt(2 / len(some)) * np.median(labels.noise, axis=0)
            widths = widths._replace(signal=np.maximum(widths.signal, floor))
        self.condition(widths)
        self.n_fitted = len(self)
        self.n_refits += 1

    def condition(self, widths: Widths) -> None:
        """Make the process with given widths on all labels."""
        if len(self) > self.landmarks:
            self.fitted = sparse.condition(widths, self._labels(), self.landmarks)
        else:
            self.fitted = condition(widths, self._labels())
        self._forget_layouts()

    def _labels(self) -> LabelledRows:
        """All labels, without their noise where it is next to none."""
        scale = (self.targets**2).mean(axis=0)
        noisy = (self.noise.max(axis=0, initial=0.0) > _NO_NOISE * scale).any()
        return LabelledRows(self.inputs, self.targets, self.noise if noisy else None)

    # ---- predicting ---------------------------------------------------------------------------------------------
    def precision_for(self, scale: np.ndarray | None, finest: float) -> Any:
        """Single precision, twice as fast, where its errors are below `finest` in the targets' variance; else double."""
        assert self.fitted is not None
        largest = float(self.fitted.widths.signal.max()) * (1.0 if scale is None else float(scale.max()) ** 2)
        return np.float32 if largest * ROUNDING[np.float32] < finest else np.float64

    def predict(self, inputs: np.ndarray, scale: np.ndarray | None = None, finest: float = 0.0) -> Predicted:
        """Predict rows ``(n, k)``.

        Parameters
        ----------
        inputs : ``(n, k)``
        scale : ``(n,)``, the unit of each row's targets; None where all have the same
        finest : the variance below which errors of the targets do not count
        """
        assert self.fitted is not None
        precision = self.precision_for(scale, finest)
        if precision not in self._laid_out:
            self._laid_out[precision] = LaidOut(self.fitted, precision)
        with one_blas_thread():
            mean, variance, new = self._laid_out[precision].predict(inputs)
        if isinstance(self.fitted, Landmarks):
            doubt = variance.max(axis=1) if scale is None else variance.max(axis=1) * scale**2
            self._look_nearby(inputs, np.flatnonzero(doubt > finest), Predicted(mean, variance, new))
        if scale is not None:
            mean *= scale[:, None]
            variance *= (scale * scale)[:, None]
        return Predicted(mean, variance, new)

    def _look_nearby(self, inputs: np.ndarray, some: np.ndarray, said: Predicted) -> None:
        """Predict rows that landmarks leave uncertain from their nearest labels, in place; the smaller variance counts."""
        if not len(some):
            return
        if self._near is None:
            assert self.fitted is not None
            self._near = Neighbours(
                self.fitted.widths, LabelledRows(self.inputs, self.targets, self.fitted.labels.noise)
            )
        mean, variance, new = self._near.predict(inputs[some])
        said.new[some] = np.minimum(said.new[some], new)
        better = (variance < said.variance[some]).all(axis=1)
        said.mean[some[better]], said.variance[some[better]] = mean[better], variance[better]

    def leave_one_out(self) -> tuple[np.ndarray, np.ndarray]:
        """Residual of each label predicted from the others, and that residual's variance, both ``(N, q)``."""
        assert self.fitted is not None
        return sparse.leave_one_out(self.fitted) if isinstance(self.fitted, Landmarks) else leave_one_out(self.fitted)

    # ---- choosing -----------------------------------------------------------------------------------------------
    def choose(self, inputs: np.ndarray, weights: np.ndarray, tolerance: float, limit: int) -> np.ndarray:
        """Rows to label next, the most uncertain first, each as if those before it were known."""
        assert self.fitted is not None
        with one_blas_thread():
            return choose(self.fitted, inputs, weights, tolerance, limit)  # type: ignore[arg-type]

    def unseen(self, inputs: np.ndarray, share: float) -> np.ndarray:
        """The rows far from all labels: an exact process would leave at least `share` of their variance."""
        with one_blas_thread():
            far = self._process_of_places()[1].predict(inputs)[1][:, 0] > share
        if isinstance(self.fitted, Landmarks) and far.any():
            if self._near_places is None:
                widths = self._process_of_places()[0].widths
                self._near_places = Neighbours(widths, LabelledRows(self.inputs, np.zeros((len(self), 1))))
            far[far] = self._near_places.predict(inputs[far])[1][:, 0] > share
        return far

    def spread(self, inputs: np.ndarray, share: float, limit: int) -> np.ndarray:
        """Rows to label because they are far from all labels and from each other, until `share` of the variance is left."""
        places = self._process_of_places()[0]
        with one_blas_thread():
            return choose(places, inputs, tolerance=share, limit=limit)

    def _process_of_places(self) -> tuple[Process, LaidOut]:
        """The process of places alone, without targets and without the noise of labels."""
        assert self.fitted is not None
        if self._places is None:
            widths = self.fitted.widths._replace(signal=np.ones(1), noise=_PLACE_NOISE)
            inputs = self.fitted.inputs  # all labels, or the landmarks among them
            places = condition(widths, LabelledRows(inputs, np.zeros((len(inputs), 1))), profile=False)
            self._places = places, LaidOut(places, np.float64)
        return self._places

    # ---- keeping ------------------------------------------------------------------------------------------------
    def state(self) -> dict[str, np.ndarray]:
        """Labels and widths as arrays."""
        arrays = {"inputs": self.inputs, "targets": self.targets, "noise": self.noise}
        if self.fitted is not None:
            w = self.fitted.widths
            arrays |= {"centre": w.centre, "widths": w.widths, "signal": w.signal, "relative_noise": np.array(w.noise)}
            arrays["n_fitted"] = np.array(self.n_fitted)
        if isinstance(self.fitted, Landmarks):
            arrays |= {"chosen": self.fitted.chosen, "left": self.fitted.left}
        return arrays

    @classmethod
    def from_state(cls, arrays: Mapping[str, np.ndarray], start: int, landmarks: int = 800) -> GrowingProcess:
        """The reverse of `state`; raises `FileFormatError` where the arrays do not fit together."""
        inputs, targets, noise = (np.asarray(arrays[k], dtype=float) for k in ("inputs", "targets", "noise"))
        fits = inputs.ndim == targets.ndim == 2 and len(inputs) == len(targets) and noise.shape == targets.shape
        if not fits or not all(np.isfinite(a).all() for a in (inputs, targets, noise)) or (noise < 0).any():
            raise FileFormatError("the labels of a learned operator do not fit together")
        made = cls(inputs.shape[1], targets.shape[1], start, landmarks)
        made.inputs, made.targets, made.noise = inputs, targets, noise
        if "widths" in arrays:
            centre, widths, signal = (np.asarray(arrays[k], dtype=float) for k in ("centre", "widths", "signal"))
            fits = centre.shape == widths.shape == (inputs.shape[1],) and signal.shape == (targets.shape[1],)
            if not fits or not (widths > 0).all() or not (signal > 0).all() or not np.isfinite(centre).all():
                raise FileFormatError("the widths of a learned operator do not fit its labels")
            made.used, made.n_fitted = True, int(arrays["n_fitted"])
            given = Widths(centre, widths, signal, float(arrays["relative_noise"]))
            if "chosen" in arrays:
                made._restore_landmarks(arrays, given)
            else:
                made.condition(given)
        return made

    def _restore_landmarks(self, arrays: Mapping[str, np.ndarray], widths: Widths) -> None:
        chosen, left = np.asarray(arrays["chosen"]), np.asarray(arrays["left"], dtype=float)
        fits = chosen.ndim == 1 and np.issubdtype(chosen.dtype, np.integer) and left.shape == (len(self),)
        fits = fits and 0 < len(chosen) == len(np.unique(chosen)) and chosen.min() >= 0 and chosen.max() < len(self)
        if not fits or not (left >= 0).all() or not widths.noise > 0:
            raise FileFormatError("the landmarks of a learned operator do not fit its labels")
        self.fitted = sparse.rebuild(widths, self._labels(), chosen, left)


def design(inputs: np.ndarray, known: np.ndarray, n: int) -> np.ndarray:
    """Rows for a first design: pivoted on variance, with widths of two deviations of the rows at hand.

    `known` are inputs that have labels already.
    """
    widths = start_widths(np.concatenate([known, inputs]), 1)
    process = condition(widths, LabelledRows(known, np.zeros((len(known), 1))), profile=False)
    return choose(process, inputs, limit=n)
