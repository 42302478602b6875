"""Remarks on an integration: several modes, scales that may be zero, hyper-parameters without information in the data, failures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from heliograph.engine.nested.bias import Bias
from heliograph.engine.nested.integrating import ABOVE, FOLLOWED, Whole
from heliograph.engine.nested.points import log_prior
from heliograph.engine.nested.records import Error, Integration
from heliograph.graph.hyper import Hyper

__all__ = ["doubts_of", "of_bias", "of_long_tails", "of_rough_widths", "remarks_of"]

_OPEN = 2.0  # nats by which the evidence at the lowest scale may fall short of the best: zero is not ruled out
_UNKNOWN = 0.15  # relative change of a prior's mean and standard deviation, below which the data said nothing
_HEAVY = 0.01  # share of the mass that makes a point count
_ROUGH = 0.3  # estimated error, in nats or standard deviations, above which the result is not to be trusted
_FAR, _SHORT = (
    6.0,
    0.35,
)  # widths of a prior, and the share of their square that its log density falls: a Gaussian's is .5
_NODES = 20.0  # nodes of equal weight, at the least, that carry the mass in three and more dimensions
_TOUCHING = 0.02  # share of the mass about as near to one mode as to another; those apart had .002, wrong ones .05 up
_MODES = 3  # so many from half a dozen starts, and there are likely others
_LOST = 0.15  # share of the mass beyond all values, in up to three dimensions; well-behaved models have .07
# estimated errors beyond which more than three hyper-parameters are warned of: two autoregressions, off by up to .37 and a third,
# were estimated at .05 and .056, and at .053 and .083; explored further, to be right, at .022 and .038
_OFF, _WIDTH = 0.04, 0.05
_NO_ANSWER = 0.01  # share of the mass next to values without an answer, above which the result is not to be trusted; in the tests 0
_BEYOND = 0.05  # share of the mass beyond what was explored, above which the result is not to be trusted


def remarks_of(whole: Whole, hypers: Sequence[Hyper], fixed: Sequence[str]) -> tuple[str, ...]:
    """Sentences for a reader, none of which makes the result wrong."""
    found: list[str] = []
    if len(whole.regions) > 1:
        shares = [np.exp(r.log_mass - whole.log_mass) for r in whole.regions]
        found.append(
            f"{len(shares)} modes were found and integrated over, with {', '.join(f'{100 * s:.0f} %' for s in shares)} "
            "of the mass; "
            "there may be others"
        )
    start = 0
    for h in hypers:
        part = slice(start, start + h.prior.n)
        found += _of_one(whole, hypers, h, part)
        start += h.prior.n
    if fixed:
        found.append(
            f"{', '.join(fixed)} took their best value: what depends on them has too small a standard deviation"
        )
    if whole.u.shape[1] > max(FOLLOWED):
        found.append(
            f"with {whole.u.shape[1]} hyper-parameters long tails are followed along axes only: of an autoregression, means were "
            "up to .2 and standard deviations up to a quarter off"
        )
    return tuple(found)


def _of_one(whole: Whole, hypers: Sequence[Hyper], h: Hyper, part: slice) -> list[str]:
    u, w = whole.u[:, part], whole.weights
    mean = w @ u
    sd = np.sqrt(w @ (u - mean) ** 2)
    if (np.abs(mean - h.prior.centre) < _UNKNOWN * h.prior.width).all() and (
        np.abs(sd / h.prior.width - 1.0) < _UNKNOWN
    ).all():
        return [f"the data say next to nothing about {h.name!r}: its posterior is its prior"]
    value = _as_good_as_zero(whole, hypers, h, part)
    if value is None:
        return []
    return [f"{h.name!r} may be zero: the evidence at {value:.2g} is within {_OPEN:g} nats of the best"]


def _as_good_as_zero(whole: Whole, hypers: Sequence[Hyper], h: Hyper, part: slice) -> float | None:
    """The least value of a scale that was tried, if it is small and nearly as good as the best; else None."""
    if not h.prior.positive or h.prior.n > 1:
        return None
    evidence = np.array([p.log_density - log_prior(hypers, p.u) for p in whole.points])
    lowest = int(np.argmin([p.u[part][0] for p in whole.points]))
    value = h.prior.value(whole.points[lowest].u[part])
    best = h.prior.value(whole.weights @ whole.u[:, part])
    return float(value) if evidence[lowest] > evidence.max() - _OPEN and value < 0.3 * best else None


def _has_a_long_tail(h: Hyper) -> bool:
    """Whether a prior falls more slowly towards zero than a Gaussian does, on the scale that is explored."""
    far = h.prior.centre - _FAR * h.prior.width
    return bool(h.prior.log_density(far) - h.prior.log_density(h.prior.centre) > -_SHORT * _FAR**2)


def of_long_tails(whole: Whole, hypers: Sequence[Hyper]) -> str:
    """What to say of scales that may be zero, in more dimensions than those in which long tails are followed; else empty."""
    if whole.u.shape[1] <= max(FOLLOWED):
        return ""
    ends = np.cumsum([h.prior.n for h in hypers])
    parts = [slice(end - h.prior.n, end) for h, end in zip(hypers, ends, strict=True)]
    names = [
        repr(h.name)
        for h, part in zip(hypers, parts, strict=True)
        if _has_a_long_tail(h) and _as_good_as_zero(whole, hypers, h, part) is not None
    ]
    if not names:
        return ""
    return (
        f"{', '.join(names)} may be zero, and with {whole.u.shape[1]} hyper-parameters tails as long as that are not followed to "
        "their end: means and standard deviations of such scales may be off by a tenth or two of a standard deviation; "
        "integrate over fewer at once, or give the scale a prior that is away from zero"
    )


def of_rough_widths(error: Error, d: int) -> str:
    """What to say of estimated errors that are more than a few hundredths, in more dimensions than are explored finely."""
    if d <= max(FOLLOWED) or not (error.mean > _OFF or error.sd > _WIDTH):
        return ""
    return (
        f"with {d} hyper-parameters their posterior is explored roughly: their means are estimated to be within {error.mean:.2g} "
        f"standard deviations, and their standard deviations within {100 * error.sd:.2g} %, and may be off by three times that; "
        "integrate over fewer at once, or give them narrower priors"
    )


def of_bias(bias: Bias | None, mended: bool) -> tuple[str, ...]:
    """Remarks on the error of EP's own evidence."""
    if bias is None or not bias.matters:
        return ()
    words = f"EP's own evidence is off by more at some values of the hyper-parameters than at others ({bias.spread:.2g} nats)"
    if mended:
        return (f"{words}, and was corrected by importance sampling",)
    return (
        f"{words}, their means by {bias.shift:.2g} standard deviations or more, and too few draws count to correct it",
    )


