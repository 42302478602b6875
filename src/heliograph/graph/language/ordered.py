"""Ordered categories: a score cut at known points or at random ones."""

from __future__ import annotations

from typing import Unpack

import numpy as np

from heliograph.errors import ModelError, UnsupportedError
from heliograph.factors import (
    BetweenCuts,
    Factor,
    Incoming,
    LogisticBernoulli,
    OrdinalLogit,
    OrdinalProbit,
    ProbitBernoulli,
)
from heliograph.families import Bernoulli, Categorical, Gaussian
from heliograph.graph.check import check_counts, check_number, check_observed
from heliograph.graph.draft import Draft
from heliograph.graph.language.children import Entries, Kind, as_gaussian, attach_plate, child, fit, fitted_size, want
from heliograph.graph.language.continuous import gaussian
from heliograph.graph.language.functions import greater
from heliograph.graph.language.keywords import EntryKeywords
from heliograph.graph.language.linear import stacked, subtract
from heliograph.graph.language.statements import constrain
from heliograph.graph.placing import place
from heliograph.graph.plating import unattached
from heliograph.graph.quantity import Argument, Quantity

__all__ = ["ordinal"]


def ordinal(
    draft: Draft,
    name: str,
    score: Argument,
    cuts: Argument,
    *,
    link: str = "probit",
    **keywords: Unpack[EntryKeywords],
) -> Quantity:
    """An ordered category: the number of cut points that the score plus noise exceeds.

    Parameters
    ----------
    score
        A Gaussian variable.
    cuts
        K - 1 increasing numbers, or K - 1 Gaussian variables. Give random cut points priors that keep them in
        order, or add ``model.constrain(cuts[1:] > cuts[:-1])``.
    link
        "probit" for Gaussian noise of variance 1, "logit" for logistic noise.
    observed
        Labels 0, 1, ..., K - 1.

    Returns
    -------
    Variable
        The category; with random cut points, the score (with its noise, if that is Gaussian).

    Examples
    --------
    >>> import heliograph as hg
    >>> model = hg.Model()
    >>> z = model.gaussian("z", 0.0, sd=1.0)
    >>> y = model.ordinal("y", z, [-1.0, 1.0], observed=[2.0, 1.0, 2.0])
    >>> bool(model.infer()[z].mean > 0.8)
    True
    """
    entries = Entries(**keywords)
    score = want(name, "score", score, Gaussian) if isinstance(score, Quantity) else as_gaussian(draft, name, score)
    if link not in ("probit", "logit"):
        raise ModelError(f"variable {name!r}: link= is 'probit' or 'logit', not {link!r}")
    if isinstance(cuts, Quantity):
        return _random_cuts(draft, name, score, want(name, "cuts", cuts, Gaussian), link, entries)
    known = check_number(name, "cuts", cuts)
    if not known.ndim or np.any(np.diff(known, axis=-1) <= 0):
        raise ModelError(f"variable {name!r}: cuts must be an array that rises along its last axis")
    factor = OrdinalProbit() if link == "probit" else OrdinalLogit()
    kind = Kind(Categorical, known.shape[-1] + 1)
    return child(draft, name, factor, {"z": score}, {"cuts": known}, kind, entries)


# ---- random cut points -------------------------------------------------------------------------------------------
def _random_cuts(draft: Draft, name: str, score: Quantity, cuts: Quantity, link: str, entries: Entries) -> Quantity:
    """What the labels say of the score and of the cut points around each of them."""
    if len(cuts.shape) != 1:
        raise UnsupportedError(
            f"variable {name!r}: random cut points have one axis, the same for all rows, not the shape {cuts.shape}; known cut "
            "points can differ from row to row"
        )
    labels = _labels(name, score, cuts.size + 1, entries)
    draft.check_name(name)
    draft.take_name(name)
    full = fit(f"variable {name!r}", score.shape, labels.shape)
    labels = np.broadcast_to(labels, full)
    place(draft, score.node)
    place(draft, cuts.node)
    score = Quantity(score.node, np.broadcast_to(score.entries(), full))
    ports = {"z": score, **{f"cut_{j}": cuts.part((j,)) for j in range(cuts.size)}}
    draft.note_counts(name, unattached(draft, CutScore(link, cuts.size), ports, {"y": labels}, full))
    if np.isnan(labels).all():
        return score
    write = _probit_sites if link == "probit" else _logit_sites
    return write(draft, name, score, cuts, labels)


def _labels(name: str, score: Quantity, k: int, entries: Entries) -> np.ndarray:
    """The observed labels, NaN where there are none."""
    if entries.observed is None:
        return np.full(fitted_size(name, score.shape, entries.size), np.nan)
    labels = check_counts(name, "observed", entries.observed)
    if entries.missing is not None:
        given = check_observed(name, Categorical, labels.shape, k, entries.observed, entries.missing)
        labels = np.where(given.is_point.reshape(labels.shape), labels, np.nan)
    if np.any(labels >= k):
        raise ModelError(
            f"variable {name!r}: there are {k} categories, 0 to {k - 1}, but {np.nanmax(labels):g} was observed"
        )
    return labels if entries.size is None else np.broadcast_to(labels, fitted_size(name, labels.shape, entries.size))


def _probit_sites(draft: Draft, name: str, score: Quantity, cuts: Quantity, labels: np.ndarray) -> Quantity:
    """The score with its noise, between the two cut points around its label: one site for both bounds."""
    noisy = gaussian(draft, f"score of {name}", score, 1.0, size=labels.shape)
    for above in (True, False):
        rows = np.flatnonzero((labels > 0 if above else labels < cuts.size).reshape(-1))
        if rows.size:
            x = noisy.part(np.unravel_index(rows, labels.shape))
            which = labels.reshape(-1)[rows].astype(int)
            cut = cuts.part(which - 1 if above else which)
            constrain(draft, greater(draft, x, cut) if above else greater(draft, cut, x))
    return noisy


def _logit_sites(draft: Draft, name: str, score: Quantity, cuts: Quantity, labels: np.ndarray) -> Quantity:
    """A logistic site at either end, and between them one of both bounds."""
    flat, k = labels.reshape(-1), cuts.size
    z = Quantity(score.node, score.entries().reshape(-1))
    for rows, cut, above in ((flat == 0, 0, False), (flat == k, k - 1, True)):
        at = np.flatnonzero(rows)
        if at.size:
            x, c = z.part(at), cuts.part((cut,))
            gap = subtract(draft, x, c) if above else subtract(draft, c, x)
            attach_plate(draft, name, LogisticBernoulli(), {"z": gap, "y": np.ones(at.size)}, {})
    inner = np.flatnonzero((flat > 0) & (flat < k))
    if inner.size:
        x, lower = z.part(inner), flat[inner].astype(int) - 1
        a, b = subtract(draft, x, cuts.part(lower)), subtract(draft, cuts.part(lower + 1), x)
        parts = tuple((gap.node, gap.entries().reshape(-1)) for gap in (a, b))
        ends = stacked(draft, f"ends of {name}", parts, (inner.size,))
        attach_plate(draft, name, BetweenCuts(), {"ends": ends}, {})
    return score


class CutScore(Factor):
    """How an ordered category with random cut points is made: it draws and weighs labels, and is in no run.

    Parameters
    ----------
    link
        "probit" or "logit".
    n
        The number of cut points.
    """

    name = "cut_score"

    def __init__(self, link: str, n: int) -> None:
        self.n = n
        self.below = ProbitBernoulli() if link == "probit" else LogisticBernoulli()
        cuts = {f"cut_{j}": (Gaussian,) for j in range(n)}
        self.families = {"z": (Gaussian,), **cuts, "y": ()}  # type: ignore[misc]
        self.ports = tuple(self.families)  # type: ignore[misc]

    def draw(self, rng: np.random.Generator, incoming: Incoming) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Labels given score and cut points."""
        given = Categorical(np.exp(self._log_p(incoming)))
        return given.sample(rng), given.mean, given.variance

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the probability of the labels."""
        label = np.asarray(incoming["y"]).astype(int)
        return np.take_along_axis(self._log_p(incoming), label[..., None], axis=-1)[..., 0]

    def _log_p(self, incoming: Incoming) -> np.ndarray:
        """``log`` of the probability of every label; cut points that are out of order leave nothing between them."""
        z: Gaussian = incoming["z"]
        below = np.zeros((*z.shape, self.n + 2))
        below[..., -1] = 1.0
        for j in range(self.n):
            cut: Gaussian = incoming[f"cut_{j}"]
            gap = Gaussian.from_mean_variance(cut.mean - z.mean, cut.variance + z.variance)
            below[..., j + 1] = np.exp(self.below.log_z({"z": gap, "y": Bernoulli.point_mass(np.ones(z.shape))}))
        p = np.maximum(np.diff(np.maximum.accumulate(below, axis=-1), axis=-1), 0.0)
        with np.errstate(divide="ignore"):
            return np.log(p / p.sum(axis=-1, keepdims=True))