def doubts_of(whole: Whole, integration: Integration, failed: Sequence[np.ndarray] = ()) -> str:
    """Why the result is not to be trusted; empty where it is.

    Parameters
    ----------
    whole, integration
        The result.
    failed
        The values at which EP gave no answer.
    """
    found: list[str] = []
    beyond = [r.flood.share for r in whole.regions if not r.flood.ended]
    if beyond and max(beyond) > _BEYOND:
        found.append(
            f"the posterior of the hyper-parameters goes on beyond the {integration.n_evaluations} values that were tried; "
            "give them narrower priors"
        )
    error, d = integration.error, whole.u.shape[1]
    rough = max((x for x in (error.log_evidence, error.mean) if np.isfinite(x)), default=0.0)
    few = d > 2 and len(whole.regions) == 1 and 1.0 / float(np.sum(whole.weights**2)) < _NODES
    above = not all(r.above < ABOVE for r in whole.regions)
    if few or above or rough > _ROUGH:
        found.append(
            f"the evidence between the {integration.n_evaluations} values that were tried is not known well enough (log evidence "
            f"within {error.log_evidence:.2g}, means within {error.mean:.2g} standard deviations): give the hyper-parameters "
            "narrower priors, or write scales that depend on each other as one scale and a ratio"
        )
    found += _of_modes(whole)
    found += _of_failures(failed, whole)
    heavy = np.abs(integration.weights) > _HEAVY
    points = [p for p, h in zip(whole.points, heavy, strict=True) if h and p.posterior is not None]
    open_ = [p for p in points if p.posterior is not None and not p.posterior.converged]
    if open_:
        assert open_[0].posterior is not None
        found.append(
            f"EP did not converge at {len(open_)} of {len(points)} values of the hyper-parameters that count; at the first: "
            f"{open_[0].posterior.status}"
        )
    if integration.n_failed > 0.2 * integration.n_evaluations:
        found.append(
            f"EP gave no answer at {integration.n_failed} of {integration.n_evaluations} values of the hyper-parameters; give them "
            "narrower priors"
        )
    return "; ".join(found)


def _of_failures(failed: Sequence[np.ndarray], whole: Whole) -> list[str]:
    """Whether mass is nearer to values without an answer than to all others, each measured in its region's frame."""
    lost = 0.0
    for r in whole.regions if failed else ():
        gaps = [
            np.linalg.norm(r.nodes.z[:, None] - r.frame.whitened(np.array(u)), axis=-1).min(axis=1)
            for u in ([p.u for p in r.points], list(failed))
        ]
        lost += float(np.exp(r.log_mass - whole.log_mass) * r.nodes.weights[gaps[1] < gaps[0]].sum())
    if lost <= _NO_ANSWER:
        return []
    return [
        f"{100 * lost:.0f} % of what was taken for the posterior of the hyper-parameters is nearest to values at which the model "
        "is impossible, or has no answer: the mass ends somewhere before them, nobody knows where; give the hyper-parameters "
        "priors that end there, as those of model.flat(name, lower, upper) and model.half_normal do"
    ]


def _of_modes(whole: Whole) -> list[str]:
    """Why several modes, or mass beyond all values, are not to be trusted."""
    found: list[str] = []
    masses = [np.exp(r.log_mass - whole.log_mass) for r in whole.regions]
    if len(masses) >= _MODES:
        found.append(
            f"{len(masses)} modes were found from a few starts, so that there are likely others: give the hyper-parameters "
            "narrower priors around the one that is meant"
        )
    if sum(r.between * m for r, m in zip(whole.regions, masses, strict=True)) > _TOUCHING:
        found.append(
            f"{len(masses)} modes run into each other, and what is between them is not known well: their shares of the mass, means "
            "and standard deviations are rough; a prior on one side, where the sides mean the same, leaves one mode"
        )
    beyond = sum(m * r.nodes.weights[r.nodes.beyond].sum() for r, m in zip(whole.regions, masses, strict=True))
    if masses and whole.u.shape[1] <= 3 and beyond > _LOST:
        found.append(
            f"{100 * beyond:.0f} % of the posterior of the hyper-parameters is beyond the values that were tried, where the "
            "evidence is a guess; give them narrower priors"
        )
    return found
